#include "server/admission/waiting_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace inferno::server {
namespace {

using testing::ElementsAre;

TEST(WaitingRoom, LetsInWhatItKeptInOrder) {
  WaitingRoom room;
  std::vector<int> seen;
  EXPECT_TRUE(room.keep(10, [&] { seen.push_back(1); }));
  EXPECT_TRUE(room.keep(10, [&] { seen.push_back(2); }));
  EXPECT_TRUE(seen.empty());
  room.let_in();
  EXPECT_THAT(seen, ElementsAre(1, 2));
  room.let_in();
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

TEST(WaitingRoom, KeepsNothingOnceItIsOpen) {
  WaitingRoom room;
  room.let_in();
  EXPECT_FALSE(room.keep(1, [] { FAIL(); }));
}

TEST(WaitingRoom, IsBoundedInRequestsAndBytes) {
  WaitingRoom many;
  for (std::size_t i = 0; i < WaitingRoom::max_requests; ++i) EXPECT_TRUE(many.keep(1, [] {}));
  EXPECT_FALSE(many.keep(1, [] {}));
  WaitingRoom large;
  EXPECT_TRUE(large.keep(WaitingRoom::max_bytes - 1, [] {}));
  EXPECT_TRUE(large.keep(1, [] {}));
  EXPECT_FALSE(large.keep(1, [] {}));
  EXPECT_TRUE(large.keep(0, [] {}));
}

TEST(WaitingRoom, ATaskMayCallIt) {
  WaitingRoom room;
  bool was_kept = true;
  room.keep(1, [&] { was_kept = room.keep(1, [] {}); });
  room.let_in();
  EXPECT_FALSE(was_kept);
}

}  // namespace
}  // namespace inferno::server
