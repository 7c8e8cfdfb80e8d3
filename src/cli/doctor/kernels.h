// The list of kernels that a backend runs for each number of tokens, as `doctor --verbose` and
// `bench --verbose` print it. The names come from Backend::kernel_for, which gets the arguments of each
// operation and makes the same choice as the operation.
#pragma once

#include <string>

#include "model/weights.h"

namespace inferno::doctor {

// For common shapes in every weight format; without a model.
std::string describe_kernels(const Backend& backend);
// For every operation of a model's decoder, each shape once.
std::string describe_kernels(const Backend& backend, const ModelSpec& spec, const ModelWeights& weights);

}  // namespace inferno::doctor
