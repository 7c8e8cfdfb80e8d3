// Which kernels a backend runs for which numbers of tokens, for people: what `doctor --verbose` and
// `bench --verbose` print. The names come from Backend::kernel_for, which asks where operations ask.
#pragma once

#include <string>

#include "model/weights.h"

namespace inferno::doctor {

// For one matrix in every weight format.
std::string describe_kernels(const Backend& backend);
// For the matrices of a model, each shape once.
std::string describe_kernels(const Backend& backend, const ModelSpec& spec, const ModelWeights& weights);

}  // namespace inferno::doctor
