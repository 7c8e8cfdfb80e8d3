#include "hub/http/http.h"

#include <gtest/gtest.h>

namespace inferno::hub {
namespace {

std::optional<Milliseconds> asked(const std::string& line) {
  Headers headers;
  headers.add(line);
  // Sunday, 6 November 1994, 08:49:30
  return requested_wait(headers, std::chrono::system_clock::from_time_t(784'111'770));
}

TEST(Retry, ReadsSecondsAndDates) {
  EXPECT_EQ(asked("Retry-After: 2"), Milliseconds(2000));
  EXPECT_EQ(asked("retry-after: 86400"), Milliseconds(86'400'000));
  EXPECT_EQ(asked("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"), Milliseconds(8000));
  EXPECT_EQ(asked("RateLimit: \"resolvers\";r=0;t=55"), Milliseconds(56'000));
}

TEST(Retry, IgnoresInvalidValues) {
  for (const char* value : {"", "-1", "soon", "1.5", "2 s", "Sun, 06 Nov 1994 08:00:00 GMT"}) {
    EXPECT_EQ(asked(std::string("Retry-After: ") + value), std::nullopt) << value;
  }
  EXPECT_EQ(asked("RateLimit: t=abc"), std::nullopt);
}

TEST(Retry, TreatsAnOverflowAsAVeryLongWait) {
  EXPECT_GT(*asked("Retry-After: 99999999999999999999999"), max_wait);
}

TEST(Retry, BacksOffFromOneToThirtyTwoSecondsWithAQuarterOfJitter) {
  EXPECT_EQ(backoff(1, 0.5), Milliseconds(1000));
  EXPECT_EQ(backoff(1, 0), Milliseconds(750));
  EXPECT_EQ(backoff(4, 0.5), Milliseconds(8000));
  EXPECT_EQ(backoff(20, 1), Milliseconds(40'000));
}

TEST(Retry, HoldsAllConnectionsToAHost) {
  RateGate gate(1);
  gate.hold("https://hub:443", Milliseconds(600));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(gate.pass("https://other:443", {}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Milliseconds(400));
  EXPECT_TRUE(gate.pass("https://hub:443", {}));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, Milliseconds(600));
  gate.hold("https://hub:443", Milliseconds(60'000));
  EXPECT_FALSE(gate.pass("https://hub:443", [] { return true; }));
}

}  // namespace
}  // namespace inferno::hub
