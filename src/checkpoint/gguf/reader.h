// Parses the header of a GGUF file, version 2 or 3. Every count, length and offset is checked against the
// file size before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "checkpoint/gguf/metadata.h"
#include "tensor/format.h"

namespace inferno {

struct GgufTensor {
  std::string name;
  WeightFormat format = WeightFormat::f32;
  std::vector<std::int64_t> shape;  // outermost first; the file has the reverse order
  std::uint64_t offset = 0;         // from the start of the file
  std::uint64_t bytes = 0;
};

struct GgufHeader {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in file order
};

// Both halves. Error{corrupt}, or Error{unsupported} for another version, byte order or tensor type; all name
// `origin`.
GgufHeader read_gguf_header(const ByteSource& file, const std::string& origin);

// The first half, which stops before the tensors, so that their types do not matter.
GgufMetadata read_gguf_metadata(const ByteSource& file, const std::string& origin);
GgufMetadata read_gguf_metadata(const std::filesystem::path& path);

// The second half: the tensors of the file that `metadata` was read from.
std::vector<GgufTensor> read_gguf_tensors(const ByteSource& file, const GgufMetadata& metadata);

}  // namespace inferno
