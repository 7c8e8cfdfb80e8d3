// The result of `bench` as a picture: throughput over batch and decoding over depth, one panel each.
#pragma once

#include <string>

#include "cli/bench/report.h"

namespace inferno {

// An SVG document that reads on light and dark pages. A panel with nothing to show is left out.
std::string as_svg(const BenchReport& report);

}  // namespace inferno
