#include "base/signals.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

TEST(SignalWatcher, RecordsTheFirstSignalUntilItIsCleared) {
  SignalWatcher watcher(stop_signals);
  EXPECT_EQ(SignalWatcher::received(), 0);
  ::raise(SIGTERM);
  ::raise(SIGINT);
  EXPECT_EQ(SignalWatcher::received(), SIGTERM);
  watcher.clear();
  EXPECT_EQ(SignalWatcher::received(), 0);
  ::raise(SIGINT);
  EXPECT_EQ(SignalWatcher::received(), SIGINT);
}

TEST(SignalWatcher, RestoresWhatItFound) {
  struct sigaction before{}, after{};
  ::sigaction(SIGHUP, nullptr, &before);
  { const SignalWatcher watcher(stop_signals); }
  ::sigaction(SIGHUP, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(SignalWatcher, RefusesASecondWatcher) {
  const SignalWatcher watcher;
  EXPECT_THROW(SignalWatcher(), Error);
}

TEST(SignalWatcherDeathTest, EndsTheProcessAtTheThirdIgnoredInterrupt) {
  const auto press_three_times = [] {
    const SignalWatcher watcher;
    for (int press = 0; press < 3; ++press) ::raise(SIGINT);
  };
  EXPECT_EXIT(press_three_times(), testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalWatcher, CountsInterruptsAnewAfterClear) {
  SignalWatcher watcher;
  for (int press = 0; press < 6; ++press) {
    ::raise(SIGINT);
    watcher.clear();
  }
  EXPECT_EQ(SignalWatcher::received(), 0);
}

}  // namespace
}  // namespace inferno
