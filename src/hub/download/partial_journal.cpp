#include "hub/download/partial_journal.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include "hub/durable.h"

namespace inferno::hub {
namespace {

constexpr std::uint64_t min_piece = std::uint64_t{8} << 20;
constexpr std::uint64_t max_pieces = 65'536;
constexpr std::chrono::seconds other_machine_is_gone_after{120};
constexpr std::array<char, 16> magic = {'i', 'n', 'f', 'e', 'r', 'n', 'o', ' ',
                                        'p', 'a', 'r', 't', 'i', 'a', 'l', '1'};

// As it stands in the file. Only the machine that wrote it reads it, or one of the same kind.
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

// When a process began, in ticks since the start of the machine: field 22 of /proc/<pid>/stat. 0 when it is
// not there.
std::uint64_t start_of(std::uint64_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(in, text)) return 0;
  const std::size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));  // from the third on
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return 0;  // dead, and its parent has not looked yet
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

std::uint64_t piece_bytes_for(std::uint64_t size) {
  const std::uint64_t wanted = std::max(min_piece, size / max_pieces + 1);
  return (wanted + min_piece - 1) / min_piece * min_piece;
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
  // The progress first: a journal without its header is none.
  write_at(descriptor, offset() + sizeof header, done.data(), done.size() * sizeof(std::uint64_t), path);
  write_at(descriptor, offset(), &header, sizeof header, path);
}

void Journal::write_progress(int descriptor, std::size_t piece, const std::filesystem::path& path) const {
  write_at(descriptor, offset() + sizeof(Header) + piece * sizeof(std::uint64_t), &done[piece],
           sizeof(std::uint64_t), path);
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

}  // namespace inferno::hub
