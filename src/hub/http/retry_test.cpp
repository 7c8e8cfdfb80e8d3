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

TEST(Retry, SaysWhatIsWaitedFor) {
  RateGate gate(1);
  EXPECT_FALSE(gate.pause());
  gate.hold("https://hub:443", Milliseconds(60'000));
  gate.explain("https://hub:443", {.reason = "hub: asks to wait (status 429)", .next_try = 2, .tries = 8});
  const auto pause = gate.pause();
  ASSERT_TRUE(pause);
  EXPECT_EQ(pause->reason, "hub: asks to wait (status 429)");
  EXPECT_EQ(pause->next_try, 2);
  EXPECT_GT(pause->left, Milliseconds(50'000));
  std::string shown;
  RateGate other(1);
  other.sleep(Milliseconds(60'000), {.reason = "hub: cannot be reached", .next_try = 3, .tries = 5}, [&] {
    if (const auto now = other.pause()) shown = now->reason;
    return true;
  });
  EXPECT_EQ(shown, "hub: cannot be reached");
  EXPECT_FALSE(other.pause());
}

TEST(Retry, NamesTheReasonOfAnotherTry) {
  Outcome outcome;
  outcome.response.status = 503;
  EXPECT_EQ(reason_to_wait(outcome, "https://hub/a?b=c"), "hub: is busy (status 503)");
  outcome.response.headers.add("Retry-After: 4");
  EXPECT_EQ(reason_to_wait(outcome, "https://hub/a"), "hub: asks to wait (status 503)");
  outcome.trouble = Trouble::unreachable;
  EXPECT_EQ(reason_to_wait(outcome, "http://127.0.0.1:8000/x"), "127.0.0.1:8000: cannot be reached");
}

}  // namespace
}  // namespace inferno::hub
