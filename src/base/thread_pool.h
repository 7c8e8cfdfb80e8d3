// Workers for loops over rows: the CPU backend's only source of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace inferno {

// CPUs in this process's affinity mask, one per core if there are more than two cores, and at most the CPU
// quota of its control groups (cpu_quota() in system_memory.h). At least 1.
int usable_cores();

// Only one thread may call parallel_for at a time; it takes part as worker 0. The other workers spin for some
// microseconds between loops and then sleep, so that an idle pool costs nothing. A loop never waits for a
// worker that has not begun: on a busy machine the caller does the work itself.
class ThreadPool {
 public:
  struct Range {
    std::int64_t begin = 0, end = 0;
    int worker = 0;  // below threads(): an index for memory of its own
  };

  explicit ThreadPool(int threads);  // 0: usable_cores()
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls work(Range) until [0, count) is covered. Pieces begin large, which suits memory read in order, and
  // shrink to `grain`, so that threads finish at about the same time. Returns when all pieces are done and
  // rethrows the first exception. `work` must not call parallel_for.
  template <class Work>
  void parallel_for(std::int64_t count, std::int64_t grain, const Work& work) {
    run({[](const void* object, const Range& range) { (*static_cast<const Work*>(object))(range); }, &work,
         count, grain});
  }

 private:
  struct Task {
    void (*call)(const void*, const Range&) = nullptr;
    const void* work = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
  };

  void run(const Task& task);
  void work_on_pieces(int worker);
  void keep_caller_off_workers();
  void serve(int worker);
  void stop();
  void wait_for_task(std::uint32_t seen) const;

  int threads_;
  std::vector<int> cpus_;  // of the workers, the caller first; empty if threads are not pinned
  std::uint32_t loops_ = 0;
  Task task_;  // written only while closed and unvisited
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  // On separate cache lines, because one side writes each of these while the other spins on another.
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // odd while a task is open
  alignas(64) std::atomic<std::int32_t> visitors_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace inferno
