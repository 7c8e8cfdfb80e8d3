// A Hugging Face model directory: config.json and one safetensors file, or several with an index.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace inferno {

// Error{not_found} if a file is missing, Error{corrupt} if files are inconsistent, Error{unsupported} if the
// weights have a quantization that Inferno does not read.
std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& directory);

}  // namespace inferno
