#include "catalogue/builtin_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

// FNV-1a. It only names a version; the files in a folder are compared byte by byte.
std::uint64_t fingerprint(std::span<const EmbeddedFile> files) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  };
  for (const EmbeddedFile& file : files) {
    add(file.name);
    add(fmt::format(":{}:", file.bytes.size()));
    // The ends and the middle tell versions apart without reading twelve megabytes at every start.
    constexpr std::size_t part = 4096;
    add(file.bytes.substr(0, part));
    add(file.bytes.substr(file.bytes.size() / 2, part));
    add(file.bytes.substr(file.bytes.size() - std::min(file.bytes.size(), part)));
  }
  return hash;
}

bool holds(const fs::path& path, std::string_view bytes) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) != bytes.size() || ignored) return false;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string_view expected = bytes.substr(at, piece.size());
    if (!file.read(piece.data(), static_cast<std::streamsize>(expected.size()))) return false;
    if (std::string_view(piece.data(), expected.size()) != expected) return false;
    at += expected.size();
  }
  return true;
}

bool is_complete(const fs::path& folder, std::span<const EmbeddedFile> files) {
  for (const EmbeddedFile& file : files) {
    if (!holds(folder / file.name, file.bytes)) return false;
  }
  return true;
}

// Written under a temporary name and then renamed, so that no process sees half a file.
bool write(const fs::path& path, std::string_view bytes) {
  const fs::path unfinished = fmt::format("{}.{}", path.string(), getpid());
  std::ofstream file(unfinished, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  std::error_code problem;
  if (file) fs::rename(unfinished, path, problem);
  if (file && !problem) return true;
  fs::remove(unfinished, problem);
  return false;
}

bool unpack_into(const fs::path& folder, std::span<const EmbeddedFile> files) {
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) return false;
  for (const EmbeddedFile& file : files) {
    if (!holds(folder / file.name, file.bytes) && !write(folder / file.name, file.bytes)) return false;
  }
  return true;
}

}  // namespace

fs::path unpack_model(std::span<const EmbeddedFile> files, std::span<const fs::path> folders) {
  const std::string name = fmt::format("builtin-{:016x}", fingerprint(files));
  std::string tried;
  for (const fs::path& parent : folders) {
    const fs::path folder = parent / name;
    if (is_complete(folder, files) || unpack_into(folder, files)) return folder;
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  fail(ErrorKind::io, fmt::format("cannot unpack the built-in model: {}", tried),
       {.why = "a model is read from a folder, and none of these can be written to",
        .next = "set XDG_CACHE_HOME to a folder with 12 MB of free space, or choose another model"});
}

}  // namespace inferno
