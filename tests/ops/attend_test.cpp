// attend: grouped heads, windows, sinks, ragged batches over scattered blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/attend_scene.h"
#include "ops/backends.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class Attend : public BackendTest {
 protected:
  void expect_agreement(const AttendCase& c) {
    SCOPED_TRACE(testing::Message() << "heads " << c.spec.heads << "/" << c.spec.kv_heads << " of "
                                    << c.spec.head_dim << ", window " << c.spec.window
                                    << (c.spec.sinks ? ", sinks" : "") << ", blocks of " << c.block_size
                                    << (c.cache ? ", cache " + name_of(*c.cache) : ""));
    const BlockSpec block = {.attention = c.spec, .mlp = DenseMlp{.hidden = 1, .activation = {}}};
    ASSERT_EQ(device.backend().refuses(block, WeightFormat::f32), std::nullopt);
    AttendScene scene(device, c);
    const HostMatrix found = scene.found();
    EXPECT_TRUE(agrees(found, scene.expected(), relative_tolerance(device.activations())));
  }
};

AttentionSpec spec(int heads, int kv_heads, int head_dim) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
}

// A whole prompt, a decode, the next chunk of a prompt, a first token, another decode.
const std::vector<Sequence> mixed = {{37, 37}, {50, 1}, {45, 7}, {1, 1}, {33, 1}};

TEST_P(Attend, AgreesForAWholePrompt) {
  for (const int length : {1, 2, 17, 40}) {
    expect_agreement({.spec = spec(4, 2, 64), .sequences = {{length, length}}});
  }
}

TEST_P(Attend, AgreesForOneTokenAfterManyOthers) {
  for (const int length : {2, 16, 17, 255, 700}) {
    expect_agreement({.spec = spec(4, 2, 64), .sequences = {{length, 1}}});
  }
}

TEST_P(Attend, AgreesForMixedBatchesInEveryHeadSize) {
  for (const int head_dim : {32, 48, 64, 80, 128}) {
    expect_agreement({.spec = spec(4, 2, head_dim), .sequences = mixed});
  }
}

TEST_P(Attend, SharesKeysBetweenGroupsOfHeads) {
  expect_agreement({.spec = spec(4, 4, 32), .sequences = mixed});
  expect_agreement({.spec = spec(6, 2, 32), .sequences = mixed});
  expect_agreement({.spec = spec(8, 1, 32), .sequences = mixed});
  expect_agreement({.spec = spec(7, 1, 32), .sequences = mixed});
}

TEST_P(Attend, SeesOnlyItsWindow) {
  for (const int window : {1, 5, 16, 24, 40, 1000}) {
    AttentionSpec windowed = spec(4, 2, 32);
    windowed.window = window;
    expect_agreement({.spec = windowed, .sequences = mixed});
    expect_agreement({.spec = windowed, .sequences = {{300, 1}, {200, 9}}});
  }
}

TEST_P(Attend, LetsSinksJoinTheSoftmax) {
  for (const int window : {0, 16}) {
    AttentionSpec sinking = spec(8, 2, 64);
    sinking.window = window;
    sinking.sinks = true;
    expect_agreement({.spec = sinking, .sequences = mixed});
    expect_agreement({.spec = sinking, .sequences = {{130, 1}}});
  }
}

// More queries than tiles of 64, 128 and 192, more than 128 keys, and both in one batch.
TEST_P(Attend, AgreesForLongPrompts) {
  for (const int head_dim : {8, 64, 72, 128}) {
    for (const int window : {0, 100, 128}) {
      AttentionSpec long_spec = spec(4, 2, head_dim);
      long_spec.window = window;
      long_spec.sinks = window == 100;
      expect_agreement({.spec = long_spec, .sequences = {{450, 450}}});
      expect_agreement(
          {.spec = long_spec, .sequences = {{700, 200}, {300, 1}, {129, 129}, {500, 17}, {64, 16}}});
    }
  }
}

// More tiles of queries than a device has SMs, and more keys than a ring has stages.
TEST_P(Attend, AgreesWhereBlocksTakeSeveralTiles) {
  AttentionSpec many = spec(64, 8, 64);
  many.sinks = true;
  expect_agreement({.spec = many, .sequences = {{700, 450}}});
  expect_agreement({.spec = spec(40, 8, 128), .sequences = {{600, 450}}});
}

TEST_P(Attend, FollowsBlocksOfEverySize) {
  for (const int block_size : {1, 4, 32, 64}) {
    expect_agreement({.spec = spec(4, 2, 32), .sequences = mixed, .block_size = block_size});
  }
}

// Scores of a few hundred overflow the exponential unless the largest score is subtracted.
TEST_P(Attend, SurvivesLargeScores) {
  expect_agreement({.spec = spec(4, 2, 64), .sequences = mixed, .spread = 6.0});
}

// Whatever the cache is rounded to, queries see the rounded values.
TEST_P(Attend, ReadsCachesOfEveryTypeThatTheBackendTakes) {
  int taken = 0;
  for (const CacheTypes types : {CacheTypes{DType::f32, DType::f32},
                                 {DType::f16, DType::f16},
                                 {DType::bf16, DType::bf16},
                                 {DType::q8_0, DType::q8_0},
                                 {DType::f8_e4m3, DType::f8_e4m3},
                                 {DType::q8_0, DType::f16},
                                 {DType::f32, DType::q8_0},
                                 {DType::f8_e4m3, DType::bf16}}) {
    for (const int head_dim : {32, 64, 80, 96, 7, 33}) {
      AttentionSpec shape = spec(head_dim == 64 ? 7 : 4, head_dim == 64 ? 1 : 2, head_dim);
      if (device.backend().refuses_cache(shape, types)) continue;
      ++taken;
      shape.window = head_dim >= 80 ? 24 : 0;
      shape.sinks = head_dim >= 80;
      expect_agreement(
          {.spec = shape, .sequences = mixed, .block_size = head_dim == 7 ? 1 : 16, .cache = types});
      if (head_dim != 64 && head_dim != 33) continue;
      expect_agreement({.spec = shape, .sequences = {{700, 1}, {129, 129}}, .block_size = 4, .cache = types});
    }
  }
  EXPECT_GT(taken, 0);
}

TEST_P(Attend, TakesAnyNumberOfSequences) {
  std::vector<Sequence> many;
  for (int i = 0; i < 33; ++i) many.push_back({1 + i * 5 % 37, 1});
  expect_agreement({.spec = spec(4, 2, 32), .sequences = many});
}

INSTANTIATE_TEST_SUITE_P(Ops, Attend, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
