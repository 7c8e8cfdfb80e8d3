// A checkpoint with every tensor decoded to f32: the reference for a quantized model.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"

namespace inferno::testing {

// `original` must outlive the result.
std::unique_ptr<Checkpoint> as_float_checkpoint(const Checkpoint& original);

}  // namespace inferno::testing
