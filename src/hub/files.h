// Files that are either complete or absent, even after a crash: write, fsync, rename, fsync of the folder.
// And locks between processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

// A file descriptor, closed on destruction.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

// Error{io} with the path and the reason, and advice for a full disk or a missing permission.
[[noreturn]] void fail_for_file(const std::filesystem::path& path, std::string_view doing, int error);

void sync_file(int descriptor, const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);

// Replaces `to`, which is in the same file system as `from`, and syncs its folder.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// Writes the file as a whole. Does nothing if it already has this content.
void write_durably(const std::filesystem::path& path, std::string_view text);

// Makes `path` a symbolic link to `target`, replacing anything else.
void link_durably(const std::filesystem::path& target, const std::filesystem::path& path);

// Sixteen random hex digits, for unique names.
std::string random_name();

// Bytes that this user may still write to the file system of `path`; UINT64_MAX if unknown.
std::uint64_t free_space(const std::filesystem::path& path);

// flock(2) on a separate file, as Hugging Face's tools use it, so that two programs do not fetch the same
// blob. Held until destruction. On file systems without locks every process succeeds: a blob may then be
// fetched twice, but is never damaged.
class FileLock {
 public:
  // nullopt if another process holds the lock. Error{io} if the lock file cannot be created.
  static std::optional<FileLock> try_take(const std::filesystem::path& file);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace inferno::hub
