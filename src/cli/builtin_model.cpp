#include "cli/builtin_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/error.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

// FNV-1a: names a version. What is in a folder is compared byte by byte.
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

// Under a name of its own first, so that nobody sees a file that is half there.
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

std::vector<fs::path> places(const Environment& environment) {
  std::vector<fs::path> places;
  if (const auto cache = environment.get("XDG_CACHE_HOME")) {
    places.push_back(fs::path(*cache) / "inferno");
  } else if (const auto home = environment.home()) {
    places.push_back(fs::path(*home) / ".cache" / "inferno");
  }
  // With the user's number: a folder that somebody else made there is not ours to trust or to fill.
  std::error_code problem;
  const fs::path temporary = fs::temp_directory_path(problem);
  if (!problem) places.push_back(temporary / fmt::format("inferno-{}", getuid()));
  return places;
}

std::string folder_name(std::span<const EmbeddedFile> files) {
  return fmt::format("builtin-{:016x}", fingerprint(files));
}

}  // namespace

fs::path unpack_model(std::span<const EmbeddedFile> files, const Environment& environment) {
  const std::string name = folder_name(files);
  std::string tried;
  for (const fs::path& place : places(environment)) {
    const fs::path folder = place / name;
    if (is_complete(folder, files) || unpack_into(folder, files)) return folder;
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  fail(ErrorKind::io, fmt::format("the built-in model could not be unpacked: {}", tried),
       {.why = "it is read like any other model, from a folder, and none of these can be written",
        .next = "set XDG_CACHE_HOME to a folder with 12 MB of room, or name another model"});
}

fs::path builtin_model(const Environment& environment) {
  return unpack_model(builtin_files(), environment);
}

bool is_builtin(const fs::path& path) {
  return path.filename() == folder_name(builtin_files());
}

}  // namespace inferno
