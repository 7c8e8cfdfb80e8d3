// GGUF files with one error each, and valid counterparts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace inferno {

struct GgufSeed {
  std::string name;
  std::optional<ErrorKind> refused;  // nullopt: it must load
  std::function<std::vector<std::byte>()> make;
};

std::vector<GgufSeed> gguf_header_seeds();  // magic, version, counts, cut files
std::vector<GgufSeed> gguf_key_seeds();     // keys and their values
std::vector<GgufSeed> gguf_tensor_seeds();  // tensors and their data

}  // namespace inferno
