// A blob on its way: bytes that arrive in any order, and the journal of those that are there, in one file.
//
//   blobs/<etag>.<boot>-<pid>-<started>-<random>.inferno.incomplete
//     [0, size)            the bytes, with holes
//     from the next 4 KiB  the size, and for each piece of 8 MiB how many bytes it has
//
// One file, because claiming what another run left behind must be one rename: two processes can never hold
// the same one, even where locks do nothing. A name is claimed from a process that is gone, never from one
// that lives.
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

// Bytes that somebody fetches: those from `position` on are still missing.
struct Claim {
  std::uint64_t position = 0, end = 0;
  std::uint64_t generation = 0;

  bool is_finished() const { return position == end; }
};

enum class Written {
  ok,
  stale,    // the file was begun anew meanwhile: the claim is worth nothing
  too_many  // more bytes than were claimed; those claimed are written
};

// Any thread.
class PartialFile {
 public:
  // Goes on with what an earlier run left in `folder`, or begins. Error{io}.
  PartialFile(std::filesystem::path folder, std::string etag, std::uint64_t size);
  // Leaves the file for the next run, unless it was committed or removed.
  ~PartialFile() = default;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  std::uint64_t size() const { return journal_.size; }
  std::uint64_t reused() const;  // bytes of an earlier run, as long as they are believed
  std::uint64_t have() const;

  // The first bytes that are missing and that nobody fetches, `wanted` at most; nullopt when there are none
  // now.
  std::optional<Claim> claim(std::uint64_t wanted);
  void release(const Claim& claim);
  // Writes at the claim's position and moves it. Error{io}.
  Written write(Claim& claim, std::span<const std::byte> bytes);
  // Forgets everything; claims of before are stale. The new one is of the whole file.
  Claim restart();

  // Waits until more than `offset` bytes from the beginning are there, a tenth of a second at most. Returns
  // how many are.
  std::uint64_t wait_for_front(std::uint64_t offset);
  std::uint64_t generation() const;
  // Bytes that are there; Error{io}.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  // After every byte was verified: cuts the journal off, makes the file durable, gives it its name. Other
  // runs' leftovers of the same blob go.
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
  std::size_t front_piece_ = 0;   // all before it are whole
  std::uint64_t have_ = 0, generation_ = 0;
  int writers_ = 0;
};

// Bytes on the disk in files that an earlier or another run has of this blob.
std::uint64_t partial_bytes(const std::filesystem::path& folder, const std::string& etag);

}  // namespace inferno::hub
