#include <gtest/gtest.h>

#include "backend/cpu/scene.h"

namespace inferno::cpu {
namespace {

class RopeAtLevel : public testing::TestWithParam<IsaLevel> {};

// Normalizes and rotates one head in place, in double precision.
void finish_head(double* head, int dim, const float* gain, double epsilon, const float* cosines, int half) {
  if (gain != nullptr) {
    double square = 0.0;
    for (int i = 0; i < dim; ++i) square += head[i] * head[i] / dim;
    for (int i = 0; i < dim; ++i) head[i] *= static_cast<double>(gain[i]) / std::sqrt(square + epsilon);
  }
  for (int i = 0; i < half; ++i) {
    const auto c = static_cast<double>(cosines[i]), s = static_cast<double>(cosines[half + i]);
    const double a = head[i], b = head[half + i];
    head[i] = a * c - b * s;
    head[half + i] = b * c + a * s;
  }
}

void check(IsaLevel level, int dim, int half, bool with_norm) {
  Scene scene(level);
  AttentionSpec spec;
  spec.heads = 3;
  spec.kv_heads = 1;
  spec.head_dim = dim;
  spec.qk_norm = with_norm;
  AttentionWeights weights;
  weights.norm_epsilon = 1e-6f;
  if (with_norm) weights.q_norm = scene.random(1, dim), weights.k_norm = scene.random(1, dim);
  const int rows = 4;
  const Matrix qkv = scene.random(rows, 5 * dim), table = half > 0 ? scene.random(10, 2 * half) : Matrix{};
  const std::vector<std::int32_t> positions = {9, 0, 4, 4}, slots = {3, 11, 0, 7};
  StepInputs step;
  step.positions = scene.indices(positions, rows);
  step.groups = {{scene.indices(slots, rows), {}}};
  const KvLayer cache = {scene.zeros(12, dim), scene.zeros(12, dim)};

  std::vector<double> expected = values_of(qkv);
  for (int r = 0; r < rows; ++r) {
    const float* cosines = half > 0 ? floats(table, positions[static_cast<std::size_t>(r)]) : nullptr;
    for (int h = 0; h < 4; ++h) {
      const float* gain = !with_norm ? nullptr : floats(h < 3 ? weights.q_norm : weights.k_norm);
      finish_head(expected.data() + (r * 5 + h) * dim, dim, gain, 1e-6, cosines, half);
    }
  }
  scene.backend->rotate_and_store(qkv, table, {spec, weights, step, step.groups[0], cache});
  EXPECT_LT(relative_error(qkv, expected), 1e-6);
  for (int r = 0; r < rows; ++r) {
    const int slot = slots[static_cast<std::size_t>(r)];
    for (int d = 0; d < dim; ++d) {
      EXPECT_EQ(floats(cache.keys, slot)[d], floats(qkv, r)[3 * dim + d]);
      EXPECT_EQ(floats(cache.values, slot)[d], floats(qkv, r)[4 * dim + d]);
    }
  }
  for (int d = 0; d < dim; ++d) EXPECT_EQ(floats(cache.keys, 1)[d], 0.0f);
}

TEST_P(RopeAtLevel, RotatesWholeHeads) {
  check(GetParam(), 64, 32, false);
}
TEST_P(RopeAtLevel, RotatesPartOfAHead) {
  check(GetParam(), 80, 16, false);
}
TEST_P(RopeAtLevel, NormalizesBeforeItRotates) {
  check(GetParam(), 34, 17, true);
}
TEST_P(RopeAtLevel, OnlyStoresWhenNothingRotates) {
  check(GetParam(), 16, 0, false);
}

INSTANTIATE_TEST_SUITE_P(Cpu, RopeAtLevel, testing::ValuesIn(levels_here()), level_name);

}  // namespace
}  // namespace inferno::cpu
