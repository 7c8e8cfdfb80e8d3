// The list of kernels that a backend runs for each number of tokens, as `doctor --verbose` and
// `bench --verbose` print it. The names come from Backend::kernel_for, which makes the same choice as the
// operations.
#pragma once

#include <string>

#include "model/weights.h"

namespace inferno::doctor {

// For one matrix in every weight format.
std::string describe_kernels(const Backend& backend);
// For the matrices of a model, each shape once.
std::string describe_kernels(const Backend& backend, const ModelSpec& spec, const ModelWeights& weights);

}  // namespace inferno::doctor
