// GGUF files on their way out: keys and tensors as plain data, written tensor after tensor.
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

// Takes the bytes of a tensor, piece by piece and in order.
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

// Where each tensor's bytes begin behind the header, and at the end how many bytes there are in all.
std::vector<std::uint64_t> gguf_offsets(const OutgoingGguf& file);

// Called before each tensor with its index.
using GgufProgress = std::function<void(std::size_t index)>;

// Writes beside `path` first, makes sure that the bytes are on the disk, and renames: whatever fails, `path`
// is as it was and nothing is left beside it. Needs the memory of the largest piece that a tensor hands over.
// Error{io} saying why; checks for room on the disk before it begins.
void write_gguf(const std::filesystem::path& path, const OutgoingGguf& file,
                const GgufProgress& progress = {});

}  // namespace inferno
