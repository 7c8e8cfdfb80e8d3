// Fused operations, and the results they leave for the next operation: the same numbers as separate
// operations.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

// Three consecutive operations, each of which rounds.
double chain_tolerance(DType type) {
  return 2.0 * relative_tolerance(type);
}

struct LinearCase {
  WeightFormat format = WeightFormat::f32;
  int width = 256, hidden = 512, tokens = 1;
  bool bias = true;
  float scale = 1.0f;
};

// residual += scale * (down * in + bias), then a norm, then another product reads the result.
class Chain {
 public:
  Chain(Device& device, const LinearCase& c)
      : device_(device),
        case_(c),
        down_(device.weight({.format = c.format, .rows = c.width, .cols = c.hidden}, 81)),
        up_(device.weight({.format = c.format, .rows = 2 * c.hidden, .cols = c.width}, 82)),
        in_(random_matrix(c.tokens, c.hidden, 1.0, 83)),
        residual_(random_matrix(c.tokens, c.width, 1.0, 84)),
        gain_(random_matrix(1, c.width, 1.0, 85)),
        bias_(random_matrix(1, c.width, 1.0, 86)) {
    for (double& value : gain_.values) value += 1.0;
  }

  // The rows after the norm, as operation `read` leaves them.
  template <class Read>
  void add(Read read) {
    const DType type = device_.activations();
    norm_ = {.kind = NormKind::rms, .epsilon = 1e-5f, .gain = device_.upload(gain_, DType::f32), .bias = {}};
    const Matrix in = device_.upload(in_, type);
    residual_matrix_ = device_.upload(residual_, DType::f32);
    const AfterBranch then = {.out = device_.poisoned(case_.tokens, case_.width, type),
                              .residual = residual_matrix_,
                              .branch = device_.poisoned(case_.tokens, case_.width, DType::f32),
                              .scale = case_.scale,
                              .norm = &norm_};
    const Matrix bias = case_.bias ? device_.upload(bias_, DType::f32) : Matrix{};
    read(device_.backend().linear_add_norm(then, in, {{&down_.packed}, bias}));
  }
  HostMatrix expected_residual() const {
    HostMatrix out =
        reference::linear(in_, down_.values.front(),
                          case_.bias ? std::span<const double>(bias_.values) : std::span<const double>{});
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      out.values[i] = residual_.values[i] + case_.scale * out.values[i];
    }
    return out;
  }
  HostMatrix expected_rows() const {
    HostMatrix out = expected_residual();
    for (int r = 0; r < case_.tokens; ++r) {
      reference::norm(out.row(r),
                      {.kind = NormKind::rms, .epsilon = 1e-5f, .gain = gain_.values, .bias = {}});
    }
    return out;
  }
  HostMatrix residual() { return device_.download(residual_matrix_); }
  const TestWeight& up() const { return up_; }

 private:
  Device& device_;
  LinearCase case_;
  const TestWeight &down_, &up_;
  HostMatrix in_, residual_, gain_, bias_;
  Norm norm_;
  Matrix residual_matrix_;
};

void expect_chain(Device& device, const LinearCase& c) {
  SCOPED_TRACE(testing::Message() << "width " << c.width << " hidden " << c.hidden << " tokens " << c.tokens);
  const DType type = device.activations();
  Chain chain(device, c);
  const Matrix product = device.poisoned(c.tokens, 2 * c.hidden, DType::f32);
  const Matrix wide = device.poisoned(c.tokens, 2 * c.hidden, DType::f32);
  const Matrix activated = device.poisoned(c.tokens, c.hidden, type);
  // Not silu, because it maps the large negative sums of integer weights to zero.
  const ActivationSpec activation = {.kind = Activation::relu, .gated = true};
  chain.add([&](NormedRows rows) {
    device.backend().linear(product, std::move(rows), {{&chain.up().packed}, {}});
  });
  chain.add([&](NormedRows rows) {
    device.backend().linear_activated(activated, wide, std::move(rows), {{&chain.up().packed}, {}},
                                      activation);
  });
  EXPECT_TRUE(agrees(chain.residual(), chain.expected_residual(), relative_tolerance(type)));
  const HostMatrix expected = reference::linear(chain.expected_rows(), chain.up().values.front(), {});
  EXPECT_TRUE(agrees(device.download(product), expected, chain_tolerance(type)));
  EXPECT_TRUE(agrees(device.download(activated), reference::activate(expected, activation),
                     2 * chain_tolerance(type)));
}

class LinearAddNorm : public FormatTest {};

TEST_P(LinearAddNorm, FeedsTheFollowingProducts) {
  int index = 0;
  for (const int tokens : {1, 2}) {
    for (const auto& [width, hidden] : {std::pair{256, 512}, {512, 256}}) {
      if (!is_turn(index++)) continue;
      expect_chain(device, {.format = format, .width = width, .hidden = hidden, .tokens = tokens});
    }
  }
}

class AfterLinear : public BackendTest {};

TEST_P(AfterLinear, TakesRowsOfARealModelsShape) {
  expect_chain(device, {.format = WeightFormat::bf16, .width = 2880, .hidden = 4096, .bias = true});
  expect_chain(device, {.format = WeightFormat::q8_0, .width = 896, .hidden = 4864, .bias = false});
  expect_chain(device, {.format = WeightFormat::mxfp4, .width = 2880, .hidden = 2880, .scale = 0.5f});
  expect_chain(device, {.format = WeightFormat::q4_k, .width = 1024, .hidden = 14336, .bias = false});
}

TEST_P(AfterLinear, GivesFinishedRowsToTakeRows) {
  Chain chain(device, {.format = WeightFormat::bf16, .width = 256, .hidden = 512});
  const std::vector<std::int32_t> first = {0};
  const Matrix out = device.poisoned(1, 256, device.activations());
  chain.add([&](NormedRows rows) { device.backend().take_rows(out, std::move(rows), device.upload(first)); });
  EXPECT_TRUE(agrees(device.download(out), chain.expected_rows(), chain_tolerance(device.activations())));
}

TEST_P(AfterLinear, LeavesRowsOfAPlainNormAlone) {
  Chain chain(device, {.format = WeightFormat::bf16, .width = 256, .hidden = 512});
  HostMatrix gain = random_matrix(1, 256, 1.0, 5), stream = random_matrix(1, 256, 1.0, 6);
  const Matrix residual = device.upload(stream, DType::f32);
  const Matrix product = device.poisoned(1, 1024, DType::f32);
  chain.add([&](const NormedRows& unread) {  // the norm of another row overwrites these rows
    const Matrix rows = unread.unfinished();
    const Norm norm = {
        .kind = NormKind::rms, .epsilon = 1e-5f, .gain = device.upload(gain, DType::f32), .bias = {}};
    device.backend().add_norm(rows, residual, {}, 1.0f, norm);
    device.backend().linear(product, rows, {{&chain.up().packed}, {}});
  });
  reference::norm(stream.row(0), {.kind = NormKind::rms, .epsilon = 1e-5f, .gain = gain.values, .bias = {}});
  EXPECT_TRUE(agrees(device.download(product), reference::linear(stream, chain.up().values.front(), {}),
                     chain_tolerance(device.activations())));
}

INSTANTIATE_TEST_SUITE_P(Formats, LinearAddNorm,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(format_names())),
                         backend_and_format_test_name);
INSTANTIATE_TEST_SUITE_P(Backends, AfterLinear, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
