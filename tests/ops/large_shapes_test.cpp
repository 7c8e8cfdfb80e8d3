// Shapes large enough that every stage, tail and tile border of a device's kernels is passed.
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
class LargeAttend : public BackendTest {};

TEST_P(LargeLinear, AgreesWithFewAndWithManyTokens) {
  const int block = block_elements(format);
  const int cols = block == 256 ? 2816 : 2880;  // neither is a whole number of stages
  for (const int rows : {264, 131}) {
    const TestWeight& weight = device.weight({.format = format, .rows = rows, .cols = cols}, 5);
    HostMatrix bias = random_matrix(1, rows, 1.0, 6);
    for (const int tokens : {1, 8, 20, 40, 150}) {
      HostMatrix input = random_matrix(tokens, cols, 1.0, 7);
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
  }
}

// Many rows: several weight rows' tiles in one block.
TEST_P(LargeLinear, AgreesWithManyRows) {
  const int block = block_elements(format), rows = 17001, cols = block == 256 ? 256 : 96;
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

class LargeGemm : public BackendTest {
 protected:
  void expect_agreement(const TestWeight& weight, int tokens) {
    const int rows = weight.packed.rows;
    HostMatrix input = random_matrix(tokens, weight.packed.cols, 1.0, 11);
    HostMatrix bias = random_matrix(1, rows, 1.0, 12);
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
};

// Tiles are 128 x 128, and tokens up to half a tile are a case of their own.
TEST_P(LargeGemm, AgreesAroundTheBordersOfTiles) {
  for (const int cols : {72, 200, 512}) {  // neither 72 nor 200 is a whole number of stages
    for (const int rows : {127, 128, 129}) {
      const TestWeight& weight =
          device.weight({.format = WeightFormat::bf16, .rows = rows, .cols = cols}, 10);
      for (const int tokens : {63, 64, 65, 127, 128, 129, 300}) expect_agreement(weight, tokens);
    }
  }
}

// 399 tiles: three or more for every multiprocessor, so that the groups of a block take turns several times.
TEST_P(LargeGemm, AgreesWhereABlockTakesSeveralTiles) {
  const TestWeight& weight = device.weight({.format = WeightFormat::bf16, .rows = 17001, .cols = 96}, 13);
  expect_agreement(weight, 300);
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

}  // namespace
}  // namespace inferno
