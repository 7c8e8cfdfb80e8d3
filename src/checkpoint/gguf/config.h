// GGUF metadata under Hugging Face's names, so that a family is described once for both kinds of file.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/metadata.h"

namespace inferno {

// `tensors` answers what GGUF says through tensors and not through keys: whether the head is tied, whether
// there are biases, the factors of rotary scaling. Only its find() is used. Keys of the architecture without
// a Hugging Face name stay under their own. Error{corrupt} when the architecture is not named.
Config gguf_config(const GgufMetadata& metadata, const Checkpoint& tensors);

}  // namespace inferno
