#include "hub/download/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/sizes.h"
#include "hub/digest.h"
#include "hub/download/partial_file.h"
#include "hub/files.h"

namespace inferno::hub {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds poll_interval{100};
constexpr std::chrono::milliseconds lock_poll_interval{200};
constexpr std::uint64_t overhead = 1 << 20;  // journals, folders and links
constexpr int first_connections = 2;
constexpr double fast_connection = 100e6;  // bytes per second
constexpr std::uint64_t first_request = std::uint64_t{8} << 20;
constexpr std::size_t hash_step = 1 << 20;

// Long enough that waiting for responses costs one part in forty, and no longer: the hasher needs the first
// bytes of a file first and must not fall far back.
std::uint64_t next_request_bytes(std::uint64_t fetched, double seconds, double first_byte_seconds) {
  const double rate = static_cast<double>(fetched) / std::max(seconds, 1e-3);
  const double wanted = rate * std::clamp(first_byte_seconds * 40, 0.02, 4.0);
  return static_cast<std::uint64_t>(std::clamp(wanted, static_cast<double>(first_request), 128e6));
}

// One file of the download. The mutex of the Work guards all but `fetch`.
struct FileWork {
  explicit FileWork(DownloadItem chosen) : item(std::move(chosen)), fetch(item.file) {}

  DownloadItem item;
  FetchedFile fetch;
  FileState state = FileState::waiting;
  bool is_being_opened = false;
  Clock::time_point look_again{};  // when to try the lock again that another process holds
  std::optional<FileLock> lock;
  std::shared_ptr<PartialFile> partial;
  std::uint64_t had = 0;        // bytes of earlier runs
  std::uint64_t resumable = 0;  // bytes of earlier runs before the file is opened
  std::thread verifier;
};

// The next range for one connection.
struct Task {
  FileWork* file = nullptr;
  std::shared_ptr<PartialFile> partial;
  Claim claim;
};

}  // namespace

class Download::Work {
 public:
  Work(HubSettings settings, DownloadSource source, std::vector<DownloadItem> items, int jobs,
       std::shared_ptr<RateGate> gate, IsCancelled is_cancelled);

  void run();
  void require_space() const;
  DownloadProgress progress() const;

 private:
  // Connections: each is a thread that fetches one range after another.
  void connect_and_fetch(int index);
  bool is_wanted(int index);  // waits; false when no work is left for this connection
  std::optional<Task> next_task(std::uint64_t wanted);
  std::optional<Task> task_of(FileWork& file, std::uint64_t wanted);
  void open(FileWork& file);
  bool is_over() const { return is_stopped_ || (is_cancelled_ && is_cancelled_()); }
  void stop(std::exception_ptr reason);

  // Hashers: one thread per file. It follows the bytes that are present without a gap, so that a file is
  // verified as soon as its last byte is received.
  void verify(FileWork& file, PartialFile& partial);
  bool hash_once(FileWork& file, PartialFile& partial, std::string& digest);
  void finish(FileWork& file);

  HubSettings settings_;
  DownloadSource source_;
  int jobs_;
  std::shared_ptr<RateGate> gate_;
  IsCancelled is_cancelled_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<FileWork>> files_;
  Clock::time_point started_{};
  std::atomic<bool> is_stopped_ = false;
  std::exception_ptr failure_;
};

Download::Download(HubSettings settings, DownloadSource source, std::vector<DownloadItem> items, int jobs,
                   std::shared_ptr<RateGate> gate, IsCancelled is_cancelled)
    : work_(std::make_unique<Work>(std::move(settings), std::move(source), std::move(items), jobs,
                                   std::move(gate), std::move(is_cancelled))) {}

Download::~Download() = default;

void Download::run() {
  work_->run();
}

void Download::require_space() const {
  work_->require_space();
}

DownloadProgress Download::progress() const {
  return work_->progress();
}

Download::Work::Work(HubSettings settings, DownloadSource source, std::vector<DownloadItem> items, int jobs,
                     std::shared_ptr<RateGate> gate, IsCancelled is_cancelled)
    : settings_(std::move(settings)),
      source_(std::move(source)),
      jobs_(jobs),
      gate_(std::move(gate)),
      is_cancelled_(std::move(is_cancelled)) {
  for (DownloadItem& item : items) files_.push_back(std::make_unique<FileWork>(std::move(item)));
  for (const auto& file : files_) {
    const HubFile& wanted = file->item.file;
    if (!file->item.is_present()) {
      file->resumable = resumable_bytes(file->item.partial_folder, wanted.etag(), wanted.size);
      continue;
    }
    file->had = file->item.file.size;
    file->state = FileState::verifying;  // complete, but run() has not yet reported it
  }
}

void Download::Work::require_space() const {
  std::uint64_t needed = 0;
  for (const auto& file : files_) {
    if (file->state != FileState::waiting) continue;
    const std::uint64_t stored = partial_bytes(file->item.partial_folder, file->item.file.etag());
    needed += file->item.file.size - std::min(file->item.file.size, stored);
  }
  if (needed == 0 || files_.empty()) return;
  const std::filesystem::path& folder = files_.front()->item.partial_folder;
  const std::uint64_t free = free_space(folder);
  if (needed + overhead <= free) return;
  fail(ErrorKind::io,
       fmt::format("{}: not enough disk space: {} needed, {} free", folder.string(), human_size(needed),
                   human_size(free)),
       {.why = {},
        .next = "free some space (inferno list, inferno rm), or put the cache on a larger disk: export "
                "HF_HOME=/some/folder"});
}

void Download::Work::stop(std::exception_ptr reason) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(reason);
  is_stopped_ = true;
  changed_.notify_all();
}

void Download::Work::run() {
  for (const auto& file : files_) {
    if (file->state == FileState::verifying) finish(*file);
  }
  started_ = Clock::now();
  std::vector<std::thread> connections;
  for (int job = 0; job < jobs_; ++job) {
    connections.emplace_back([this, job] {
      try {
        connect_and_fetch(job);
      } catch (...) {
        stop(std::current_exception());
      }
    });
  }
  for (std::thread& connection : connections) connection.join();
  for (const auto& file : files_) {
    if (file->verifier.joinable()) file->verifier.join();
    const std::lock_guard lock(mutex_);
    if (file->partial) file->had = file->partial->have();  // progress() is also asked after a stop
    file->partial.reset();
    file->lock.reset();
  }
  if (failure_) std::rethrow_exception(failure_);
  if (is_cancelled_ && is_cancelled_()) fail(ErrorKind::network, "interrupted");
}

// Two connections start at once; the others start one by one, and only while the rate per connection is low:
// many connections help if each of them is slow, and cost time if one fills the line.
bool Download::Work::is_wanted(int index) {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    std::uint64_t fetched = 0;
    bool is_finished = true;
    for (const auto& file : files_) {
      fetched += file->fetch.fetched;
      is_finished = is_finished && file->state == FileState::finished;
    }
    if (is_finished) return false;
    const auto time = Clock::now() - started_;
    const double rate =
        static_cast<double>(fetched) / std::max(std::chrono::duration<double>(time).count(), 1e-3);
    if (index < first_connections) return true;
    if (time >= (index - first_connections + 1) * poll_interval && rate < index * fast_connection)
      return true;
    changed_.wait_for(lock, poll_interval);
  }
  return false;
}

void Download::Work::connect_and_fetch(int index) {
  if (!is_wanted(index)) return;
  std::optional<HttpClient> http;
  std::uint64_t wanted = first_request;
  while (auto task = next_task(wanted)) {
    if (!http) http.emplace(settings_, gate_, [this] { return is_over(); });
    const auto begin = Clock::now();
    const std::uint64_t from = task->claim.position;
    const double first_byte_seconds = fetch(*http, source_, task->file->fetch, *task->partial, task->claim);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const std::uint64_t fetched = task->claim.position - std::min(from, task->claim.position);
    wanted = next_request_bytes(fetched, seconds, first_byte_seconds);
    const std::lock_guard lock(mutex_);
    task->file->had = task->partial->reused();  // 0 if the file was restarted
    changed_.notify_all();
  }
}

// Blocks until there is a range to fetch or a file to open; nullopt when there will be none.
std::optional<Task> Download::Work::next_task(std::uint64_t wanted) {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    bool is_finished = true;
    FileWork* to_open = nullptr;
    for (const auto& file : files_) {
      if (file->state == FileState::finished) continue;
      is_finished = false;
      if (auto task = task_of(*file, wanted)) return task;
      const bool is_closed = file->state == FileState::waiting || file->state == FileState::elsewhere;
      if (is_closed && !file->is_being_opened && Clock::now() >= file->look_again) {
        to_open = file.get();
        break;
      }
    }
    if (is_finished) return std::nullopt;
    if (to_open == nullptr) {
      changed_.wait_for(lock, poll_interval);
      continue;
    }
    to_open->is_being_opened = true;
    lock.unlock();
    open(*to_open);
    lock.lock();
    to_open->is_being_opened = false;
  }
  return std::nullopt;
}

std::optional<Task> Download::Work::task_of(FileWork& file, std::uint64_t wanted) {
  if (file.state != FileState::fetching || !file.partial) return std::nullopt;
  const auto claim = file.partial->claim(file.fetch.takes_ranges ? wanted : UINT64_MAX);
  if (!claim) return std::nullopt;
  return Task{.file = &file, .partial = file.partial, .claim = *claim};
}

// Takes the lock, then checks again: another process may have fetched the file, or be fetching it.
void Download::Work::open(FileWork& file) {
  const DownloadItem& item = file.item;
  auto lock = FileLock::try_take(item.lock);
  if (item.is_present()) return finish(file);
  if (!lock) {
    const std::lock_guard guard(mutex_);
    file.state = FileState::elsewhere;
    file.look_again = Clock::now() + lock_poll_interval;
    return;
  }
  auto partial = std::make_shared<PartialFile>(item.partial_folder, item.file.etag(), item.file.size);
  const std::lock_guard guard(mutex_);
  file.lock = std::move(lock);
  file.partial = partial;
  file.had = partial->reused();
  file.state = FileState::fetching;
  file.verifier = std::thread([this, &file, partial] {
    try {
      verify(file, *partial);
    } catch (...) {
      stop(std::current_exception());
    }
  });
  changed_.notify_all();
}

// False when the file was restarted or the download is over.
bool Download::Work::hash_once(FileWork& file, PartialFile& partial, std::string& digest) {
  const std::uint64_t generation = partial.generation();
  Digest hasher(file.item.file.etag(), partial.size());
  std::vector<std::byte> buffer(std::min<std::uint64_t>(hash_step, partial.size()));
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

void Download::Work::verify(FileWork& file, PartialFile& partial) {
  const std::string& expected = file.item.file.etag();
  std::string digest;
  while (true) {
    if (!hash_once(file, partial, digest)) {
      if (is_over()) return;
      continue;
    }
    if (digest == expected) break;
    if (partial.reused() == 0) {
      partial.remove();
      fail(ErrorKind::corrupt,
           fmt::format("{}: checksum mismatch: expected {} {}, received {}", file.item.file.path,
                       algorithm_of(expected), expected, digest),
           {.why = "the transfer or the hub's storage damaged the file; the received bytes were removed",
            .next = "run the same command again"});
    }
    // Some bytes are from an earlier run, and a power failure may have damaged them: fetch all of them again.
    partial.release(partial.restart());
    const std::lock_guard lock(mutex_);
    file.had = 0;
    changed_.notify_all();
  }
  {
    const std::lock_guard lock(mutex_);
    file.state = FileState::verifying;
  }
  partial.commit(file.item.destination);
  finish(file);
}

void Download::Work::finish(FileWork& file) {
  file.item.on_verified();
  const std::lock_guard guard(mutex_);
  file.state = FileState::finished;
  file.partial.reset();
  file.lock.reset();
  changed_.notify_all();
}

DownloadProgress Download::Work::progress() const {
  const std::lock_guard lock(mutex_);
  DownloadProgress all;
  for (const auto& file : files_) {
    FileProgress one = {.path = file->item.file.path,
                        .size = file->item.file.size,
                        .have = file->partial ? file->partial->have() : file->had,
                        .fetched = file->fetch.fetched,
                        .state = file->state};
    if (file->state == FileState::finished) one.have = one.size;
    all.size += one.size;
    all.have += one.have;
    all.fetched += one.fetched;
    if (one.have == 0) all.resumable += file->resumable;
    all.finished += one.state == FileState::finished ? 1 : 0;
    all.files.push_back(std::move(one));
  }
  return all;
}

}  // namespace inferno::hub
