// Every matrix product and attention kernel at three shapes, small enough for compute-sanitizer
// (tests/gpu/sanitize.sh). The tests of the other operations are small anyway.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attend_scene.h"
#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

struct Shape {
  int tokens, rows, cols;
};

// One token, a few, and more than a tile; columns that are and are not a multiple of a stage.
std::vector<Shape> three_shapes(WeightFormat format) {
  return {{1, 640, 2880 % block_elements(format) == 0 ? 2880 : 2816}, {5, 136, 1024}, {72, 264, 512}};
}

class ThreeShapesOfFormat : public FormatTest {};
class ThreeShapes : public BackendTest {};

TEST_P(ThreeShapesOfFormat, OfALinear) {
  for (const Shape& shape : three_shapes(format)) {
    const TestWeight& weight = device.weight({.format = format, .rows = shape.rows, .cols = shape.cols}, 5);
    HostMatrix bias = random_matrix(1, shape.rows, 1.0, 6),
               input = random_matrix(shape.tokens, shape.cols, 1.0, 7);
    const Matrix in = device.upload(input, device.activations());
    Linear linear;
    linear.parts = {&weight.packed};
    linear.bias = device.upload(bias, DType::f32);
    const Matrix out = device.poisoned(shape.tokens, shape.rows, DType::f32);
    device.backend().linear(out, in, linear);
    EXPECT_TRUE(agrees(device.download(out), reference::linear(input, weight.values[0], bias.values),
                       relative_tolerance(device.activations())))
        << shape.tokens << " tokens";
  }
}

TEST_P(ThreeShapesOfFormat, OfAnActivatedLinear) {
  const ActivationSpec silu = {.kind = Activation::silu, .gated = true};
  for (const Shape& shape : three_shapes(format)) {
    const TestWeight& gate = device.weight({.format = format, .rows = shape.rows / 2, .cols = shape.cols}, 5);
    const TestWeight& up = device.weight({.format = format, .rows = shape.rows / 2, .cols = shape.cols}, 8);
    HostMatrix input = random_matrix(shape.tokens, shape.cols, 0.05, 7);
    const Matrix in = device.upload(input, device.activations());
    Linear linear;
    linear.parts = {&gate.packed, &up.packed};
    const Matrix wide = device.poisoned(shape.tokens, shape.rows, DType::f32);
    const Matrix out = device.poisoned(shape.tokens, shape.rows / 2, device.activations());
    device.backend().linear_activated(out, wide, in, linear, silu);
    const HostMatrix expected =
        reference::activate(reference::side_by_side({reference::linear(input, gate.values[0], {}),
                                                     reference::linear(input, up.values[0], {})}),
                            silu);
    EXPECT_TRUE(agrees(device.download(out), expected, 2.0 * relative_tolerance(device.activations())))
        << shape.tokens << " tokens";
  }
}

TEST_P(ThreeShapes, OfAttention) {
  for (const int head_dim : {64, 128}) {
    for (const int window : {0, 128}) {
      const AttentionSpec spec = {.heads = 16,
                                  .kv_heads = 2,
                                  .head_dim = head_dim,
                                  .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                                  .window = window,
                                  .sinks = head_dim == 64};
      for (const std::vector<Sequence>& sequences : {std::vector<Sequence>{{700, 1}},
                                                     {{300, 1}, {129, 1}, {5, 1}},
                                                     {{200, 150}, {40, 40}, {9, 1}},
                                                     {{700, 200}}}) {
        AttendScene scene(device, {.spec = spec, .sequences = sequences, .block_size = 32});
        const HostMatrix found = scene.found();
        EXPECT_TRUE(agrees(found, scene.expected(), relative_tolerance(device.activations())));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ThreeShapesOfFormat,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);
INSTANTIATE_TEST_SUITE_P(Ops, ThreeShapes, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
