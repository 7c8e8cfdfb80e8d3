#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace inferno {
namespace {

TEST(ThreadPool, CoversEveryIndexExactlyOnce) {
  for (const int threads : {1, 2, 3, 9}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 7, 64, 1000}) {
      for (const int grain : {1, 3, 64}) {
        std::vector<int> visits(static_cast<std::size_t>(count));
        pool.parallel_for(count, grain, [&](const ThreadPool::Range& range) {
          for (auto i = range.begin; i < range.end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(count), 1));
      }
    }
  }
}

TEST(ThreadPool, GivesEachWorkerAnIndexOfItsOwn) {
  ThreadPool pool(4);
  std::vector<std::int64_t> sums(4);  // a shared index would be a data race on its element
  for (int loop = 0; loop < 500; ++loop) {
    pool.parallel_for(64, 1, [&](const ThreadPool::Range& range) {
      sums.at(static_cast<std::size_t>(range.worker)) += range.end - range.begin;
    });
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}), 500 * 64);
}

TEST(ThreadPool, MakesEachLoopSeeTheOneBefore) {
  ThreadPool pool(3);
  std::vector<int> values(256, 0);
  for (int loop = 0; loop < 200; ++loop) {
    pool.parallel_for(256, 8, [&](const ThreadPool::Range& range) {
      for (auto i = range.begin; i < range.end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(values[at], loop);
        values[at] = loop + 1;
      }
    });
  }
}

TEST(ThreadPool, ThrowsInTheCallerWhatAWorkerThrew) {
  ThreadPool pool(2);
  const auto explode = [](const ThreadPool::Range&) { throw std::runtime_error("piece"); };
  EXPECT_THROW(pool.parallel_for(8, 1, explode), std::runtime_error);
  int visited = 0;
  pool.parallel_for(1, 1, [&](const ThreadPool::Range&) { ++visited; });
  EXPECT_EQ(visited, 1);
}

// The threads of this process, the caller aside, that run or want to run. CPU time would not show them all:
// on a busy machine a thread that yields in a loop gets next to none.
int busy_threads() {
  int busy = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    const std::string status = read_start(task.path() / "stat", 4096).value_or("");
    const std::size_t name_end = status.rfind(')');  // "17 (name) S ..."
    busy += static_cast<int>(name_end != std::string::npos && status.substr(name_end + 2, 1) == "R");
  }
  return busy;
}

TEST(ThreadPool, BurnsNoTimeWhileIdle) {
  // Falling asleep takes microseconds, but on a busy machine every yield before it costs a slice of time.
  constexpr auto settling_time = std::chrono::seconds(1);
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](const ThreadPool::Range&) {});
  std::this_thread::sleep_for(settling_time);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(busy_threads(), 0) << "round " << round;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(ThreadPool, ChoosesAtLeastOneThreadByItself) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(ThreadPool(0).threads(), usable_cores());
}

}  // namespace
}  // namespace inferno
