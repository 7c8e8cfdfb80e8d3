// activate: every kind, gated or not, odd widths, and extreme arguments of the exponential.
#include <gtest/gtest.h>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class Activate : public BackendTest {
 protected:
  void expect_agreement(HostMatrix input, const ActivationSpec& spec) {
    const Matrix in = device.upload(input, device.activations());
    const HostMatrix expected = reference::activate(input, spec);
    const Matrix out = device.poisoned(expected.rows, expected.cols, device.activations());
    device.backend().activate(out, in, spec);
    EXPECT_TRUE(agrees(device.download(out), expected, relative_tolerance(device.activations())))
        << "kind " << static_cast<int>(spec.kind) << (spec.gated ? " gated" : "") << ", rows " << input.rows
        << ", cols " << input.cols;
  }
};

constexpr std::array specs = {
    ActivationSpec{.kind = Activation::silu, .gated = true},
    ActivationSpec{.kind = Activation::silu, .gated = false},
    ActivationSpec{.kind = Activation::gelu_tanh, .gated = true},
    ActivationSpec{.kind = Activation::gelu_tanh, .gated = false},
    ActivationSpec{.kind = Activation::gelu_erf, .gated = true},
    ActivationSpec{.kind = Activation::gelu_erf, .gated = false},
    ActivationSpec{.kind = Activation::relu, .gated = true},
    ActivationSpec{.kind = Activation::relu, .gated = false},
    ActivationSpec{.kind = Activation::swiglu_clamped, .gated = true, .limit = 7.0f},
    ActivationSpec{.kind = Activation::swiglu_clamped, .gated = true, .limit = 1.5f},
};

TEST_P(Activate, AgreesForEveryKindAndWidth) {
  for (const ActivationSpec& spec : specs) {
    for (const int tokens : {1, 7, 33}) {
      for (const int hidden : {1, 3, 17, 96, 257}) {
        // Seven standard deviations of a wide input exceed both limits above.
        expect_agreement(random_matrix(tokens, spec.gated ? 2 * hidden : hidden, 3.0, 41), spec);
      }
    }
  }
}

// Each value is compared alone, so that a larger one cannot hide its error.
TEST_P(Activate, AgreesForSmallAndForExtremeValues) {
  for (const ActivationSpec& spec : specs) {
    for (const double value : {0.0, -0.0, 1e-4, -1e-4, 0.3, -0.3, 5.0, -2.0, 20.0, 90.0, 1000.0}) {
      HostMatrix input(1, spec.gated ? 2 : 1);
      for (double& element : input.values) element = value;
      expect_agreement(input, spec);
    }
  }
}

// If the exact result is almost zero, the computed one must be too, and not NaN.
TEST_P(Activate, VanishesForLargeNegativeValues) {
  for (const ActivationSpec& spec : specs) {
    for (const double value : {-60.0, -90.0, -1000.0, -1e6}) {
      HostMatrix input(1, spec.gated ? 2 : 1);
      input.values[0] = value;
      input.values.back() = spec.gated ? 2.0 : value;
      const Matrix in = device.upload(input, device.activations());
      const Matrix out = device.poisoned(1, 1, device.activations());
      device.backend().activate(out, in, spec);
      EXPECT_NEAR(device.download(out).values[0], 0.0, 1e-20) << "kind " << static_cast<int>(spec.kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Activate, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
