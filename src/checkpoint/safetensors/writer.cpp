#include "checkpoint/safetensors/writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace inferno {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

std::string header_of(const FloatMatrix& matrix) {
  const nlohmann::json header = {{matrix.name,
                                  {{"dtype", "F32"},
                                   {"shape", {matrix.rows, matrix.cols}},
                                   {"data_offsets", {0, matrix.values.size_bytes()}}}}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the format requires aligned data
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const FloatMatrix& matrix) {
  expects(static_cast<std::size_t>(matrix.rows * matrix.cols) == matrix.values.size(),
          "the values fill the matrix");
  const std::filesystem::path target = output_path(path);
  std::filesystem::path partial = target;
  partial += fmt::format(".{}.partial", ::getpid());
  const auto give_up = [&](const char* what) {
    const int reason = errno;
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    fail(ErrorKind::io, fmt::format("{}: cannot {}: {}", path.string(), what, std::strerror(reason)));
  };
  errno = 0;
  std::ofstream file(partial, std::ios::binary);
  if (!file) give_up("create the file");
  const std::string header = header_of(matrix);
  const std::uint64_t size = header.size();
  file.write(reinterpret_cast<const char*>(&size), sizeof(size));
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(reinterpret_cast<const char*>(matrix.values.data()),
             static_cast<std::streamsize>(matrix.values.size_bytes()));
  file.close();
  if (!file) give_up("write the file");
  if (std::rename(partial.c_str(), target.c_str()) != 0) give_up("rename the finished file");
}

}  // namespace inferno
