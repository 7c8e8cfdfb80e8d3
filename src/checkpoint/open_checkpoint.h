// From a path to a Checkpoint, whichever format is stored there.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace inferno {

class GgufMetadata;

// Whether a file is named .gguf or has the magic number of GGUF: some stores name files by their hash.
bool is_gguf_file(const std::filesystem::path& path);

// Names of the .gguf files in a directory that can be opened by themselves, sorted: neither the later parts
// of a split model nor image encoders (mmproj). Error{io} if the directory cannot be listed.
std::vector<std::string> gguf_files(const std::filesystem::path& directory);

// Error{not_found} or Error{unsupported} unless the path may be a model: a directory with config.json or a
// .gguf file, or a file of weights. A pipe or a device passes, because only opening it says what is wrong
// with it.
void require_model(const std::filesystem::path& path);

// A model directory (config.json + safetensors, or one .gguf), a single .gguf, or the first file of a split
// one. `parsed` is the metadata of a GGUF file that was read before: if that is the file to open, its header
// is not parsed a second time.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path,
                                            std::shared_ptr<const GgufMetadata> parsed = nullptr);

}  // namespace inferno
