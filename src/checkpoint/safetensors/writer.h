// Writes one float matrix as a safetensors file that any tool can open.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace inferno {

struct FloatMatrix {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  std::span<const float> values;
};

// Writes a temporary file and renames it, so that a full disk or an interrupt never leaves half a file.
// Error{io}.
void write_safetensors(const std::filesystem::path& path, const FloatMatrix& matrix);

}  // namespace inferno
