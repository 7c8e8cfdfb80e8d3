// A Hugging Face model directory: config.json and one safetensors file, or several with an index.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace inferno {

// Error{not_found} when a file is missing, Error{corrupt} when one contradicts itself or another,
// Error{unsupported} when the weights are quantized in a way that Inferno does not read.
std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& directory);

}  // namespace inferno
