#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backend/cpu/scene.h"

namespace inferno::cpu {
namespace {

constexpr int block_size = 4;
constexpr int cache_blocks = 256;

// Sequences that have `past` positions in the cache and bring `fresh` rows.
struct Ragged {
  std::vector<int> past, fresh;
};

struct Step {
  StepInputs inputs;
  KvLayer cache;
  Matrix qkv;
};

// Blocks are handed out in a scrambled order; those wholly before the window are -1.
Step make_step(Scene& scene, const AttentionSpec& spec, const Ragged& ragged) {
  std::vector<int> order(cache_blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), scene.bits());
  std::vector<std::int32_t> positions, slots, starts = {0}, lengths, table;
  const int most = (std::ranges::max(ragged.past) + std::ranges::max(ragged.fresh)) / block_size + 1;
  for (std::size_t s = 0; s < ragged.past.size(); ++s) {
    const int length = ragged.past[s] + ragged.fresh[s];
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(most), -1);
    const int first = spec.window > 0 ? std::max(0, ragged.past[s] - spec.window + 1) / block_size : 0;
    for (int b = first; b * block_size < length; ++b) {
      blocks[static_cast<std::size_t>(b)] = order.back();
      order.pop_back();
    }
    for (int p = ragged.past[s]; p < length; ++p) {
      positions.push_back(p);
      slots.push_back(blocks[static_cast<std::size_t>(p / block_size)] * block_size + p % block_size);
    }
    starts.push_back(static_cast<std::int32_t>(positions.size()));
    lengths.push_back(length);
    table.insert(table.end(), blocks.begin(), blocks.end());
  }
  const int rows = static_cast<int>(positions.size());
  const int sequences = static_cast<int>(lengths.size());
  const int kv_width = spec.kv_heads * spec.head_dim;
  Step step;
  step.inputs.positions = scene.indices(positions, rows);
  step.inputs.query_start = scene.indices(starts, sequences + 1);
  step.inputs.context_len = scene.indices(lengths, sequences);
  step.inputs.groups = {{scene.indices(slots, rows), scene.indices(table, sequences)}};
  step.inputs.block_size = block_size;
  step.cache = {scene.random(cache_blocks * block_size, kv_width),
                scene.random(cache_blocks * block_size, kv_width)};
  step.qkv = scene.random(rows, spec.heads * spec.head_dim + 2 * kv_width);
  return step;
}

// The definition, one query at a time, in double precision.
std::vector<double> attended(const Step& step, const AttentionSpec& spec, const Matrix& sinks) {
  std::vector<double> out;
  const auto row_of = [&](int sequence, int p) {
    return integers(step.inputs.groups[0].block_table, sequence)[p / block_size] * block_size +
           p % block_size;
  };
  for (int s = 0; s < step.inputs.context_len.rows; ++s) {
    for (int r = integers(step.inputs.query_start)[s]; r < integers(step.inputs.query_start)[s + 1]; ++r) {
      for (int h = 0; h < spec.heads; ++h) {
        const int own = integers(step.inputs.positions)[r];
        const int first = spec.window > 0 ? std::max(0, own - spec.window + 1) : 0;
        const int kv = h / (spec.heads / spec.kv_heads) * spec.head_dim;
        double sum = sinks ? std::exp(static_cast<double>(floats(sinks)[h])) : 0.0;
        std::vector<double> result(static_cast<std::size_t>(spec.head_dim));
        for (int p = first; p <= own; ++p) {
          double score = 0.0;
          for (int d = 0; d < spec.head_dim; ++d) {
            score += static_cast<double>(floats(step.qkv, r)[h * spec.head_dim + d]) *
                     static_cast<double>(floats(step.cache.keys, row_of(s, p))[kv + d]);
          }
          const double share = std::exp(score * static_cast<double>(spec.scale));
          sum += share;
          for (int d = 0; d < spec.head_dim; ++d) {
            result[static_cast<std::size_t>(d)] +=
                share * static_cast<double>(floats(step.cache.values, row_of(s, p))[kv + d]);
          }
        }
        for (const double x : result) out.push_back(x / sum);
      }
    }
  }
  return out;
}

double attention_error(Scene& scene, const AttentionSpec& spec, const Ragged& ragged) {
  const Step step = make_step(scene, spec, ragged);
  AttentionWeights weights;
  if (spec.sinks) weights.sinks = scene.random(1, spec.heads);
  const Matrix out = scene.random(step.qkv.rows, spec.heads * spec.head_dim);
  scene.backend->attend(out, step.qkv, {spec, weights, step.inputs, step.inputs.groups[0], step.cache});
  return relative_error(out, attended(step, spec, weights.sinks));
}

AttentionSpec heads(int query, int kv, int dim) {
  AttentionSpec spec;
  spec.heads = query;
  spec.kv_heads = kv;
  spec.head_dim = dim;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(dim));
  return spec;
}

class AttentionAtLevel : public testing::TestWithParam<IsaLevel> {};

TEST_P(AttentionAtLevel, FollowsTheDefinitionForRaggedBatches) {
  Scene scene(GetParam());
  const Ragged mixed = {{0, 37, 130, 5}, {9, 1, 40, 3}};
  for (const auto& [query, kv, dim] : {std::array{14, 2, 64}, std::array{4, 4, 16}, std::array{8, 1, 80},
                                       std::array{6, 3, 128}, std::array{3, 1, 7}, std::array{2, 2, 33}}) {
    EXPECT_LT(attention_error(scene, heads(query, kv, dim), mixed), 2e-6) << query << "/" << kv << "/" << dim;
  }
}

TEST_P(AttentionAtLevel, LooksNoFurtherBackThanTheWindow) {
  Scene scene(GetParam());
  for (const int window : {1, 2, 5, 16, 33, 128, 1000}) {
    AttentionSpec spec = heads(8, 2, 32);
    spec.window = window;
    EXPECT_LT(attention_error(scene, spec, {{150, 0, 63}, {1, 70, 20}}), 2e-6) << "window " << window;
  }
}

TEST_P(AttentionAtLevel, LetsSinksJoinTheSoftmax) {
  Scene scene(GetParam());
  AttentionSpec spec = heads(8, 1, 64);
  spec.sinks = true;
  EXPECT_LT(attention_error(scene, spec, {{0, 90, 20}, {40, 1, 17}}), 2e-6);
  spec.window = 24;
  EXPECT_LT(attention_error(scene, spec, {{0, 90, 20}, {40, 1, 17}}), 2e-6);
}

TEST_P(AttentionAtLevel, SplitsALongContextWithoutChangingIt) {
  Scene scene(GetParam(), /*threads=*/4);
  EXPECT_LT(attention_error(scene, heads(2, 1, 64), {{900}, {1}}), 2e-6);
  AttentionSpec spec = heads(4, 1, 64);
  spec.sinks = true;
  EXPECT_LT(attention_error(scene, spec, {{800}, {2}}), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Cpu, AttentionAtLevel, testing::ValuesIn(levels_here()), level_name);

}  // namespace
}  // namespace inferno::cpu
