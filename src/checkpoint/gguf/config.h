// GGUF metadata under Hugging Face's names, so that an architecture is described once for both file formats.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/metadata.h"

namespace inferno {

// `tensors` gives what GGUF stores in tensors rather than keys: tied embeddings, biases, RoPE factors. Only
// its find() is used. Keys of the architecture without a Hugging Face name keep their own. Error{corrupt} if
// the architecture is missing.
Config gguf_config(const GgufMetadata& metadata, const Checkpoint& tensors);

// The part of it that generation_config() reads. Needs no architecture and no tensors.
Config gguf_generation_values(const GgufMetadata& metadata);

}  // namespace inferno
