#include "base/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
  const auto press_three_times = [](std::span<const int> signals) {
    const SignalWatcher watcher(signals);
    for (int press = 0; press < 3; ++press) ::raise(SIGINT);
  };
  EXPECT_EXIT(press_three_times(interrupt_signal), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(press_three_times(stop_signals), testing::KilledBySignal(SIGTERM), "");
}

TEST(SignalWatcherDeathTest, LeavesTheThirdInterruptToAnEarlierHandlerOfSigterm) {
  const auto press_three_times = [] {
    ::signal(SIGTERM, [](int) { ::_exit(7); });
    const SignalWatcher watcher(stop_signals);
    for (int press = 0; press < 3; ++press) ::raise(SIGINT);
  };
  EXPECT_EXIT(press_three_times(), testing::ExitedWithCode(7), "");
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
