#include "hub/download/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "hub/files.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t min_piece = std::uint64_t{8} << 20;
constexpr std::uint64_t max_pieces = 65'536;
constexpr std::chrono::seconds other_machine_is_gone_after{120};
constexpr std::array<char, 16> magic = {'i', 'n', 'f', 'e', 'r', 'n', 'o', ' ',
                                        'p', 'a', 'r', 't', 'i', 'a', 'l', '1'};

// As stored in the file. Read only on machines of the same kind.
struct Header {
  std::array<char, 16> magic;
  std::uint64_t size, piece_bytes;
  std::array<char, 72> etag;
};
static_assert(sizeof(Header) == 104);

std::uint64_t pieces(std::uint64_t size, std::uint64_t piece_bytes) {
  return size / piece_bytes + (size % piece_bytes != 0 ? 1 : 0);
}

template <std::size_t length>
std::array<char, length> padded(const std::string& text) {
  std::array<char, length> out{};
  std::copy_n(text.begin(), std::min(text.size(), length - 1), out.begin());
  return out;
}

template <std::size_t length>
std::string unpadded(const std::array<char, length>& text) {
  return {text.data(), ::strnlen(text.data(), length)};
}

bool read_at(int descriptor, std::uint64_t offset, void* to, std::size_t count) {
  auto* at = static_cast<char*>(to);
  while (count > 0) {
    const ssize_t some = ::pread(descriptor, at, count, static_cast<off_t>(offset));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    at += some;
    offset += static_cast<std::uint64_t>(some);
    count -= static_cast<std::size_t>(some);
  }
  return true;
}

// The start time of a process in ticks since boot: field 22 of /proc/<pid>/stat. 0 if it does not exist.
std::uint64_t start_of(std::uint64_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(in, text)) return 0;
  const std::size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));  // from the third field on
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return 0;  // dead, but not yet reaped
  for (int number = 4; number < 22; ++number) fields >> skipped;
  std::uint64_t started = 0;
  fields >> started;
  return started;
}

std::string boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(in, text);
  return text.substr(0, text.find('-'));
}

std::uint64_t piece_bytes_for(std::uint64_t size) {
  const std::uint64_t wanted = std::max(min_piece, size / max_pieces + 1);
  return (wanted + min_piece - 1) / min_piece * min_piece;
}

void write_at(int descriptor, std::uint64_t offset, const void* bytes, std::size_t count,
              const std::filesystem::path& path) {
  const auto* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t some = ::pwrite(descriptor, at, count, static_cast<off_t>(offset));
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) fail_for_file(path, "cannot be written", errno);
    at += some;
    offset += static_cast<std::uint64_t>(some);
    count -= static_cast<std::size_t>(some);
  }
}

constexpr std::string_view suffix = ".inferno.incomplete";
// Bytes between two journal entries: the maximum that a kill can lose per connection.
constexpr std::size_t slice = 128 << 10;
constexpr std::chrono::milliseconds front_wait{100};

// All of Inferno's partial files of this blob.
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
  bool is_free = false;  // its process has ended
  std::uint64_t have = 0;
};

// "<etag>.<signature>.inferno.incomplete"
std::optional<Owner> owner_of(const fs::path& path, const std::string& etag) {
  const std::string name = path.filename().string();
  const std::size_t begin = etag.size() + 1, end = name.size() - suffix.size();
  return begin < end ? Owner::of_signature(name.substr(begin, end - begin)) : std::nullopt;
}

Leftover inspect(const fs::path& path, const std::string& etag, std::uint64_t size) {
  Leftover found = {.file = Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)), .journal = {}};
  struct stat status{};
  if (!found.file.is_open() || ::fstat(found.file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    return found;
  const auto owner = owner_of(path, etag);
  found.is_free = !owner || owner->is_gone(std::chrono::seconds(std::time(nullptr) - status.st_mtime));
  found.journal = Journal::read(found.file.number(), etag, size);
  // The process ended between cutting the journal off and the rename: the file is complete and is verified
  // again.
  if (!found.journal && static_cast<std::uint64_t>(status.st_size) == size)
    found.journal = Journal::of_whole(etag, size);
  if (found.journal) {
    for (const std::uint64_t done : found.journal->done) found.have += done;
  }
  return found;
}

struct Resumable {
  fs::path path;
  Leftover leftover;
};

// The largest partial file that no process writes to; an empty path if there is none.
Resumable best_leftover(const fs::path& folder, const std::string& etag, std::uint64_t size) {
  Resumable best;
  for (const fs::path& path : partials_of(folder, etag)) {
    Leftover found = inspect(path, etag, size);
    if (!found.is_free || !found.journal || found.have <= best.leftover.have) continue;
    best = {.path = path, .leftover = std::move(found)};
  }
  return best;
}

}  // namespace

Owner Owner::of_this_process() {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  return {.boot = boot_id(), .pid = pid, .started = start_of(pid)};
}

std::string Owner::signature() const {
  return fmt::format("{}-{}-{}-{}", boot.empty() ? "0" : boot, pid, started, random_name().substr(0, 8));
}

std::optional<Owner> Owner::of_signature(const std::string& text) {
  std::istringstream in(text);
  Owner owner;
  char dash = 0;
  if (!std::getline(in, owner.boot, '-') || !(in >> owner.pid >> dash >> owner.started) || dash != '-')
    return std::nullopt;
  return owner;
}

bool Owner::is_gone(std::chrono::seconds untouched) const {
  if (boot != boot_id()) return untouched > other_machine_is_gone_after;
  const std::uint64_t now = start_of(pid);
  return now == 0 || now != started;
}

std::uint64_t Journal::offset() const {
  constexpr std::uint64_t page = 4096;
  return (size + page - 1) / page * page;
}

std::optional<Journal> Journal::read(int descriptor, const std::string& etag, std::uint64_t size) {
  Journal journal = {.size = size, .piece_bytes = piece_bytes_for(size), .etag = etag, .done = {}};
  Header header{};
  if (!read_at(descriptor, journal.offset(), &header, sizeof header)) return std::nullopt;
  if (header.magic != magic || header.size != size || header.piece_bytes != journal.piece_bytes)
    return std::nullopt;
  if (unpadded(header.etag) != etag) return std::nullopt;
  journal.done.resize(pieces(size, journal.piece_bytes));
  const std::size_t bytes = journal.done.size() * sizeof(std::uint64_t);
  if (!read_at(descriptor, journal.offset() + sizeof header, journal.done.data(), bytes)) return std::nullopt;
  for (std::size_t piece = 0; piece < journal.done.size(); ++piece) {
    if (journal.done[piece] > std::min(journal.piece_bytes, size - piece * journal.piece_bytes))
      return std::nullopt;
  }
  return journal;
}

Journal Journal::of_whole(const std::string& etag, std::uint64_t size) {
  Journal journal = {.size = size, .piece_bytes = piece_bytes_for(size), .etag = etag, .done = {}};
  for (std::uint64_t at = 0; at < size; at += journal.piece_bytes)
    journal.done.push_back(std::min(journal.piece_bytes, size - at));
  return journal;
}

void Journal::write(int descriptor, const std::filesystem::path& path) const {
  const Header header = {.magic = magic, .size = size, .piece_bytes = piece_bytes, .etag = padded<72>(etag)};
  // The header last: without it the journal is invalid.
  write_at(descriptor, offset() + sizeof header, done.data(), done.size() * sizeof(std::uint64_t), path);
  write_at(descriptor, offset(), &header, sizeof header, path);
}

void Journal::write_progress(int descriptor, std::size_t piece, const std::filesystem::path& path) const {
  write_at(descriptor, offset() + sizeof(Header) + piece * sizeof(std::uint64_t), &done[piece],
           sizeof(std::uint64_t), path);
}

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

// Claims the fullest partial file whose process has ended. The rename decides between two claimants.
bool PartialFile::adopt() {
  auto [path, best] = best_leftover(folder_, journal_.etag, journal_.size);
  if (path.empty() || ::rename(path.c_str(), path_.c_str()) != 0) return false;
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
  // Extends the claim over the following empty pieces: one request for all of them, and none for a small
  // rest.
  const std::uint64_t max_bytes = wanted > UINT64_MAX / 2 ? wanted : wanted + journal_.piece_bytes / 2;
  do {
    is_claimed_[piece] = true;
    claim.end = piece_begin(piece) + piece_size(piece);
    ++piece;
  } while (piece < journal_.done.size() && !is_claimed_[piece] && journal_.done[piece] == 0 &&
           claim.end - claim.position + piece_size(piece) <= max_bytes);
  return claim;
}

void PartialFile::release(const Claim& claim) {
  const std::lock_guard lock(mutex_);
  if (claim.generation != generation_ || claim.end == 0) return;
  // Complete pieces keep their flags.
  for (std::size_t piece = (claim.end - 1) / journal_.piece_bytes;; --piece) {
    if (piece_begin(piece) + piece_size(piece) <= claim.position) break;
    is_claimed_[piece] = false;
    if (piece == 0) break;
  }
}

// Records that these bytes are present. The caller holds the lock.
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
  moved_.wait_for(lock, front_wait, [&] { return front() > offset; });
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
    ++generation_;  // later writes are stale
  }
  if (::ftruncate(file_.number(), static_cast<off_t>(journal_.size)) != 0)
    fail_for_file(path_, "cannot be truncated", errno);
  sync_file(file_.number(), path_);
  rename_durably(path_, destination);
  for (const fs::path& path : partials_of(folder_, journal_.etag)) {
    if (inspect(path, journal_.etag, journal_.size).is_free) ::unlink(path.c_str());
  }
}

void PartialFile::remove() {
  ::unlink(path_.c_str());
}

std::uint64_t resumable_bytes(const fs::path& folder, const std::string& etag, std::uint64_t size) {
  return best_leftover(folder, etag, size).leftover.have;
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
