#include "catalogue/builtin_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "hub/files.h"

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

bool is_trusted(const struct stat& status) {
  return status.st_uid == geteuid() || status.st_uid == 0;
}

// Opens a folder that no other user can put files into. A folder of this user that others can write to is
// made private; a folder or a link of another user is refused: in /tmp anyone may have made it.
hub::Descriptor open_private(int parent, const std::string& name) {
  struct stat status{};
  const bool is_own_link = fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISLNK(status.st_mode) && is_trusted(status);
  hub::Descriptor folder(
      openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_own_link ? 0 : O_NOFOLLOW)));
  if (!folder.is_open() || fstat(folder.number(), &status) != 0) return hub::Descriptor();
  const bool is_shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!is_trusted(status) || (is_shared && fchmod(folder.number(), S_IRWXU) != 0)) return hub::Descriptor();
  return folder;
}

hub::Descriptor make_private(int parent, const std::string& name) {
  mkdirat(parent, name.c_str(), S_IRWXU);
  return open_private(parent, name);
}

// Whether the folder has this file with these bytes. Another user's file does not count, because its content
// may change after the comparison.
bool holds(int folder, const EmbeddedFile& wanted) {
  const hub::Descriptor file(
      openat(folder, std::string(wanted.name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file.is_open() || fstat(file.number(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || !is_trusted(status)) return false;
  if (static_cast<std::size_t>(status.st_size) != wanted.bytes.size()) return false;
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::size_t at = 0; at < wanted.bytes.size();) {
    const ssize_t count = read(file.number(), piece.data(), piece.size());
    if (count <= 0) return false;
    const std::string_view found(piece.data(), static_cast<std::size_t>(count));
    if (wanted.bytes.substr(at, found.size()) != found) return false;
    at += found.size();
  }
  return true;
}

bool is_complete(int folder, std::span<const EmbeddedFile> files) {
  return std::ranges::all_of(files, [&](const EmbeddedFile& file) { return holds(folder, file); });
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Written under a new name and then renamed, so that no process sees half a file.
bool place(int folder, const EmbeddedFile& file) {
  const std::string name(file.name), unfinished = fmt::format("{}.{}", name, hub::random_name());
  bool is_written = false;
  {
    const hub::Descriptor out(openat(
        folder, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!out.is_open()) return false;
    is_written = write_all(out.number(), file.bytes);
  }
  if (is_written && renameat(folder, unfinished.c_str(), folder, name.c_str()) == 0) return true;
  unlinkat(folder, unfinished.c_str(), 0);
  return false;
}

bool unpack_into(const fs::path& parent, const std::string& name, std::span<const EmbeddedFile> files) {
  std::error_code ignored;
  if (parent.has_parent_path()) fs::create_directories(parent.parent_path(), ignored);
  const hub::Descriptor above = make_private(AT_FDCWD, parent.string());
  if (!above.is_open()) return false;
  const hub::Descriptor folder = make_private(above.number(), name);
  if (!folder.is_open()) return false;
  if (is_complete(folder.number(), files)) return true;
  return std::ranges::all_of(files, [&](const EmbeddedFile& file) {
    return holds(folder.number(), file) || place(folder.number(), file);
  });
}

}  // namespace

void fail_without_builtin() {
  fail(ErrorKind::unsupported, "this build does not contain the built-in model",
       {.why = "libinferno has it only if INFERNO_LIBRARY_BUILTIN is ON, the program unless INFERNO_BUILTIN "
               "is OFF",
        .next = "name another model, or give its path: models/builtin of Inferno's sources, or "
                "share/inferno/models/builtin of libinferno-dev"});
}

fs::path unpack_model(std::span<const EmbeddedFile> files, std::span<const fs::path> folders) {
  const std::string name = fmt::format("builtin-{:016x}", fingerprint(files));
  std::string tried;
  for (const fs::path& parent : folders) {
    const fs::path folder = parent / name;
    if (unpack_into(parent, name, files)) return folder;
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  fail(ErrorKind::io, fmt::format("cannot unpack the built-in model: {}", tried),
       {.why = "none of these folders can be written to, or another user owns them",
        .next = "set XDG_CACHE_HOME to a folder with 12 MB of free space, or choose another model"});
}

}  // namespace inferno
