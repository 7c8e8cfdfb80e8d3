#include "cli/read_file.h"

#include <fmt/format.h>

#include <fstream>
#include <span>

#include "base/byte_source.h"
#include "base/error.h"

namespace inferno {
namespace {

[[noreturn]] void refuse_size(const std::filesystem::path& path, std::uint64_t most) {
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected at most {} bytes, found more", path.string(), most));
}

// Pipes and devices, which have no size: what a shell's <(command) is.
std::string read_until_end(const std::filesystem::path& path, std::uint64_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::io, fmt::format("{}: cannot open", path.string()));
  std::string text;
  char piece[65536];
  while (file.read(piece, sizeof(piece)) || file.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most) refuse_size(path, most);
  }
  return text;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uint64_t most) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) {
    fail(ErrorKind::invalid_request, fmt::format("{}: expected a file, found a folder", path.string()));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return read_until_end(path, most);
  const auto file = open_file(path);
  if (file->size() > most) refuse_size(path, most);
  std::string text(file->size(), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace inferno
