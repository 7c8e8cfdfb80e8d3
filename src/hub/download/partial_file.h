// A partially downloaded blob: bytes that arrive in any order, and the journal of those present, in one file.
//
//   blobs/<etag>.<boot>-<pid>-<started>-<random>.inferno.incomplete
//     [0, size)            the bytes, with holes
//     from the next 4 KiB  the size, and the number of bytes in each piece of 8 MiB
//
// It is one file so that a single rename claims what an earlier run left: two processes can never own the
// same partial file, even on file systems without locks. A file is claimed only from a process that has
// ended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hub/files.h"

namespace inferno::hub {

// The process that writes a partial file. Its signature is part of the file name, so that one rename claims a
// file and marks the new owner.
struct Owner {
  std::string boot;  // from /proc/sys/kernel/random/boot_id; identifies the machine and its last boot
  std::uint64_t pid = 0, started = 0;

  static Owner of_this_process();
  // "<boot>-<pid>-<started>-<random>"
  std::string signature() const;
  static std::optional<Owner> of_signature(const std::string& text);
  // Whether the process has certainly ended: on this machine it does not exist, and on another machine, or
  // before a reboot, it has not written to the file for two minutes.
  bool is_gone(std::chrono::seconds untouched) const;
};

// How many bytes of each piece are present; stored at the end of the partial file.
struct Journal {
  std::uint64_t size = 0, piece_bytes = 0;
  std::string etag;
  std::vector<std::uint64_t> done;  // bytes present in each piece

  // nullopt if there is no journal, or an invalid one for this etag and size.
  static std::optional<Journal> read(int descriptor, const std::string& etag, std::uint64_t size);
  // The journal of a complete file.
  static Journal of_whole(const std::string& etag, std::uint64_t size);
  void write(int descriptor, const std::filesystem::path& path) const;
  void write_progress(int descriptor, std::size_t piece, const std::filesystem::path& path) const;

  std::uint64_t offset() const;  // in the file
};

// A range that one connection fetches: the bytes from `position` to `end` are still missing.
struct Claim {
  std::uint64_t position = 0, end = 0;
  std::uint64_t generation = 0;

  bool is_finished() const { return position == end; }
};

enum class Written {
  ok,
  stale,    // the file was restarted, which invalidates the claim
  too_many  // more bytes than claimed; those within the claim are written
};

// Any thread.
class PartialFile {
 public:
  // Resumes what an earlier run left in `folder`, or creates a new file. Error{io}.
  PartialFile(std::filesystem::path folder, std::string etag, std::uint64_t size);
  // Leaves the file for the next run, unless it was committed or removed.
  ~PartialFile() = default;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  std::uint64_t size() const { return journal_.size; }
  std::uint64_t reused() const;  // bytes of an earlier run; 0 after a restart
  std::uint64_t have() const;

  // The first range that is neither present nor claimed, of about `wanted` bytes at most; nullopt if there is
  // none.
  std::optional<Claim> claim(std::uint64_t wanted);
  void release(const Claim& claim);
  // Writes at the claim's position and moves it. Error{io}.
  Written write(Claim& claim, std::span<const std::byte> bytes);
  // Discards all bytes; earlier claims become stale. The new claim is the whole file.
  Claim restart();

  // Waits up to 0.1 s until more than `offset` bytes are present from the start without a gap. Returns their
  // number.
  std::uint64_t wait_for_front(std::uint64_t offset);
  std::uint64_t generation() const;
  // The range must be present. Error{io}.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  // After verification: cuts the journal off, syncs the file and renames it. Also removes partial files that
  // other runs left of the same blob.
  void commit(const std::filesystem::path& destination);
  void remove();

 private:
  bool adopt();
  void create();
  std::uint64_t piece_begin(std::size_t piece) const { return piece * journal_.piece_bytes; }
  std::uint64_t piece_size(std::size_t piece) const;
  bool is_whole(std::size_t piece) const { return journal_.done[piece] == piece_size(piece); }
  void record(std::uint64_t offset, std::uint64_t count);
  std::uint64_t front();

  std::filesystem::path folder_, path_;
  std::uint64_t reused_ = 0;
  Descriptor file_;

  mutable std::mutex mutex_;
  std::condition_variable moved_, idle_;
  Journal journal_;
  std::vector<bool> is_claimed_;  // by piece
  std::size_t front_piece_ = 0;   // all pieces before this one are complete
  std::uint64_t have_ = 0, generation_ = 0;
  int writers_ = 0;
};

// Bytes that a PartialFile would resume with.
std::uint64_t resumable_bytes(const std::filesystem::path& folder, const std::string& etag,
                              std::uint64_t size);

// Bytes on disk in all partial files of this blob.
std::uint64_t partial_bytes(const std::filesystem::path& folder, const std::string& etag);

}  // namespace inferno::hub
