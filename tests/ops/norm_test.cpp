// add_norm: both kinds, with and without a delta, with and without an output.
#include <gtest/gtest.h>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class AddNorm : public BackendTest {
 protected:
  struct Case {
    NormKind kind = NormKind::rms;
    int tokens = 1;
    int width = 1;
    bool has_delta = true;
    bool has_out = true;
    float scale = 1.0f;
    double spread = 1.0;  // standard deviation of the residual stream
    float epsilon = 1e-5f;
  };

  void expect_agreement(const Case& c) {
    SCOPED_TRACE(testing::Message() << (c.kind == NormKind::rms ? "rms" : "layer") << " tokens " << c.tokens
                                    << " width " << c.width);
    const DType type = device.activations();
    HostMatrix expected = random_matrix(c.tokens, c.width, c.spread, 31);
    for (double& value : expected.values) value += 0.5 * c.spread;  // so that a missing mean shows
    HostMatrix delta = random_matrix(c.tokens, c.width, c.spread, 32);
    HostMatrix gain = random_matrix(1, c.width, 1.0, 33);
    HostMatrix bias = random_matrix(1, c.width, 1.0, 34);

    const Matrix residual = device.upload(expected, type);
    const Matrix delta_matrix = c.has_delta ? device.upload(delta, type) : Matrix{};
    Norm norm = {.kind = c.kind, .epsilon = c.epsilon, .gain = device.upload(gain, DType::f32), .bias = {}};
    if (c.kind == NormKind::layer) norm.bias = device.upload(bias, DType::f32);
    const Matrix out = c.has_out ? device.poisoned(c.tokens, c.width, type) : Matrix{};
    const std::vector<std::byte> before = device.bytes(residual);
    device.backend().add_norm(out, residual, delta_matrix, c.scale, norm);

    if (c.has_delta) {
      for (std::size_t i = 0; i < expected.values.size(); ++i)
        expected.values[i] += c.scale * delta.values[i];
      EXPECT_TRUE(agrees(device.download(residual), expected, relative_tolerance(type)));
    } else {
      EXPECT_EQ(device.bytes(residual), before);
    }
    if (!c.has_out) return;
    const reference::NormWeights weights = {
        .kind = c.kind,
        .epsilon = c.epsilon,
        .gain = gain.values,
        .bias = c.kind == NormKind::layer ? std::span<const double>(bias.values) : std::span<const double>{}};
    for (int r = 0; r < c.tokens; ++r) reference::norm(expected.row(r), weights);
    EXPECT_TRUE(agrees(device.download(out), expected, relative_tolerance(type)));
  }
};

TEST_P(AddNorm, NormalizesRowsOfEveryWidth) {
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (const int tokens : {1, 7, 33}) {
      for (const int width : {2, 3, 17, 96, 257, 1024}) {
        expect_agreement({.kind = kind, .tokens = tokens, .width = width, .scale = 0.22f});
      }
    }
  }
}

TEST_P(AddNorm, AgreesForLongRows) {
  for (const int width : {2880, 4100, 5002, 16384, 17000}) {
    expect_agreement({.tokens = 2, .width = width, .scale = 0.5f});
    expect_agreement({.kind = NormKind::layer, .tokens = 1, .width = width});
  }
}

TEST_P(AddNorm, LeavesTheResidualAloneWithoutADelta) {
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (const int width : {17, 96}) {
      expect_agreement({.kind = kind, .tokens = 5, .width = width, .has_delta = false, .scale = 0.5f});
    }
  }
}

TEST_P(AddNorm, OnlyAddsWithoutAnOut) {
  for (const int width : {17, 96}) {
    expect_agreement({.tokens = 5, .width = width, .has_out = false});
    expect_agreement(
        {.kind = NormKind::layer, .tokens = 5, .width = width, .has_out = false, .scale = -2.0f});
  }
}

TEST_P(AddNorm, HonoursEpsilonAndLargeValues) {
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    expect_agreement({.kind = kind, .tokens = 3, .width = 96, .spread = 1e-3, .epsilon = 1e-2f});
    expect_agreement({.kind = kind, .tokens = 3, .width = 96, .spread = 1e4, .epsilon = 1e-6f});
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, AddNorm, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
