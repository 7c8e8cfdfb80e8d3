#include "hub/download/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/error.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".inferno.incomplete";
// Between two entries in the journal; what a kill can lose on each connection.
constexpr std::size_t slice = 128 << 10;
constexpr std::chrono::milliseconds front_patience{100};

// Files of ours for this blob, whoever writes them.
std::vector<fs::path> partials_of(const fs::path& folder, const std::string& etag) {
  std::vector<fs::path> found;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(etag + ".") && name.ends_with(suffix)) found.push_back(entry.path());
  }
  return found;
}

struct Leftover {
  Descriptor file;
  std::optional<Journal> journal;
  bool is_free = false;  // nobody writes it any more
  std::uint64_t have = 0;
};

// "<etag>.<signature>.inferno.incomplete"
std::optional<Owner> owner_of(const fs::path& path, const std::string& etag) {
  const std::string name = path.filename().string();
  const std::size_t begin = etag.size() + 1, end = name.size() - suffix.size();
  return begin < end ? Owner::of_signature(name.substr(begin, end - begin)) : std::nullopt;
}

Leftover looked_at(const fs::path& path, const std::string& etag, std::uint64_t size) {
  Leftover found = {.file = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)), .journal = {}};
  struct stat status{};
  if (!found.file.is_open() || ::fstat(found.file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return found;
  const auto owner = owner_of(path, etag);
  found.is_free = !owner || owner->is_gone(std::chrono::seconds(std::time(nullptr) - status.st_mtime));
  found.journal = Journal::read(found.file.number(), etag, size);
  // Verified, cut, and not yet named when its process ended: all is there, and will be verified again.
  if (!found.journal && static_cast<std::uint64_t>(status.st_size) == size)
    found.journal = Journal::of_whole(etag, size);
  if (found.journal) {
    for (const std::uint64_t done : found.journal->done) found.have += done;
  }
  return found;
}

}  // namespace

PartialFile::PartialFile(fs::path folder, std::string etag, std::uint64_t size) : folder_(std::move(folder)) {
  journal_ = {.size = size, .piece_bytes = piece_bytes_for(size), .etag = std::move(etag), .done = {}};
  const std::uint64_t pieces = (size + journal_.piece_bytes - 1) / journal_.piece_bytes;
  path_ = folder_ / fmt::format("{}.{}{}", journal_.etag, Owner::of_this_process().signature(), suffix);
  if (!adopt()) {
    journal_.done.assign(pieces, 0);
    create();
  }
  is_claimed_.assign(pieces, false);
  for (const std::uint64_t done : journal_.done) have_ += done;
  reused_ = have_;
}

// The fullest that nobody writes any more. The rename decides when two processes want the same.
bool PartialFile::adopt() {
  fs::path best_path;
  Leftover best;
  for (const fs::path& path : partials_of(folder_, journal_.etag)) {
    Leftover found = looked_at(path, journal_.etag, journal_.size);
    if (!found.is_free || !found.journal || found.have <= best.have) continue;
    best = std::move(found);
    best_path = path;
  }
  if (best_path.empty() || ::rename(best_path.c_str(), path_.c_str()) != 0) return false;
  file_ = std::move(best.file);
  journal_.done = std::move(best.journal->done);
  journal_.write(file_.number(), path_);
  return true;
}

void PartialFile::create() {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file_.is_open()) fail_for_file(path_, "cannot be created", errno);
  journal_.write(file_.number(), path_);
}

std::uint64_t PartialFile::piece_size(std::size_t piece) const {
  return std::min(journal_.piece_bytes, journal_.size - piece_begin(piece));
}

std::uint64_t PartialFile::have() const {
  const std::lock_guard lock(mutex_);
  return have_;
}

std::uint64_t PartialFile::reused() const {
  const std::lock_guard lock(mutex_);
  return reused_;
}

std::uint64_t PartialFile::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

std::optional<Claim> PartialFile::claim(std::uint64_t wanted) {
  const std::lock_guard lock(mutex_);
  std::size_t piece = front_piece_;
  while (piece < journal_.done.size() && (is_claimed_[piece] || is_whole(piece))) ++piece;
  if (piece == journal_.done.size()) return std::nullopt;
  Claim claim = {.position = piece_begin(piece) + journal_.done[piece], .end = 0, .generation = generation_};
  // On through the pieces after it, as long as they are untouched: one request for all, and none for a small
  // rest.
  const std::uint64_t most = wanted > UINT64_MAX / 2 ? wanted : wanted + journal_.piece_bytes / 2;
  do {
    is_claimed_[piece] = true;
    claim.end = piece_begin(piece) + piece_size(piece);
    ++piece;
  } while (piece < journal_.done.size() && !is_claimed_[piece] && journal_.done[piece] == 0 &&
           claim.end - claim.position + piece_size(piece) <= most);
  return claim;
}

void PartialFile::release(const Claim& claim) {
  const std::lock_guard lock(mutex_);
  if (claim.generation != generation_ || claim.end == 0) return;
  // What is whole by now stays so; the flags of the rest go.
  for (std::size_t piece = (claim.end - 1) / journal_.piece_bytes;; --piece) {
    if (piece_begin(piece) + piece_size(piece) <= claim.position) break;
    is_claimed_[piece] = false;
    if (piece == 0) break;
  }
}

// Under the lock: these bytes, from where a piece's own end, are there.
void PartialFile::record(std::uint64_t offset, std::uint64_t count) {
  while (count > 0) {
    const std::size_t piece = offset / journal_.piece_bytes;
    const std::uint64_t some = std::min(count, piece_begin(piece) + piece_size(piece) - offset);
    expects(piece_begin(piece) + journal_.done[piece] == offset, "a piece is written in order");
    journal_.done[piece] += some;
    journal_.write_progress(file_.number(), piece, path_);
    offset += some;
    count -= some;
    have_ += some;
  }
}

Written PartialFile::write(Claim& claim, std::span<const std::byte> bytes) {
  const bool too_many = bytes.size() > claim.end - claim.position;
  if (too_many) bytes = bytes.first(claim.end - claim.position);
  while (!bytes.empty()) {
    const auto some = bytes.first(std::min(bytes.size(), slice));
    {
      const std::lock_guard lock(mutex_);
      if (claim.generation != generation_) return Written::stale;
      ++writers_;
    }
    std::exception_ptr failure;
    try {
      write_at(file_.number(), claim.position, some.data(), some.size(), path_);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (--writers_ == 0) idle_.notify_all();
    if (failure) std::rethrow_exception(failure);
    record(claim.position, some.size());
    claim.position += some.size();
    moved_.notify_all();
    bytes = bytes.subspan(some.size());
  }
  return too_many ? Written::too_many : Written::ok;
}

Claim PartialFile::restart() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return writers_ == 0; });
  ++generation_;
  std::ranges::fill(journal_.done, 0);
  journal_.write(file_.number(), path_);
  is_claimed_.assign(is_claimed_.size(), true);
  front_piece_ = 0;
  have_ = reused_ = 0;
  moved_.notify_all();
  return {.position = 0, .end = journal_.size, .generation = generation_};
}

std::uint64_t PartialFile::front() {
  while (front_piece_ < journal_.done.size() && is_whole(front_piece_)) ++front_piece_;
  if (front_piece_ == journal_.done.size()) return journal_.size;
  return piece_begin(front_piece_) + journal_.done[front_piece_];
}

std::uint64_t PartialFile::wait_for_front(std::uint64_t offset) {
  std::unique_lock lock(mutex_);
  moved_.wait_for(lock, front_patience, [&] { return front() > offset; });
  return front();
}

void PartialFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t some = ::pread(file_.number(), to.data(), to.size(), static_cast<off_t>(offset));
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) fail_for_file(path_, "cannot be read", errno);
    if (some == 0) fail_for_file(path_, "has become shorter", EIO);
    offset += static_cast<std::uint64_t>(some);
    to = to.subspan(static_cast<std::size_t>(some));
  }
}

void PartialFile::commit(const fs::path& destination) {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return writers_ == 0; });
    ++generation_;  // nobody writes from here on
  }
  if (::ftruncate(file_.number(), static_cast<off_t>(journal_.size)) != 0)
    fail_for_file(path_, "cannot be cut", errno);
  sync_file(file_.number(), path_);
  rename_durably(path_, destination);
  for (const fs::path& path : partials_of(folder_, journal_.etag)) {
    if (looked_at(path, journal_.etag, journal_.size).is_free) ::unlink(path.c_str());
  }
}

void PartialFile::remove() {
  ::unlink(path_.c_str());
}

std::uint64_t partial_bytes(const fs::path& folder, const std::string& etag) {
  std::uint64_t bytes = 0;
  for (const fs::path& path : partials_of(folder, etag)) {
    struct stat status{};
    constexpr std::uint64_t block = 512;
    if (::stat(path.c_str(), &status) == 0) bytes += static_cast<std::uint64_t>(status.st_blocks) * block;
  }
  return bytes;
}

}  // namespace inferno::hub
