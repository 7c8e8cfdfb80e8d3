#include "base/start_threads.h"

#include <gtest/gtest.h>

#include <atomic>

namespace inferno {
namespace {

// The copy for the third thread fails, as a thread does for which the system has no room.
struct Body {
  explicit Body(std::atomic<int>& ran) : ran_(&ran) {}
  Body(const Body& other) : ran_(other.ran_), copies_(other.copies_) {
    if (++*copies_ == 3)
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  void operator()(int) const { ++*ran_; }

  std::atomic<int>* ran_;
  std::shared_ptr<int> copies_ = std::make_shared<int>(0);
};

TEST(StartThreads, StopsThoseThatRunIfOneCannotBeStarted) {
  std::vector<std::thread> threads;
  std::atomic<int> ran = 0;
  int stopped = 0;
  const auto stop = [&] {
    for (std::thread& thread : threads) thread.join();
    stopped = static_cast<int>(threads.size());
    threads.clear();
  };
  try {
    start_threads(threads, 4, Body(ran), stop);
    FAIL() << "the failure was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(std::string(error.what()),
              "cannot start 4 threads: " + std::to_string(stopped) + " are running");
  }
  EXPECT_LT(stopped, 4);
  EXPECT_EQ(ran, stopped);
}

TEST(StartThreads, NumbersThem) {
  std::vector<std::thread> threads;
  std::atomic<int> sum = 0;
  start_threads(threads, 4, [&](int index) { sum += index; }, [] {});
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 6);
}

}  // namespace
}  // namespace inferno
