// Parses the header of a safetensors file: its tensors and their offsets. Checks every rule of the format, so
// that the result needs no further checks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "tensor/format.h"

namespace inferno {

struct SafetensorsType {
  std::string_view name;               // as in the file
  std::uint64_t bytes;                 // per element
  std::optional<WeightFormat> format;  // nullopt: known, but not a weight type
};

// nullptr if the name is unknown.
const SafetensorsType* safetensors_type(std::string_view name);

struct SafetensorsTensor {
  std::string name;
  const SafetensorsType* type = nullptr;  // has static storage
  std::vector<std::int64_t> shape;        // outermost first
  std::uint64_t offset = 0;               // from the start of the file
  std::uint64_t bytes = 0;
};

// Sorted by offset. Error{corrupt}, or Error{unsupported} for an unknown element type; both name `origin` and
// the tensor.
std::vector<SafetensorsTensor> read_safetensors_header(const ByteSource& file, std::string_view origin);

}  // namespace inferno
