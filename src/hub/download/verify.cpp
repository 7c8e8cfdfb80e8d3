// The hasher: one for each file that is being fetched. It follows the bytes that are there without a gap, so
// that a file is verified the moment its last byte has come.
#include <fmt/format.h>

#include "base/error.h"
#include "hub/digest.h"
#include "hub/download/work.h"

namespace inferno::hub {
namespace {

constexpr std::size_t step = 1 << 20;

}  // namespace

// False when the file was begun anew, or all is over.
bool Download::Work::hash_once(FileWork& file, PartialFile& partial, std::string& digest) {
  const std::uint64_t generation = partial.generation();
  Digest hasher(file.item.file.etag(), partial.size());
  std::vector<std::byte> buffer(std::min<std::uint64_t>(step, partial.size()));
  std::uint64_t at = 0;
  while (at < partial.size()) {
    const std::uint64_t front = partial.wait_for_front(at);
    if (is_over() || partial.generation() != generation) return false;
    if (front <= at) continue;
    const auto some = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), front - at));
    partial.read(at, some);
    hasher.update(some);
    at += some.size();
  }
  digest = hasher.hex();
  return partial.generation() == generation;
}

void Download::Work::verify(FileWork& file, const std::shared_ptr<PartialFile>& partial) {
  const std::string& expected = file.item.file.etag();
  std::string digest;
  while (true) {
    if (!hash_once(file, *partial, digest)) {
      if (is_over()) return;
      continue;
    }
    if (digest == expected) break;
    if (partial->reused() == 0) {
      partial->remove();
      fail(ErrorKind::corrupt,
           fmt::format("{}: the bytes that came are not those of the hub: expected {} {}, found {}",
                       file.item.file.path, algorithm_of(expected), expected, digest),
           {.why = "the transfer or the hub's storage damaged it; what came was removed",
            .next = "run the same command again"});
    }
    // Bytes of an earlier run are among them, which a power cut may have spoiled.
    partial->release(partial->restart());
    const std::lock_guard lock(mutex_);
    file.had = 0;
    changed_.notify_all();
  }
  {
    const std::lock_guard lock(mutex_);
    file.state = FileState::verifying;
  }
  partial->commit(file.item.destination);
  finish(file);
}

}  // namespace inferno::hub
