// From a path to a Checkpoint, whichever format is stored there.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"

namespace inferno {

// Whether a file is named .gguf or has the magic number of GGUF: some stores name files by their hash.
bool is_gguf_file(const std::filesystem::path& path);

// A model directory (config.json + safetensors, or one .gguf), a single .gguf, or the first file of a split
// one.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace inferno
