// What loading a model did, for people: how fast it was, and which tensors were converted on the way.
#pragma once

#include <string>
#include <vector>

#include "model/load.h"

namespace inferno {

// One line for what was done, with every tensor that it was done to; tensors that differ only in numbers have
// one name: "model.layers.*.norm.weight (24 tensors), model.norm.weight: bf16 to f32; …"
std::vector<std::string> conversion_lines(const std::vector<Conversion>& conversions);

// On stderr.
void print_load_report(const LoadReport& report, double seconds);

}  // namespace inferno
