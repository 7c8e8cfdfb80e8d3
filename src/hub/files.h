// Files that are either whole or not there, after a crash too: write, fsync, rename, fsync of the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::hub {

// Closes what it holds.
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

// Error{io} in words: the path, the reason, and for a full disk or a missing permission what to do.
[[noreturn]] void fail_for_file(const std::filesystem::path& path, std::string_view doing, int error);

void sync_file(int descriptor, const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);

// `from` is in the same file system as `to`, which is replaced; then the folder of `to` is made durable.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

// The whole text under this name. Nothing is written when the file says the same already.
void write_durably(const std::filesystem::path& path, std::string_view text);

// A link to `target` under this name, whatever was there before, except when it is there already.
void link_durably(const std::filesystem::path& target, const std::filesystem::path& path);

// Sixteen random hex digits, for names that nobody else uses.
std::string random_name();

// Bytes that this user may still write where `path` is or will be; nullopt-like UINT64_MAX when nobody knows.
std::uint64_t free_space(const std::filesystem::path& path);

// flock(2) on a file of its own, as Hugging Face's tools take it, so that two programs do not fetch the same
// blob. Held while it lives. On file systems without locks everybody gets one: that costs work twice, never a
// file.
class FileLock {
 public:
  // nullopt when somebody else holds it. Error{io} when the lock's file cannot be made.
  static std::optional<FileLock> try_take(const std::filesystem::path& file);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace inferno::hub
