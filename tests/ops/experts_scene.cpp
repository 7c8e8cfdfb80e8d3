#include "ops/experts_scene.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

class Scene {
 public:
  Scene(Device& device, const ExpertsCase& c) : device_(device), case_(c) {
    const MoeMlp& spec = c.spec;
    const int wide = spec.activation.gated ? 2 * spec.hidden : spec.hidden;
    add_part(router_, {.format = c.router, .rows = spec.experts, .cols = c.width}, 71, false);
    const int up_parts = c.split_gate_up ? 2 : 1;
    for (int part = 0; part < up_parts; ++part) {
      add_part(gate_up_,
               {.format = c.format, .count = spec.experts, .rows = wide / up_parts, .cols = c.width},
               72 + static_cast<std::uint64_t>(part), c.is_reordered);
    }
    add_part(down_, {.format = c.format, .count = spec.experts, .rows = c.width, .cols = spec.hidden}, 74,
             c.is_reordered);
    if (spec.router_bias || c.has_favourite)
      add_bias(router_, 1, spec.experts, 75, c.has_favourite ? 100.0 : 0.0);
    if (spec.expert_bias) {
      add_bias(gate_up_, spec.experts, wide, 76);
      add_bias(down_, spec.experts, c.width, 77);
    }
    choose_input();
  }

  HostMatrix found() {
    const Matrix in = device_.upload(input_, case_.float_input ? DType::f32 : device_.activations());
    const Matrix out = device_.poisoned(case_.tokens, case_.width, device_.activations());
    device_.backend().mix_experts(
        out, in, case_.spec, {.router = router_.weights, .gate_up = gate_up_.weights, .down = down_.weights});
    return device_.download(out);
  }

  HostMatrix expected() const {
    std::vector<reference::Expert> experts;
    for (int e = 0; e < case_.spec.experts; ++e) {
      experts.push_back({gate_up_.of(e), down_.of(e), gate_up_.bias_of(e), down_.bias_of(e)});
    }
    return reference::mix(input_, logits(input_), case_.spec, experts);
  }

 private:
  struct Layer {
    Linear weights;
    std::vector<const TestWeight*> parts;
    HostMatrix bias;

    HostMatrix of(int expert) const {
      HostMatrix stacked(0, parts.front()->values.front().cols);
      for (const TestWeight* part : parts) stacked.append(part->values[static_cast<std::size_t>(expert)]);
      return stacked;
    }
    std::span<const double> bias_of(int expert) const {
      return bias.values.empty() ? std::span<const double>{} : bias.row(expert);
    }
  };

  void add_part(Layer& layer, const WeightShape& shape, std::uint64_t seed, bool is_reordered) {
    layer.parts.push_back(&device_.weight(shape, seed, is_reordered));
    layer.weights.parts.push_back(&layer.parts.back()->packed);
  }
  // `favour`: how much larger the logit of expert 1 is.
  void add_bias(Layer& layer, int rows, int cols, std::uint64_t seed, double favour = 0.0) {
    layer.bias = random_matrix(rows, cols, 1.0, seed);
    if (favour != 0.0) layer.bias.values[1] = favour;
    layer.weights.bias = device_.upload(layer.bias, DType::f32);
  }
  HostMatrix logits(const HostMatrix& input) const {
    return reference::linear(input, router_.of(0), router_.bias_of(0));
  }
  // Tokens whose choice of experts rounding cannot change.
  void choose_input() {
    input_ = HostMatrix(case_.tokens, case_.width);
    std::uint64_t seed = 1000;
    for (int r = 0; r < case_.tokens; ++r) {
      HostMatrix token;
      double margin = 0.0;
      do {
        token = random_matrix(1, case_.width, 0.5, seed++);
        if (!case_.float_input) device_.upload(token, device_.activations());
        margin = reference::margin(logits(token).row(0), case_.spec.active);
      } while (margin < case_.min_margin || margin > case_.max_margin);
      std::ranges::copy(token.values, input_.row(r).begin());
    }
  }

  Device& device_;
  ExpertsCase case_;
  Layer router_, gate_up_, down_;
  HostMatrix input_;
};

}  // namespace

MoeMlp experts_of(int experts, int active) {
  return {.experts = experts,
          .active = active,
          .hidden = 32,
          .activation = {.kind = Activation::silu, .gated = true}};
}

void expect_experts_agree(Device& device, const ExpertsCase& c) {
  SCOPED_TRACE(testing::Message() << c.spec.active << " of " << c.spec.experts << " experts, tokens "
                                  << c.tokens);
  Scene scene(device, c);
  const HostMatrix found = scene.found();
  EXPECT_TRUE(agrees(found, scene.expected(), relative_tolerance(device.activations())));
}

}  // namespace inferno
