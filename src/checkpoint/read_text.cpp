#include "checkpoint/read_text.h"

#include <fmt/format.h>

#include <span>

#include "base/byte_source.h"
#include "base/error.h"

namespace inferno {

std::string read_text(const std::filesystem::path& path, std::uint64_t limit) {
  const auto file = open_file(path);
  if (file->size() > limit) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected at most {} bytes, found {}", path.string(), limit, file->size()));
  }
  std::string text(file->size(), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace inferno
