#include "cli/read_file.h"

#include <fmt/format.h>

#include <span>

#include "base/byte_source.h"
#include "base/error.h"

namespace inferno {

std::string read_file(const std::filesystem::path& path, std::uint64_t most) {
  const auto file = open_file(path);
  if (file->size() > most) {
    fail(ErrorKind::invalid_request,
         fmt::format("{}: expected at most {} bytes, found {}", path.string(), most, file->size()));
  }
  std::string text(file->size(), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace inferno
