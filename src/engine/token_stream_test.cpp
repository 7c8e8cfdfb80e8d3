#include "engine/token_stream.h"

#include <gtest/gtest.h>

#include <thread>

namespace inferno {
namespace {

using std::chrono::milliseconds;

TEST(TokenStream, GivesEventsInOrderAndThenNothingAtOnce) {
  TokenStream stream;
  Sampled sampled;
  sampled.token = 4;
  stream.publish(sampled);
  stream.publish(Finished{});
  EXPECT_EQ(std::get<Sampled>(*stream.next(milliseconds(0))).token, 4);
  EXPECT_TRUE(std::holds_alternative<Finished>(*stream.next(milliseconds(0))));
  EXPECT_FALSE(stream.next(std::chrono::hours(1)).has_value());
}

TEST(TokenStream, LosesPatience) {
  TokenStream stream;
  EXPECT_FALSE(stream.next(milliseconds(1)).has_value());
}

TEST(TokenStream, EndsWithItsLastChoice) {
  TokenStream stream(2);
  stream.publish(Finished{.choice = 1});
  EXPECT_TRUE(stream.next(milliseconds(0)).has_value());
  EXPECT_FALSE(stream.next(milliseconds(1)).has_value());
  stream.publish(Finished{.choice = 0});
  stream.publish(Sampled{});  // too late
  EXPECT_TRUE(stream.next(milliseconds(0)).has_value());
  EXPECT_FALSE(stream.next(std::chrono::hours(1)).has_value());
}

TEST(TokenStream, WakesAReaderWithoutAThread) {
  int woken = 0;
  TokenStream stream(1, [&] { ++woken; });
  stream.publish(Sampled{});
  EXPECT_EQ(woken, 1);
  stream.publish(Failed{"gone"});
  EXPECT_EQ(woken, 2);
}

TEST(TokenStream, WakesOnceForSeveralEvents) {
  int woken = 0;
  TokenStream stream(1, [&] { ++woken; });
  EXPECT_TRUE(stream.push(Sampled{}));
  EXPECT_TRUE(stream.push(Finished{}));
  EXPECT_FALSE(stream.push(Sampled{}));  // too late
  EXPECT_EQ(woken, 0);
  stream.wake();
  EXPECT_EQ(woken, 1);
  stream.publish(Sampled{});
  EXPECT_EQ(woken, 1);
}

TEST(TokenStream, WakesAReaderThatWaits) {
  TokenStream stream;
  std::thread reader([&] { EXPECT_TRUE(stream.next(std::chrono::hours(1)).has_value()); });
  stream.publish(Failed{"gone"});
  reader.join();
}

}  // namespace
}  // namespace inferno
