#include "hub/download/download.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/sizes.h"
#include "hub/download/work.h"

namespace inferno::hub {
namespace {

constexpr std::chrono::milliseconds patience{100};
constexpr std::chrono::milliseconds others_patience{200};
constexpr std::uint64_t overhead = 1 << 20;  // journals, folders and links
constexpr int first_connections = 2;
constexpr double fast_connection = 100e6;  // bytes a second
constexpr std::uint64_t first_request = std::uint64_t{8} << 20;

// Long enough that waiting for answers costs a fortieth, and no longer, so that the hasher, which needs the
// first bytes first, is never far behind.
std::uint64_t next_request(std::uint64_t fetched, double seconds, double first_byte_seconds) {
  const double rate = static_cast<double>(fetched) / std::max(seconds, 1e-3);
  const double wanted = rate * std::clamp(first_byte_seconds * 40, 0.02, 4.0);
  return static_cast<std::uint64_t>(std::clamp(wanted, static_cast<double>(first_request), 128e6));
}

}  // namespace

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
    if (!file->item.is_present()) continue;
    file->had = file->item.file.size;
    file->state = FileState::verifying;  // there, but run() has not yet said so
  }
}

void Download::Work::require_space() const {
  std::uint64_t needed = 0;
  for (const auto& file : files_) {
    if (file->state != FileState::waiting) continue;
    const std::uint64_t there = partial_bytes(file->item.partial_folder, file->item.file.etag());
    needed += file->item.file.size - std::min(file->item.file.size, there);
  }
  if (needed == 0 || files_.empty()) return;
  const std::filesystem::path& folder = files_.front()->item.partial_folder;
  const std::uint64_t free = free_space(folder);
  if (needed + overhead <= free) return;
  fail(
      ErrorKind::io,
      fmt::format("{}: {} are needed and {} are free", folder.string(), human_size(needed), human_size(free)),
      {.why = {},
       .next = "free some space (inferno list, inferno rm), or put the cache on a larger disk: export "
               "HF_HOME=/some/folder"});
}

bool Download::Work::is_over() const {
  return is_stopped_ || (is_cancelled_ && is_cancelled_());
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
  started_ = std::chrono::steady_clock::now();
  std::vector<std::thread> connections;
  for (int job = 0; job < jobs_; ++job) {
    connections.emplace_back([this, job] {
      try {
        connect_and_work(job);
      } catch (...) {
        stop(std::current_exception());
      }
    });
  }
  for (std::thread& connection : connections) connection.join();
  for (const auto& file : files_) {
    if (file->verifier.joinable()) file->verifier.join();
    file->partial.reset();
    file->lock.reset();
  }
  if (failure_) std::rethrow_exception(failure_);
  if (is_cancelled_ && is_cancelled_()) fail(ErrorKind::network, "interrupted");
}

// Two connections begin at once, the others one after another, and only as long as each brings little: many
// help where every one is slow, and cost where one fills the line.
bool Download::Work::is_wanted(int index) {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    std::uint64_t fetched = 0;
    bool is_finished = true;
    for (const auto& file : files_) {
      fetched += file->fetched;
      is_finished = is_finished && file->state == FileState::finished;
    }
    if (is_finished) return false;
    const auto time = std::chrono::steady_clock::now() - started_;
    const double rate =
        static_cast<double>(fetched) / std::max(std::chrono::duration<double>(time).count(), 1e-3);
    if (index < first_connections) return true;
    if (time >= (index - first_connections + 1) * patience && rate < index * fast_connection) return true;
    changed_.wait_for(lock, patience);
  }
  return false;
}

void Download::Work::connect_and_work(int index) {
  if (!is_wanted(index)) return;
  std::optional<HttpClient> http;
  std::uint64_t wanted = first_request;
  while (auto task = next_task(wanted)) {
    if (!http) http.emplace(settings_, gate_, [this] { return is_over(); });
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t from = task->claim.position;
    fetch(*http, *task);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::uint64_t fetched = task->claim.position - std::min(from, task->claim.position);
    wanted = next_request(fetched, seconds, task->first_byte_seconds);
  }
}

// Blocks until there is something to do; nullopt when there never will be.
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
      const bool is_due = std::chrono::steady_clock::now() >= file->look_again;
      if (is_closed && !file->is_being_opened && is_due) {
        to_open = file.get();
        break;
      }
    }
    if (is_finished) return std::nullopt;
    if (to_open == nullptr) {
      changed_.wait_for(lock, patience);
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
  const auto claim = file.partial->claim(file.takes_ranges ? wanted : UINT64_MAX);
  if (!claim) return std::nullopt;
  return Task{.file = &file, .partial = file.partial, .claim = *claim};
}

// Takes the lock and looks again: another process may have brought the file meanwhile, or be at it.
void Download::Work::open(FileWork& file) {
  const DownloadItem& item = file.item;
  auto lock = FileLock::try_take(item.lock);
  if (item.is_present()) return finish(file);
  if (!lock) {
    const std::lock_guard guard(mutex_);
    file.state = FileState::elsewhere;
    file.look_again = std::chrono::steady_clock::now() + others_patience;
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
      verify(file, partial);
    } catch (...) {
      stop(std::current_exception());
    }
  });
  changed_.notify_all();
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
                        .fetched = file->fetched,
                        .state = file->state};
    if (file->state == FileState::finished) one.have = one.size;
    all.size += one.size;
    all.have += one.have;
    all.fetched += one.fetched;
    all.finished += one.state == FileState::finished ? 1 : 0;
    all.files.push_back(std::move(one));
  }
  return all;
}

}  // namespace inferno::hub
