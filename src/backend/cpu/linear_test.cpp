#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "backend/cpu/kernels.h"
#include "backend/cpu/panels.h"
#include "backend/cpu/scene.h"

namespace inferno::cpu {
namespace {

// Rows of `in` times the weight's values, in double precision.
std::vector<double> product(Scene& scene, const Matrix& in, const std::vector<const Weight*>& parts,
                            const Matrix& bias = {}) {
  std::vector<double> out;
  for (int t = 0; t < in.rows; ++t) {
    std::size_t column = 0;
    for (const Weight* part : parts) {
      const std::vector<float>& values = scene.values(*part);
      for (int r = 0; r < part->rows; ++r, ++column) {
        double sum = bias ? static_cast<double>(floats(bias)[column]) : 0.0;
        for (int c = 0; c < part->cols; ++c) {
          const auto at = static_cast<std::size_t>(r) * static_cast<std::size_t>(part->cols) +
                          static_cast<std::size_t>(c);
          sum += static_cast<double>(floats(in, t)[c]) * static_cast<double>(values[at]);
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

class LinearAtLevel : public testing::TestWithParam<IsaLevel> {};

TEST_P(LinearAtLevel, MultipliesEveryFormatAndBatchSize) {
  Scene scene(GetParam());
  for (const WeightFormat format : all_formats) {
    const int cols = block_elements(format) == 1 ? 77 : 5 * block_elements(format);
    const Weight& weight = scene.random_weight(format, 37, cols);
    for (const int tokens : {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 33, 100}) {
      const Matrix in = scene.random(tokens, cols);
      const Matrix out = scene.random(tokens, 37);  // what was there must not matter
      scene.backend->linear(out, in, {{&weight}, {}});
      EXPECT_LT(relative_error(out, product(scene, in, {&weight})), 1e-4)
          << inferno::name_of(format) << ", " << tokens << " tokens";
    }
  }
}

TEST_P(LinearAtLevel, PutsPartsOfDifferentFormatsSideBySideAndAddsTheBias) {
  Scene scene(GetParam());
  const std::vector<const Weight*> parts = {&scene.random_weight(WeightFormat::q4_0, 19, 256),
                                            &scene.random_weight(WeightFormat::bf16, 1, 256),
                                            &scene.random_weight(WeightFormat::q6_k, 50, 256)};
  const Matrix bias = scene.random(1, 70);
  for (const int tokens : {1, 6, 40}) {
    const Matrix in = scene.random(tokens, 256);
    const Matrix out = scene.zeros(tokens, 70);
    scene.backend->linear(out, in, {parts, bias});
    EXPECT_LT(relative_error(out, product(scene, in, parts, bias)), 1e-4);
  }
}

// A random order of the columns of each of `count` matrices.
std::vector<std::int32_t> random_orders(Scene& scene, int cols, int count) {
  std::vector<std::int32_t> orders;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> one(static_cast<std::size_t>(cols));
    std::iota(one.begin(), one.end(), 0);
    std::shuffle(one.begin(), one.end(), scene.bits());
    orders.insert(orders.end(), one.begin(), one.end());
  }
  return orders;
}

TEST_P(LinearAtLevel, TakesTheColumnsOfEachPartInItsOrder) {
  Scene scene(GetParam());
  const auto ordered = [&](WeightFormat format, int rows) {
    return &scene.random_weight(format, rows, 256, 1, random_orders(scene, 256, 1));
  };
  const std::vector<const Weight*> parts = {
      ordered(WeightFormat::q4_0, 19), &scene.random_weight(WeightFormat::int4_64, 5, 256),
      ordered(WeightFormat::fp8_32, 20), ordered(WeightFormat::nf4_32, 6)};
  const Matrix bias = scene.random(1, 50);
  for (const int tokens : {1, 6, 40}) {
    const Matrix in = scene.random(tokens, 256);
    const Matrix out = scene.zeros(tokens, 50);
    scene.backend->linear(out, in, {parts, bias});
    EXPECT_LT(relative_error(out, product(scene, in, parts, bias)), 1e-4);
  }
}

TEST_P(LinearAtLevel, TakesTheColumnsOfEachExpertInItsOrder) {
  Scene scene(GetParam());
  constexpr int rows = 24, cols = 128;
  const Weight& weight =
      scene.random_weight(WeightFormat::int4_32, rows, cols, 3, random_orders(scene, cols, 3));
  const Matrix in = scene.random(5, cols), out = scene.zeros(5, rows);
  const ExpertBatch batches[] = {{.expert = 2, .first = 0, .input = {}, .count = 3},
                                 {.expert = 0, .first = 3, .input = {}, .count = 2}};
  ThreadPool pool(2);
  Scratch scratch(2);
  multiply({pool, scratch, kernels_for(GetParam())}, out, in, {{&weight}, {}}, batches);
  std::vector<double> expected;
  for (int t = 0; t < 5; ++t) {
    const std::size_t first = (t < 3 ? 2u : 0u) * rows * cols;
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0.0;
      for (std::size_t c = 0; c < cols; ++c) {
        sum += static_cast<double>(floats(in, t)[c]) *
               static_cast<double>(scene.values(weight)[first + r * cols + c]);
      }
      expected.push_back(sum);
    }
  }
  EXPECT_LT(relative_error(out, expected), 1e-4);
}

TEST_P(LinearAtLevel, KeepsSmallActivationsBesideHugeOnes) {
  // Real models have a few activations a thousand times the others; their neighbours must survive.
  Scene scene(GetParam());
  const Weight& weight = scene.random_weight(WeightFormat::q8_0, 64, 2048);
  const Matrix in = scene.random(3, 2048);
  for (int t = 0; t < 3; ++t) floats(in, t)[100 + t] = 3000.0f;
  const std::vector<double> whole = product(scene, in, {&weight});
  const Matrix out = scene.zeros(3, 64);
  scene.backend->linear(out, in, {{&weight}, {}});
  EXPECT_LT(relative_error(out, whole), 1e-4);
  for (int t = 0; t < 3; ++t) floats(in, t)[100 + t] = 0.0f;
  const Matrix alone = scene.zeros(3, 64);
  scene.backend->linear(alone, in, {{&weight}, {}});
  EXPECT_LT(relative_error(alone, product(scene, in, {&weight})), 1e-4);
}

TEST_P(LinearAtLevel, GivesZeroForZeroAndTheSameRowInEveryBatch) {
  Scene scene(GetParam());
  const Weight& weight = scene.random_weight(WeightFormat::q4_k, 48, 512);
  const Matrix in = scene.random(21, 512);
  std::fill_n(floats(in, 20), 512, 0.0f);
  const Matrix together = scene.zeros(21, 48), alone = scene.zeros(1, 48);
  scene.backend->linear(together, in, {{&weight}, {}});
  for (int t = 0; t < 21; ++t) {
    Matrix one = in.top(1);
    one.data = reinterpret_cast<std::byte*>(floats(in, t));
    scene.backend->linear(alone, one, {{&weight}, {}});
    Matrix row = together.top(1);
    row.data = reinterpret_cast<std::byte*>(floats(together, t));
    EXPECT_LT(relative_error(row, values_of(alone)), 1e-5);
  }
  for (int r = 0; r < 48; ++r) EXPECT_EQ(floats(together, 20)[r], 0.0f);
}

// Levels with a tile unit promise the bits of the vector kernels, which compute batches too small for it.
class LinearInTiles : public testing::TestWithParam<IsaLevel> {
 protected:
  void SetUp() override {
    if (!can_run(GetParam())) GTEST_SKIP() << "this CPU has no " << name_of(GetParam());
  }
};

std::vector<float> found_at(IsaLevel level, WeightFormat format, int rows, int cols, int tokens) {
  Scene scene(level);
  const Weight& weight = scene.random_weight(format, rows, cols);
  const Matrix in = scene.random(tokens, cols), bias = scene.random(1, rows);
  // The largest whole numbers of either sign side by side, then one that leaves its neighbours zero.
  for (int c = 0; c < 32; ++c) floats(in, tokens - 1)[c] = c % 3 == 0 ? 4.0f : -4.0f;
  floats(in)[cols - 1] = 1e6f;
  const Matrix out = scene.zeros(tokens, rows);
  scene.backend->linear(out, in, {{&weight}, bias});
  return {floats(out), floats(out, tokens)};
}

TEST_P(LinearInTiles, GivesTheBitsOfTheVectorKernels) {
  for (const WeightFormat format : all_formats) {
    if (!has_integers(format)) continue;
    const int elements = block_elements(format);
    const int short_cols = elements > 32 ? elements : 3 * elements, long_cols = 1024 + 2 * elements;
    for (const auto& [rows, cols, tokens] : {std::tuple{37, short_cols, 9},
                                             {16, short_cols, 16},
                                             {1, short_cols, 33},
                                             {83, long_cols, 12},
                                             {20, long_cols, 41}}) {
      EXPECT_EQ(found_at(GetParam(), format, rows, cols, tokens),
                found_at(IsaLevel::avx512_vnni, format, rows, cols, tokens))
          << inferno::name_of(format) << ", " << rows << " rows, " << cols << " columns, " << tokens
          << " tokens";
    }
  }
}

// Few tokens are multiplied by vectors, which must round as the unit does.
TEST_P(LinearInTiles, GivesARowTheSameBitsInEveryBatch) {
  for (const auto& [rows, cols] : {std::pair{37, 77}, {16, 1}, {20, 512}, {83, 1091}}) {
    Scene scene(GetParam());
    const Weight& weight = scene.random_weight(WeightFormat::bf16, rows, cols);
    const Matrix in = scene.random(53, cols), bias = scene.random(1, rows), alone = scene.zeros(1, rows);
    for (int c = 0; c < cols; ++c) {  // products below the normal numbers, and sums of very different ones
      floats(in, 1)[c] *= 1e-38f;
      floats(in, 2)[c] *= c % 3 == 0 ? 1e30f : 1e-30f;
    }
    for (const int tokens : {2, 3, 4, 5, 16, 17, 32, 53}) {
      const Matrix together = scene.zeros(tokens, rows);
      scene.backend->linear(together, in.top(tokens), {{&weight}, bias});
      for (int t = 0; t < tokens; ++t) {
        Matrix one = in.top(1);
        one.data = reinterpret_cast<std::byte*>(floats(in, t));
        scene.backend->linear(alone, one, {{&weight}, bias});
        EXPECT_TRUE(std::equal(floats(alone), floats(alone, 1), floats(together, t)))
            << cols << " columns, row " << t << " of " << tokens;
      }
    }
  }
}

TEST_P(LinearInTiles, ShowsWhatIsNotANumberInItsRowAlone) {
  Scene scene(GetParam());
  const Weight& weight = scene.random_weight(WeightFormat::q4_k, 20, 256);
  const Matrix in = scene.random(16, 256), out = scene.zeros(16, 20);
  floats(in, 5)[7] = std::numeric_limits<float>::infinity();
  scene.backend->linear(out, in, {{&weight}, {}});
  for (int t = 0; t < 16; ++t) EXPECT_EQ(std::isnan(floats(out, t)[3]), t == 5) << t;
}

INSTANTIATE_TEST_SUITE_P(Cpu, LinearInTiles, testing::Values(IsaLevel::amx_model, IsaLevel::amx), level_name);
INSTANTIATE_TEST_SUITE_P(Cpu, LinearAtLevel, testing::ValuesIn(levels_here()), level_name);

}  // namespace
}  // namespace inferno::cpu
