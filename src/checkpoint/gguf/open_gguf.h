// A GGUF model: one file, or the parts of a split model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/metadata.h"

namespace inferno {

// `path` is the file, or the first of a split model ("...-00001-of-00003.gguf") with the other parts in the
// same folder. Error{not_found} naming a missing part. `parsed`: see open_checkpoint().
std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path,
                                      std::shared_ptr<const GgufMetadata> parsed = nullptr);

// The same for bytes in memory or in a larger file; such a model cannot be split.
std::unique_ptr<Checkpoint> open_gguf(std::shared_ptr<const ByteSource> source, const std::string& origin);

// nullptr if the checkpoint is not a GGUF file. Valid as long as the checkpoint.
const GgufMetadata* gguf_metadata(const Checkpoint& checkpoint);

// How llama.cpp names the files of a split model: "name-00002-of-00003.gguf".
struct GgufSplitName {
  std::string stem;  // "name"
  int number = 0;    // counted from 1
  int count = 0;
};

// nullopt if the file name has no such ending.
std::optional<GgufSplitName> parse_gguf_split_name(std::string_view file_name);

std::string gguf_split_name(std::string_view stem, int number, int count);

}  // namespace inferno
