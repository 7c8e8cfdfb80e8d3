// A Hugging Face model rewritten as GGUF the way llama.cpp's converter does, so that the logits of the
// original hold for the twin. The names and keys here are written down a second time on purpose: they check
// the loader's.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/checkpoint.h"

namespace inferno::testing {

struct TwinOptions {
  std::uint32_t version = 3;
  int files = 1;  // more than one: a split file
};

// Writes the twin into `folder` and returns the (first) file.
std::filesystem::path write_gguf_twin(const Checkpoint& original, const std::filesystem::path& folder,
                                      const TwinOptions& options);

}  // namespace inferno::testing
