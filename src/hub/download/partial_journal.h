// The journal at the end of a partial file, which says how far each piece is, and its name, which says whose
// it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace inferno::hub {

// A process, so that another one can tell whether it still lives. It stands in the name, so that claiming a
// file and signing it are one rename.
struct Owner {
  std::string boot;  // of /proc/sys/kernel/random/boot_id: which machine, since when
  std::uint64_t pid = 0, started = 0;

  static Owner of_this_process();
  // "<boot>-<pid>-<started>-<random>"
  std::string signature() const;
  static std::optional<Owner> of_signature(const std::string& text);
  // Gone for certain: of this machine and no longer there, or of another one (or an earlier start of it) that
  // has not touched the file for two minutes.
  bool is_gone(std::chrono::seconds untouched) const;
};

struct Journal {
  std::uint64_t size = 0, piece_bytes = 0;
  std::string etag;
  std::vector<std::uint64_t> done;  // bytes of each piece

  // nullopt when there is none, or none that makes sense for a blob of this etag and size.
  static std::optional<Journal> read(int descriptor, const std::string& etag, std::uint64_t size);
  // Of a file that has every byte.
  static Journal of_whole(const std::string& etag, std::uint64_t size);
  void write(int descriptor, const std::filesystem::path& path) const;
  void write_progress(int descriptor, std::size_t piece, const std::filesystem::path& path) const;

  std::uint64_t offset() const;  // in the file
};

std::uint64_t piece_bytes_for(std::uint64_t size);

// All of it, at that place. Error{io}.
void write_at(int descriptor, std::uint64_t offset, const void* bytes, std::size_t count,
              const std::filesystem::path& path);

}  // namespace inferno::hub
