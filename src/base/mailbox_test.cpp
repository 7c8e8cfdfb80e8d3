#include "base/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace inferno {
namespace {

TEST(Mailbox, DeliversEverythingThatManyThreadsPost) {
  Mailbox<int> mailbox;
  std::vector<std::thread> producers;
  for (int producer = 0; producer < 3; ++producer) {
    producers.emplace_back([&mailbox] {
      for (int i = 1; i <= 100; ++i) EXPECT_TRUE(mailbox.post(i));
    });
  }
  int sum = 0;
  while (sum < 3 * 5050) {
    mailbox.wait();
    for (const int message : mailbox.drain()) sum += message;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(sum, 3 * 5050);
}

TEST(Mailbox, RefusesMessagesOnceItIsClosed) {
  Mailbox<int> mailbox;
  EXPECT_TRUE(mailbox.post(1));
  mailbox.close();
  mailbox.wait();
  EXPECT_FALSE(mailbox.post(2));
  EXPECT_EQ(mailbox.drain(), std::vector<int>{1});
}

TEST(Mailbox, WaitsNoLongerThanItIsTold) {
  Mailbox<int> mailbox;
  mailbox.wait_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(mailbox.drain().empty());
  mailbox.post(1);
  mailbox.wait_for(std::chrono::hours(1));
  EXPECT_EQ(mailbox.drain(), std::vector<int>{1});
}

}  // namespace
}  // namespace inferno
