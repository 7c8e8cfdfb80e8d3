// The report about loading a model: how fast it was, and which tensors were converted.
#pragma once

#include <string>
#include <vector>

#include "model/load.h"

namespace inferno {

// One line for each kind of conversion, with all its tensors; tensors whose names differ only in numbers
// share one: "model.layers.*.norm.weight (24 tensors), model.norm.weight: bf16 to f32; …"
std::vector<std::string> conversion_lines(const std::vector<Conversion>& conversions);

// On stderr.
void print_load_report(const LoadReport& report, double seconds);

}  // namespace inferno
