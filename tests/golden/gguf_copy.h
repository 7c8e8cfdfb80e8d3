// Writes a Hugging Face model as GGUF the way llama.cpp's converter does, so that the logits of the original
// hold for the copy. Names and keys are repeated here on purpose: they check those of the loader.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/checkpoint.h"

namespace inferno::testing {

struct GgufCopyOptions {
  std::uint32_t version = 3;
  int files = 1;  // more than one: a split file
};

// Writes the copy into `folder` and returns the (first) file.
std::filesystem::path write_gguf_copy(const Checkpoint& original, const std::filesystem::path& folder,
                                      const GgufCopyOptions& options);

}  // namespace inferno::testing
