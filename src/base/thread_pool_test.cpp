#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <ctime>
#include <numeric>
#include <stdexcept>
#include <vector>

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

double cpu_seconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The caller spins for a while; workers that spin too take about as much time each, however busy the machine
// is. On a busy machine they may need several rounds to fall asleep; a pool that never sleeps fails in all.
TEST(ThreadPool, BurnsNoTimeWhileIdle) {
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](const ThreadPool::Range&) {});
  double own = 0.0, others = 1.0;
  for (int round = 0; round < 20 && others > own / 4; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double process = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID),
                 thread = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    do {
      own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - thread;
    } while (own < 0.05);
    others = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - process - own;
  }
  EXPECT_LT(others, own / 4);
}

TEST(ThreadPool, ChoosesAtLeastOneThreadByItself) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(ThreadPool(0).threads(), usable_cores());
}

}  // namespace
}  // namespace inferno
