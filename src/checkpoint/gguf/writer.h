// Writes GGUF files from keys and tensors as plain data, one tensor after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/format.h"

namespace inferno {

using GgufKeyValue = std::variant<std::uint32_t, std::int32_t, float, bool, std::string,
                                  std::vector<std::string>, std::vector<float>, std::vector<std::int32_t>>;
using GgufKeys = std::vector<std::pair<std::string, GgufKeyValue>>;

// Receives the bytes of a tensor in pieces, in order.
using ByteSink = std::function<void(std::span<const std::byte>)>;

struct OutgoingTensor {
  std::string name;
  WeightFormat format = WeightFormat::f32;
  std::vector<std::int64_t> shape;                  // outermost first
  std::function<void(const ByteSink& sink)> write;  // exactly bytes() bytes

  std::uint64_t bytes() const;
};

struct OutgoingGguf {
  GgufKeys keys;  // each once
  std::vector<OutgoingTensor> tensors;
};

// Everything before the tensors' bytes, padding included.
std::vector<std::byte> gguf_header(const OutgoingGguf& file);

// The offset of each tensor after the header, and as last element the total number of bytes.
std::vector<std::uint64_t> gguf_offsets(const OutgoingGguf& file);

// Called before each tensor with its index.
using GgufProgress = std::function<void(std::size_t index)>;

// Writes to a temporary file in the same folder, syncs and renames it: after any failure `path` is unchanged
// and no temporary file is left. Needs the memory of the largest piece that a tensor writes. Checks for free
// space before it begins. Error{io} with the reason.
void write_gguf(const std::filesystem::path& path, const OutgoingGguf& file,
                const GgufProgress& progress = {});

}  // namespace inferno
