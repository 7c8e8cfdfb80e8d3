// The header of one safetensors file: which tensors it holds and where. Every rule of the format is checked
// here, so that what comes out can be read without another thought.
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
  std::string_view name;               // as the file spells it
  std::uint64_t bytes;                 // of one element
  std::optional<WeightFormat> format;  // nullopt: known, but not a weight
};

// nullptr when the name is unknown.
const SafetensorsType* safetensors_type(std::string_view name);

struct SafetensorsTensor {
  std::string name;
  const SafetensorsType* type = nullptr;  // of static storage
  std::vector<std::int64_t> shape;        // outermost first
  std::uint64_t offset = 0;               // from the start of the file
  std::uint64_t bytes = 0;
};

// In the order of their bytes. Error{corrupt} or, for a type of element nobody here knows,
// Error{unsupported}; both name `origin` and the tensor.
std::vector<SafetensorsTensor> read_safetensors_header(const ByteSource& file, std::string_view origin);

}  // namespace inferno
