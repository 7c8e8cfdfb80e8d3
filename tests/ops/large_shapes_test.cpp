// Shapes large enough to cover every stage, tail and tile boundary of a device's kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attend_scene.h"
#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class LargeLinear : public FormatTest {};
class LargeGemm : public BackendTest {};
class LargeAttend : public BackendTest {};

// A product with bias, for both result types.
void expect_agreement(Device& device, const TestWeight& weight, int tokens) {
  const int rows = weight.packed.rows;
  HostMatrix input = random_matrix(tokens, weight.packed.cols, 1.0, 7);
  HostMatrix bias = random_matrix(1, rows, 1.0, 6);
  const Matrix in = device.upload(input, device.activations());
  Linear linear;
  linear.parts = {&weight.packed};
  linear.bias = device.upload(bias, DType::f32);
  const HostMatrix expected = reference::linear(input, weight.values[0], bias.values);
  for (const DType type : {device.activations(), DType::f32}) {
    const Matrix out = device.poisoned(tokens, rows, type);
    device.backend().linear(out, in, linear);
    EXPECT_TRUE(agrees(device.download(out), expected, relative_tolerance(device.activations())))
        << "rows " << rows << ", tokens " << tokens;
  }
}

TEST_P(LargeLinear, AgreesWithFewAndWithManyTokens) {
  const int cols = 2880 % block_elements(format) == 0 ? 2880 : 2816;  // neither is a multiple of a stage
  for (const int rows : {264, 131}) {
    const TestWeight& weight = device.weight({.format = format, .rows = rows, .cols = cols}, 5);
    for (const int tokens : {1, 8, 20, 40, 150}) expect_agreement(device, weight, tokens);
  }
}

// Many rows: a block computes several tiles of weight rows.
TEST_P(LargeLinear, AgreesWithManyRows) {
  const int block = block_elements(format), rows = 17001, cols = 96 % block == 0 ? 96 : 3 * block;
  const TestWeight& weight = device.weight({.format = format, .rows = rows, .cols = cols}, 8);
  for (const int tokens : {1, 3, 17}) {
    HostMatrix input = random_matrix(tokens, cols, 1.0, 9);
    const Matrix in = device.upload(input, device.activations());
    Linear linear;
    linear.parts = {&weight.packed};
    const Matrix out = device.poisoned(tokens, rows, DType::f32);
    device.backend().linear(out, in, linear);
    EXPECT_TRUE(agrees(device.download(out), reference::linear(input, weight.values[0], {}),
                       relative_tolerance(device.activations())))
        << "tokens " << tokens;
  }
}

// Tiles are 128 x 128, and up to half a tile of tokens is a separate case.
TEST_P(LargeGemm, AgreesAroundTheBordersOfTiles) {
  for (const int cols : {72, 200, 512}) {  // neither 72 nor 200 is a multiple of a stage
    for (const int rows : {127, 128, 129}) {
      const TestWeight& weight =
          device.weight({.format = WeightFormat::bf16, .rows = rows, .cols = cols}, 10);
      for (const int tokens : {63, 64, 65, 127, 128, 129, 300}) expect_agreement(device, weight, tokens);
    }
  }
}

// 399 tiles: three or more for every SM, so that the consumer groups of a block take several turns.
TEST_P(LargeGemm, AgreesWhereABlockTakesSeveralTiles) {
  const TestWeight& weight = device.weight({.format = WeightFormat::bf16, .rows = 17001, .cols = 96}, 13);
  expect_agreement(device, weight, 300);
}

// act(gate, up) of one weight or of two, with biases.
class LargeGated : public BackendTest {
 protected:
  void expect_agreement(const std::vector<const TestWeight*>& parts, int tokens, const ActivationSpec& spec) {
    const int hidden = static_cast<int>(parts.size()) * parts.front()->packed.rows / 2;
    HostMatrix input = random_matrix(tokens, parts.front()->packed.cols, 0.1, 15);
    HostMatrix bias = random_matrix(1, 2 * hidden, 1.0, 16);
    const Matrix in = device.upload(input, device.activations());
    Linear linear;
    linear.bias = device.upload(bias, DType::f32);
    std::vector<HostMatrix> sums;
    for (const TestWeight* part : parts) {
      const std::span<const double> all = bias.values;
      const auto rows = static_cast<std::size_t>(part->packed.rows);
      sums.push_back(reference::linear(input, part->values[0], all.subspan(sums.size() * rows, rows)));
      linear.parts.push_back(&part->packed);
    }
    const Matrix wide = device.poisoned(tokens, 2 * hidden, DType::f32);
    const Matrix out = device.poisoned(tokens, hidden, device.activations());
    device.backend().linear_activated(out, wide, in, linear, spec);
    const HostMatrix expected = reference::activate(reference::side_by_side(sums), spec);
    EXPECT_TRUE(agrees(device.download(out), expected, 2.0 * relative_tolerance(device.activations())))
        << hidden << " hidden, " << tokens << " tokens, " << parts.size() << " parts";
  }
  const TestWeight* weight(int rows, int cols, std::uint64_t seed) {
    return &device.weight({.format = WeightFormat::bf16, .rows = rows, .cols = cols}, seed);
  }
};

TEST_P(LargeGated, AgreesAroundTheBordersOfTiles) {
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  const ActivationSpec clamped = {.kind = Activation::swiglu_clamped, .gated = true, .limit = 1.5f};
  for (const int hidden : {60, 64, 136}) {  // tiles of 64 gate and 64 up rows
    const int cols = 200;
    for (const int tokens : {33, 64, 65, 129, 300}) {
      expect_agreement({weight(2 * hidden, cols, 17)}, tokens, silu);
      expect_agreement({weight(2 * hidden, cols, 17)}, tokens, clamped);
      expect_agreement({weight(hidden, cols, 18), weight(hidden, cols, 19)}, tokens, silu);
    }
  }
}

TEST_P(LargeGated, AgreesWhereABlockTakesSeveralTiles) {
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  expect_agreement({weight(2 * 8504, 96, 20)}, 300, silu);
}

TEST_P(LargeAttend, AgreesAtLongContexts) {
  for (const int head_dim : {64, 128, 96, 256}) {
    for (const int shared : {1, 4, 8}) {
      for (const int window : {0, 128}) {
        const AttentionSpec spec = {.heads = 2 * shared,
                                    .kv_heads = 2,
                                    .head_dim = head_dim,
                                    .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                                    .window = window,
                                    .sinks = shared == 8};
        for (const std::vector<Sequence>& sequences : {std::vector<Sequence>{{3000, 1}},
                                                       {{1500, 1}, {129, 1}, {64, 1}},
                                                       {{700, 300}, {200, 200}, {90, 1}}}) {
          AttendScene scene(device, {.spec = spec, .sequences = sequences, .block_size = 32});
          const HostMatrix found = scene.found();
          EXPECT_TRUE(agrees(found, scene.expected(), relative_tolerance(device.activations())))
              << "heads " << spec.heads << " of " << head_dim << ", window " << window << ", sequences "
              << sequences.size();
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, LargeLinear,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, LargeAttend, testing::ValuesIn(backend_names()), backend_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, LargeGemm, testing::ValuesIn(backend_names()), backend_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, LargeGated, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
