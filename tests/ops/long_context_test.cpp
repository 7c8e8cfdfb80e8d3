// The last positions of a context of 131,072 tokens, against double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attend_scene.h"
#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

constexpr int context = 131072;

class LongContext : public BackendTest {};

TEST_P(LongContext, IsAttendedToByItsLastPositions) {
  for (const auto& [window, rows] : {std::pair{0, 1}, {0, 12}, {128, 1}}) {
    const AttentionSpec spec = {
        .heads = 2, .kv_heads = 1, .head_dim = 64, .scale = 0.125f, .window = window, .sinks = true};
    const std::vector<Sequence> sequences = {{context, rows}, {77, 1}};
    AttendScene scene(device, {.spec = spec, .sequences = sequences, .block_size = 32, .spread = 1.5});
    const HostMatrix found = scene.found();
    EXPECT_TRUE(agrees(found, scene.expected(), relative_tolerance(device.activations())))
        << "window " << window << ", " << rows << " rows";
  }
}

// gpt-oss's angles: the fastest pair rotates 20,861 times up to the last position.
HostMatrix rope_table(int half) {
  HostMatrix table(context, 2 * half);
  for (int p = 0; p < context; ++p) {
    for (int i = 0; i < half; ++i) {
      const double angle = p * std::pow(150000.0, -static_cast<double>(i) / half);
      table.row(p)[static_cast<std::size_t>(i)] = std::cos(angle);
      table.row(p)[static_cast<std::size_t>(half + i)] = std::sin(angle);
    }
  }
  return table;
}

TEST_P(LongContext, IsRotatedAndStoredToItsLastPosition) {
  constexpr int heads = 2, head_dim = 64, half = 32, block_size = 32;
  HostMatrix table = rope_table(half);
  const std::vector<std::int32_t> positions = {0, 65535, context - 2, context - 1};
  const auto tokens = static_cast<int>(positions.size());
  HostMatrix input = random_matrix(tokens, 3 * heads * head_dim, 1.0, 52);
  const Matrix qkv = device.upload(input, DType::f32);
  const DType type = device.backend().cache_type();
  const KvLayer cache = {device.poisoned(context, heads * head_dim, type),
                         device.poisoned(context, heads * head_dim, type)};
  const StepInputs step = {
      .tokens = device.upload(positions),
      .positions = device.upload(positions),
      .query_start = device.upload(std::vector<std::int32_t>{0, 1, 2, 3, 4}),
      .context_len = device.upload(std::vector<std::int32_t>{1, 65536, context - 1, context}),
      .logit_rows = device.upload(std::vector<std::int32_t>{0}),
      .groups = {{.slots = device.upload(positions),
                  .block_table =
                      device.upload(std::vector<std::int32_t>(positions.size() * context / block_size),
                                    context / block_size)}},
      .block_size = block_size};
  const AttentionSpec spec = {.heads = heads, .kv_heads = heads, .head_dim = head_dim, .scale = 0.125f};
  const AttentionWeights weights;
  device.backend().rotate_and_store(
      qkv, device.upload(table, DType::f32),
      {.spec = spec, .weights = weights, .step = step, .group = step.groups[0], .cache = cache});
  const HostMatrix found = device.download(qkv), keys = device.download(cache.keys);
  for (int r = 0; r < tokens; ++r) {
    const int position = positions[static_cast<std::size_t>(r)];
    HostMatrix expected(1, 2 * heads * head_dim), rotated(1, 2 * heads * head_dim),
        stored(1, heads * head_dim);
    std::ranges::copy(input.row(r).first(expected.values.size()), expected.values.begin());
    for (std::size_t head = 0; head < 2 * heads; ++head) {
      const auto angles = std::as_const(table).row(position);
      reference::rotate(std::span(expected.values).subspan(head * head_dim, head_dim), angles.first(half),
                        angles.subspan(half));
    }
    std::ranges::copy(found.row(r).first(rotated.values.size()), rotated.values.begin());
    EXPECT_TRUE(agrees(rotated, expected, relative_tolerance(DType::f32))) << "position " << position;
    std::ranges::copy(keys.row(position), stored.values.begin());
    HostMatrix expected_keys(1, heads * head_dim);
    std::copy(expected.values.begin() + heads * head_dim, expected.values.end(),
              expected_keys.values.begin());
    EXPECT_TRUE(agrees(stored, expected_keys, relative_tolerance(type))) << "position " << position;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, LongContext, testing::Values(backend_names().front()), backend_test_name);

}  // namespace
}  // namespace inferno
