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

TEST(ThreadPool, BurnsNoTimeWhileIdle) {
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](const ThreadPool::Range&) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // long enough to fall asleep
  const std::clock_t before = std::clock();                     // of the whole process
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.02);
}

TEST(ThreadPool, ChoosesAtLeastOneThreadByItself) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(ThreadPool(0).threads(), usable_cores());
}

}  // namespace
}  // namespace inferno
