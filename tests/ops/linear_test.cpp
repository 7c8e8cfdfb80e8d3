// linear: every format, shapes with odd tails, few and many tokens, several parts, bias.
#include <gtest/gtest.h>

#include <tuple>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class LinearOperation : public FormatTest {
 protected:
  struct Part {
    WeightFormat format;
    int rows;
    bool is_reordered = false;
  };

  struct Outcome {
    HostMatrix found, expected;
  };
  Outcome multiply(const std::vector<Part>& parts, int cols, int tokens, bool with_bias, std::uint64_t seed);
  bool can_be_reordered() const;  // formats of checkpoints quantized in order of activation
  void expect_agreement(const std::vector<Part>& parts, int cols, int tokens, bool with_bias);

  DType result = device.activations();
};

LinearOperation::Outcome LinearOperation::multiply(const std::vector<Part>& parts, int cols, int tokens,
                                                   bool with_bias, std::uint64_t seed) {
  HostMatrix input = random_matrix(tokens, cols, 1.0, seed);
  const Matrix in = device.upload(input, device.activations());
  Linear weights;
  int features = 0;
  for (const Part& part : parts) features += part.rows;
  HostMatrix bias = random_matrix(1, features, 1.0, seed + 1);
  if (with_bias) weights.bias = device.upload(bias, DType::f32);

  std::vector<HostMatrix> expected;
  std::size_t first = 0;
  for (const Part& part : parts) {
    const TestWeight& weight = device.weight({.format = part.format, .rows = part.rows, .cols = cols},
                                             seed + 2 + first, part.is_reordered);
    weights.parts.push_back(&weight.packed);
    const auto count = static_cast<std::size_t>(part.rows);
    const std::span<const double> part_bias = std::span(bias.values).subspan(first, count);
    expected.push_back(
        reference::linear(input, weight.values[0], with_bias ? part_bias : std::span<const double>{}));
    first += count;
  }
  const Matrix out = device.poisoned(tokens, features, result);
  device.backend().linear(out, in, weights);
  return {device.download(out), reference::side_by_side(expected)};
}

// A single sum may cancel, and then its relative error is large: a few results are never judged alone.
void LinearOperation::expect_agreement(const std::vector<Part>& parts, int cols, int tokens, bool with_bias) {
  constexpr int enough = 16;
  std::uint64_t seed = 1000;
  Outcome all = multiply(parts, cols, tokens, with_bias, seed);
  while (all.found.rows > 0 && all.found.rows * all.found.cols < enough) {
    const Outcome more = multiply(parts, cols, tokens, with_bias, seed += 1000);
    all.found.append(more.found);
    all.expected.append(more.expected);
  }
  EXPECT_TRUE(agrees(all.found, all.expected, relative_tolerance(device.activations())))
      << "features " << all.found.cols << ", cols " << cols << ", tokens " << tokens;
}

TEST_P(LinearOperation, AgreesInShapesWithOddTails) {
  constexpr int max_products = 900'000;  // a debug build needs a few milliseconds for these
  const std::vector<int> columns = column_counts(format);
  int index = 0;
  for (const int tokens : {0, 1, 2, 3, 7, 16, 33, 100}) {  // 0: a step may need no logits
    for (const int rows : {1, 5, 16, 33, 100}) {
      int cols = columns[static_cast<std::size_t>(index) % columns.size()];
      if (tokens * rows * cols > max_products) cols = columns.front();
      if (tokens * rows * cols <= max_products && is_turn(index)) {
        expect_agreement({{format, rows}}, cols, tokens, /*with_bias=*/rows % 2 == 0);
      }
      ++index;
    }
  }
}

// Decoding multiplies one token, with separate kernels.
TEST_P(LinearOperation, AgreesForOneTokenInEveryShape) {
  int index = 0;
  for (const int rows : {1, 5, 16, 33, 100}) {
    for (const int cols : column_counts(format)) {
      if (is_turn(index++)) expect_agreement({{format, rows}}, cols, /*tokens=*/1, /*with_bias=*/false);
    }
  }
}

TEST_P(LinearOperation, AgreesForPartsOfDifferentFormats) {
  const AttentionSpec attention = {.heads = 1, .kv_heads = 1, .head_dim = 64, .scale = 1.0f};
  const BlockSpec block = {.attention = attention, .mlp = DenseMlp{.hidden = 1, .activation = {}}};
  WeightFormat other = format;
  do {
    other = static_cast<WeightFormat>((static_cast<std::size_t>(other) + 1) % all_formats.size());
  } while (device.backend().refuses(block, other));
  const std::vector<Part> parts = {{format, 33}, {other, 5}, {WeightFormat::f16, 1}, {format, 16}};
  expect_agreement(parts, /*cols=*/256, /*tokens=*/1, /*with_bias=*/true);
  expect_agreement(parts, /*cols=*/256, /*tokens=*/7, /*with_bias=*/true);
  expect_agreement(parts, /*cols=*/512, /*tokens=*/3, /*with_bias=*/false);
}

// On a GPU batches are multiplied in groups of up to 24 tokens.
TEST_P(LinearOperation, AgreesForBatchesOfEverySize) {
  int index = 0;
  for (const int tokens : {9, 17, 24, 25, 40, 64}) {
    if (!is_turn(index++)) continue;
    expect_agreement({{format, 40}, {format, 24}, {format, 17}}, /*cols=*/256, tokens, /*with_bias=*/true);
  }
}

bool LinearOperation::can_be_reordered() const {
  const std::string_view name = name_of(format);
  return name.starts_with("int4") || name.starts_with("int8") || name == "q4_0" || name == "q8_0";
}

TEST_P(LinearOperation, FollowsTheOrderOfColumns) {
  if (!can_be_reordered()) GTEST_SKIP() << "no checkpoint has such weights in another order";
  int index = 0;
  for (const int tokens : {1, 2, 8, 20, 100}) {
    if (!is_turn(index++)) continue;
    expect_agreement({{format, 40, true}, {format, 24, false}, {format, 17, true}}, /*cols=*/384, tokens,
                     /*with_bias=*/true);
  }
}

TEST_P(LinearOperation, FollowsTheOrderOfColumnsOfGateAndUp) {
  if (!can_be_reordered()) GTEST_SKIP() << "no checkpoint has such weights in another order";
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  constexpr int hidden = 40, cols = 384;
  for (const bool is_same : {true, false}) {
    for (const int tokens : {1, 5, 40}) {
      const auto part = [&](std::uint64_t seed) -> const TestWeight& {
        return device.weight({.format = format, .rows = hidden, .cols = cols}, seed, true);
      };
      const TestWeight &gate = part(21), &up = part(is_same ? 21 : 22);
      HostMatrix input = random_matrix(tokens, cols, 0.05, 23);
      const Matrix in = device.upload(input, device.activations());
      const Matrix wide = device.poisoned(tokens, 2 * hidden, DType::f32);
      const Matrix out = device.poisoned(tokens, hidden, device.activations());
      device.backend().linear_activated(out, wide, in, {{&gate.packed, &up.packed}, {}}, silu);
      const HostMatrix expected =
          reference::activate(reference::side_by_side({reference::linear(input, gate.values[0], {}),
                                                       reference::linear(input, up.values[0], {})}),
                              silu);
      EXPECT_TRUE(agrees(device.download(out), expected, 2.0 * relative_tolerance(device.activations())))
          << tokens << " tokens, " << (is_same ? "one order" : "two orders");
    }
  }
}

// On a GPU several bf16 parts are one product with tiles of 128 tokens and 128 rows; no tile has rows of two
// parts.
TEST_P(LinearOperation, AgreesForPartsOfManyTokens) {
  if (format != WeightFormat::bf16) return;
  int index = 0;
  for (const int tokens : {130, 300}) {
    for (const auto& [first, second, third] :
         {std::tuple{200, 72, 136}, {128, 5, 1}, {33, 129, 256}, {1, 300, 128}}) {
      if (!is_turn(index++)) continue;
      expect_agreement({{format, first}, {format, second}, {format, third}}, /*cols=*/136, tokens,
                       /*with_bias=*/true);
    }
  }
  if (!is_turn(0)) return;
  result = DType::f32;
  expect_agreement({{format, 200}, {format, 72}, {format, 136}}, /*cols=*/448, 130, /*with_bias=*/true);
  // More parts than fit in one product, and another format between them.
  expect_agreement({{format, 40}, {format, 24}, {format, 17}, {format, 130}, {format, 9}}, 64, 100, true);
  expect_agreement({{format, 40}, {format, 24}, {WeightFormat::q8_0, 17}, {format, 130}}, 64, 100, false);
}

// More columns than fit in shared memory with a group: they are processed in slabs that add to a float
// result.
TEST_P(LinearOperation, AgreesForBatchesOfManyColumns) {
  if (!is_turn(0)) return;
  result = DType::f32;
  expect_agreement({{format, 24}}, /*cols=*/5120, /*tokens=*/20, /*with_bias=*/true);
}

INSTANTIATE_TEST_SUITE_P(Ops, LinearOperation,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);

}  // namespace
}  // namespace inferno
