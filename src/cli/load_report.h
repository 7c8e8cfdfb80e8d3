// What loading a model did, for people: how fast it was, and which tensors were converted on the way.
#pragma once

#include <string>
#include <vector>

#include "model/weights.h"

namespace inferno {

// One line for tensors that differ only in numbers: "model.layers.*.norm.weight (24 tensors): bf16 to f32; …"
// One for all of them where more than three names were changed alike: "… and 6 other names (169 tensors): …"
std::vector<std::string> conversion_lines(const std::vector<Conversion>& conversions);

// On stderr.
void print_load_report(const LoadReport& report, double seconds);

}  // namespace inferno
