#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace inferno::hub {
namespace {

// Somebody may have removed the file between opening and locking; then the lock is of a file that nobody else
// sees.
bool is_still_there(int descriptor, const std::filesystem::path& path) {
  struct stat held{}, named{};
  return ::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

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
