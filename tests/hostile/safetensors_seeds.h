// Safetensors files with one error each, and valid counterparts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace inferno {

struct SafetensorsSeed {
  std::string name;
  std::optional<ErrorKind> refused;  // nullopt: it must load
  std::function<std::vector<std::byte>()> make;
};

std::vector<SafetensorsSeed> safetensors_file_seeds();    // lengths, and the header as a whole
std::vector<SafetensorsSeed> safetensors_tensor_seeds();  // single tensors in the header

}  // namespace inferno
