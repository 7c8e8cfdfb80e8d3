// The same model with every tensor decoded to f32: what a quantized one must compute, formats aside.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"

namespace inferno::testing {

// `original` must outlive the twin.
std::unique_ptr<Checkpoint> float_twin(const Checkpoint& original);

}  // namespace inferno::testing
