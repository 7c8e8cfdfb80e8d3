// The inside of a download: the files, who fetches what next, and how it ends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hub/download/download.h"
#include "hub/download/partial_file.h"
#include "hub/file_lock.h"

namespace inferno::hub {

// A file of the download. What is not atomic is guarded by the mutex of the Work.
struct FileWork {
  explicit FileWork(DownloadItem chosen) : item(std::move(chosen)) {}

  DownloadItem item;
  FileState state = FileState::waiting;
  bool is_being_opened = false;
  std::chrono::steady_clock::time_point look_again{};  // when somebody else has the lock
  std::optional<FileLock> lock;
  std::shared_ptr<PartialFile> partial;
  bool takes_ranges = true;
  std::string signed_url;  // where the hub sent us; for this run
  std::uint64_t had = 0;   // before this run
  std::atomic<std::uint64_t> fetched = 0;
  std::thread verifier;
};

// What one connection does next.
struct Task {
  FileWork* file = nullptr;
  std::shared_ptr<PartialFile> partial;
  Claim claim;
  double first_byte_seconds = 0;  // of the last answer
};

class Download::Work {
 public:
  Work(HubSettings settings, DownloadSource source, std::vector<DownloadItem> items, int jobs,
       std::shared_ptr<RateGate> gate, IsCancelled is_cancelled);

  void run();
  void require_space() const;
  DownloadProgress progress() const;

 private:
  // The connections.
  void connect_and_work(int index);
  bool is_wanted(int index);  // waits; false when there is nothing left to join
  std::optional<Task> next_task(std::uint64_t wanted);
  std::optional<Task> task_of(FileWork& file, std::uint64_t wanted);
  void open(FileWork& file);
  bool is_over() const;
  void stop(std::exception_ptr reason);

  // One claim, until it is fetched (download_fetch.cpp).
  struct Attempt;
  void fetch(HttpClient& http, Task& task);
  Request request_for(const FileWork& file, Attempt& attempt);
  bool take(FileWork& file, Attempt& attempt, const Response& head, std::span<const std::byte> bytes);
  void begin(FileWork& file, Attempt& attempt, const Response& head);
  enum class Then { go_on, wait, give_up_claim };
  Then judge(FileWork& file, Attempt& attempt, const Outcome& outcome);
  [[noreturn]] void fail_without_progress(const FileWork& file, const Attempt& attempt,
                                          const Outcome& outcome);

  // The hasher that follows the front of one file (download_verify.cpp).
  void verify(FileWork& file, const std::shared_ptr<PartialFile>& partial);
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
  std::chrono::steady_clock::time_point started_{};
  std::atomic<bool> is_stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace inferno::hub
