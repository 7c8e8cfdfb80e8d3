#include "base/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <span>

#include "base/byte_source.h"
#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_size(const fs::path& path, std::uint64_t max_bytes) {
  fail(ErrorKind::unsupported,
       fmt::format("{}: larger than the limit of {} bytes", path.string(), max_bytes));
}

std::string read_pipe(const fs::path& path, std::uint64_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::io, fmt::format("{}: cannot open", path.string()));
  std::string text;
  char piece[65536];
  while (file.read(piece, sizeof(piece)) || file.gcount() > 0) {
    text.append(piece, static_cast<std::size_t>(file.gcount()));
    if (text.size() > max_bytes) refuse_size(path, max_bytes);
  }
  return text;
}

bool is_pipe_or_device(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

std::string read_file(const fs::path& path, std::uint64_t max_bytes, Pipes pipes) {
  if (pipes == Pipes::accept && is_pipe_or_device(path)) return read_pipe(path, max_bytes);
  const auto file = open_file(path);
  if (file->size() > max_bytes) refuse_size(path, max_bytes);
  std::string text(file->size(), '\0');
  file->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::optional<std::string> read_start(const fs::path& path, std::size_t max_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(max_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

fs::path output_path(const fs::path& path) {
  if (path.empty()) fail(ErrorKind::invalid_request, "no name given for the output file");
  std::error_code problem;
  fs::path target = path;
  if (fs::is_symlink(path, problem)) {
    target = fs::weakly_canonical(path, problem);
    if (problem)
      fail(ErrorKind::io, fmt::format("{}: cannot follow the link: {}", path.string(), problem.message()));
  }
  const fs::file_status status = fs::status(target, problem);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    fail(ErrorKind::invalid_request, fmt::format("{}: exists and is not a regular file", path.string()),
         {.why = "a finished file is moved into place, which would replace it",
          .next = "choose another file name"});
  }
  return target;
}

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > 255 || name == "." || name == ".." || !utf8::is_valid(name)) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '/' || c == '\\' || byte < 0x20 || byte == 0x7F;
  });
}

}  // namespace inferno
