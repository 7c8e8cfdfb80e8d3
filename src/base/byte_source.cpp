#include "base/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"

namespace inferno {
namespace {

void require_range(const std::string& name, std::uint64_t size, std::uint64_t offset, std::size_t count) {
  const auto end = checked::add(offset, count);
  if (!end || *end > size) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected {} bytes at offset {}, but it holds {} bytes", name, count, offset, size));
  }
}

bool differ(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
}

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, std::string name, const struct stat& status)
      : descriptor_(descriptor),
        name_(std::move(name)),
        size_(static_cast<std::uint64_t>(status.st_size)),
        written_(status.st_mtim) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::uint64_t size() const override { return size_; }

  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    require_range(name_, size_, offset, to.size());
    std::size_t done = 0;
    while (done < to.size()) {
      // Linux moves at most 0x7ffff000 bytes a call.
      const std::size_t chunk = std::min<std::size_t>(to.size() - done, 1u << 30);
      const ssize_t got = ::pread(descriptor_, to.data() + done, chunk, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(ErrorKind::io, fmt::format("{}: cannot read: {}", name_, std::strerror(errno)));
      if (got == 0) {
        changed(fmt::format("expected {} bytes, but it ends at {}", size_, offset + done));
      }
      done += static_cast<std::size_t>(got);
    }
  }

  void check_unchanged() const override {
    struct stat now = {};
    if (::fstat(descriptor_, &now) != 0) {
      fail(ErrorKind::io, fmt::format("{}: cannot read the file status: {}", name_, std::strerror(errno)));
    }
    const auto size = static_cast<std::uint64_t>(now.st_size);
    if (size != size_) changed(fmt::format("expected {} bytes, but now it has {}", size_, size));
    if (differ(now.st_mtim, written_)) changed("written to since it was opened");
  }

 private:
  [[noreturn]] void changed(const std::string& finding) const {
    fail(
        ErrorKind::corrupt, fmt::format("{}: {}", name_, finding),
        {.why = "the file was changed while it was being read, so its parts may not belong together",
         .next = "wait until nothing writes to it (a download, a copy) and try again, or download it again"});
  }

  int descriptor_;
  std::string name_;
  std::uint64_t size_;
  timespec written_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::vector<std::byte> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    require_range(name_, bytes_.size(), offset, to.size());
    if (!to.empty()) std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

}  // namespace

std::shared_ptr<const ByteSource> open_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int reason = errno;
    const bool missing = reason == ENOENT || reason == ENOTDIR;
    fail(missing ? ErrorKind::not_found : ErrorKind::io,
         fmt::format("{}: cannot open: {}", path.string(), std::strerror(reason)),
         {.why = {},
          .next = !missing             ? "check the permissions of the file and its folders"
                  : path.is_relative() ? "check the path, which is relative to the current folder"
                                       : "check the path"});
  }
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail(ErrorKind::corrupt, fmt::format("{}: expected a regular file", path.string()));
  }
  return std::make_shared<FileSource>(descriptor, path.string(), status);
}

std::shared_ptr<const ByteSource> memory_source(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace inferno
