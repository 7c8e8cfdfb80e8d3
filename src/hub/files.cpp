#include "hub/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

// File names have at most 255 bytes, and a temporary name adds a suffix.
constexpr std::size_t max_stem_bytes = 200;

std::string advice_for(int error) {
  if (error == ENOSPC || error == EDQUOT)
    return "free some space and run the same command again: it resumes where it stopped";
  if (error == EACCES || error == EPERM || error == EROFS) {
    return "make the folder writable, or choose another: export HF_HOME=/some/folder";
  }
  return {};
}

bool has_content(const fs::path& path, std::string_view text) {
  return read_start(path, text.size() + 1) == text;
}

void write_all(int descriptor, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_for_file(path, "cannot be written", errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// A temporary file name. Removes the file unless it was renamed.
struct Temporary {
  fs::path path;
  explicit Temporary(const fs::path& beside)
      : path(beside.parent_path() /
             fmt::format("{}.{}.tmp", beside.filename().string().substr(0, max_stem_bytes), random_name())) {}
  ~Temporary() { ::unlink(path.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
};

// Another process may have removed the file between opening and locking; then the lock is on a file that no
// other process sees.
bool is_still_there(int descriptor, const std::filesystem::path& path) {
  struct stat held{}, named{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

void fail_for_file(const fs::path& path, std::string_view doing, int error) {
  fail(ErrorKind::io, fmt::format("{}: {}: {}", path.string(), doing, std::strerror(error)),
       {.why = {}, .next = advice_for(error)});
}

void sync_file(int descriptor, const fs::path& path) {
  if (::fsync(descriptor) != 0) fail_for_file(path, "cannot be synced to disk", errno);
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) fail_for_file(folder, "cannot be opened", errno);
  // Some network file systems cannot sync a folder; they sync by themselves.
  if (::fsync(opened.number()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail_for_file(folder, "cannot be synced to disk", errno);
  }
}

void rename_durably(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_for_file(to, "cannot be renamed", errno);
  sync_folder(to.parent_path());
}

void write_durably(const fs::path& path, std::string_view text) {
  if (has_content(path, text)) return;
  const Temporary temporary(path);
  {
    const Descriptor file(::open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open()) fail_for_file(path, "cannot be created", errno);
    write_all(file.number(), text, path);
    sync_file(file.number(), path);
  }
  rename_durably(temporary.path, path);
}

void link_durably(const fs::path& target, const fs::path& path) {
  std::error_code problem;
  if (fs::is_symlink(fs::symlink_status(path, problem)) && fs::read_symlink(path, problem) == target) return;
  if (::symlink(target.c_str(), path.c_str()) == 0) return sync_folder(path.parent_path());
  if (errno != EEXIST) fail_for_file(path, "cannot be linked", errno);
  const Temporary temporary(path);
  if (::symlink(target.c_str(), temporary.path.c_str()) != 0) fail_for_file(path, "cannot be linked", errno);
  rename_durably(temporary.path, path);
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

std::uint64_t free_space(const fs::path& path) {
  fs::path nearest = fs::absolute(path);
  std::error_code problem;
  while (!fs::exists(nearest, problem) && nearest.has_relative_path()) nearest = nearest.parent_path();
  struct statvfs found{};
  if (::statvfs(nearest.c_str(), &found) != 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize;
}

std::optional<FileLock> FileLock::try_take(const std::filesystem::path& file) {
  for (int tries = 0; tries < 10; ++tries) {
    Descriptor opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0664));
    if (!opened.is_open()) fail_for_file(file, "cannot be opened for locking", errno);
    int result = 0;
    do {
      result = ::flock(opened.number(), LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) return std::nullopt;
    const bool has_no_locks = result != 0;
    if (has_no_locks || is_still_there(opened.number(), file)) return FileLock(std::move(opened));
  }
  return std::nullopt;
}

}  // namespace inferno::hub
