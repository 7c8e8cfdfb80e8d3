#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/cpu_topology.h"
#include "base/start_threads.h"
#include "base/system_memory.h"

namespace inferno {
namespace {

constexpr int spins_before_yield = 2000;  // some 40 us: longer than the gap between two layers' loops
constexpr int yields_before_sleep = 50;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // as long as a pause on x86-64; "yield" does nothing on most processors
#endif
}

void pin(std::thread& thread, const std::vector<int>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &mask);
  pthread_setaffinity_np(thread.native_handle(), sizeof(mask), &mask);  // a hint: failing costs only speed
}

}  // namespace

int usable_cores() {
  const auto cores = static_cast<int>(one_for_each_core(allowed_cpus()).size());
  const std::optional<double> quota = cpu_quota();
  return quota ? static_cast<int>(std::clamp(*quota + 0.5, 1.0, static_cast<double>(cores))) : cores;
}

ThreadPool::ThreadPool(int threads) : threads_(threads > 0 ? threads : usable_cores()) {
  const std::vector<std::vector<int>> places = places_of(threads_, one_for_each_core(allowed_cpus()));
  start_threads(workers_, threads_ - 1, [this](int index) { serve(index + 1); }, [this] { stop(); });
  if (places.empty()) return;
  for (std::size_t i = 0; i < workers_.size(); ++i) pin(workers_[i], places[i + 1]);
  if (places[0].size() > 1) return;
  for (const std::vector<int>& place : places) cpus_.push_back(place[0]);
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stop_ = true;
  epoch_.fetch_add(2);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

// The caller is not pinned, because every thread it starts later would inherit that. If it happens to run on
// the CPU of a worker, the two would compute one after the other: it is moved to its own CPU and released
// there.
void ThreadPool::keep_caller_off_workers() {
  constexpr std::uint32_t loops_between_looks = 32;
  if (cpus_.empty() || loops_++ % loops_between_looks != 0) return;
  const auto worker_cpus = std::span(cpus_).subspan(1, static_cast<std::size_t>(threads_) - 1);
  if (std::ranges::find(worker_cpus, sched_getcpu()) == worker_cpus.end()) return;
  cpu_set_t before, own;
  CPU_ZERO(&own);
  CPU_SET(static_cast<std::size_t>(cpus_[0]), &own);
  if (sched_getaffinity(0, sizeof(before), &before) != 0) return;
  if (sched_setaffinity(0, sizeof(own), &own) == 0) sched_setaffinity(0, sizeof(before), &before);
}

void ThreadPool::run(const Task& task) {
  if (task.count <= 0) return;
  if (threads_ == 1 || task.count <= task.grain) {
    task.call(task.work, {0, task.count, 0});
    return;
  }
  keep_caller_off_workers();
  task_ = task;
  next_.store(0, std::memory_order_relaxed);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  work_on_pieces(0);
  // Closing before looking at the visitors, while workers enter before looking at the epoch (all
  // sequentially consistent): a worker that is not counted here finds the task closed.
  epoch_.fetch_add(1);
  for (int tries = 0; visitors_.load() != 0; ++tries) {
    if (tries < spins_before_yield) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::work_on_pieces(int worker) {
  try {
    const std::int64_t first_piece = task_.count * 7 / (8 * threads_);
    for (std::int64_t begin = next_.load(std::memory_order_relaxed); begin < task_.count;) {
      const std::int64_t left = task_.count - begin;
      const std::int64_t piece = begin < first_piece * threads_ ? first_piece : left / (2 * threads_);
      const std::int64_t end = std::min(begin + std::max(task_.grain, piece), task_.count);
      if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      task_.call(task_.work, {begin, end, worker});
      begin = next_.load(std::memory_order_relaxed);
    }
  } catch (...) {
    next_.store(task_.count, std::memory_order_relaxed);
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::wait_for_task(std::uint32_t seen) const {
  const auto is_new = [seen](std::uint32_t epoch) { return epoch % 2 == 1 && epoch != seen; };
  for (int tries = 0; tries < spins_before_yield + yields_before_sleep; ++tries) {
    if (is_new(epoch_.load()) || stop_) return;
    if (tries < spins_before_yield) {
      relax();
    } else {
      std::this_thread::yield();
    }
  }
  for (;;) {
    const std::uint32_t epoch = epoch_.load();
    if (is_new(epoch) || stop_) return;
    epoch_.wait(epoch);
  }
}

void ThreadPool::serve(int worker) {
  std::uint32_t seen = 0;
  while (!stop_) {
    wait_for_task(seen);
    visitors_.fetch_add(1);
    const std::uint32_t epoch = epoch_.load();
    if (epoch % 2 == 1 && !stop_) {
      work_on_pieces(worker);
      seen = epoch;
    }
    visitors_.fetch_sub(1);
  }
}

}  // namespace inferno
