#include "golden/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "support/forwarding_backend.h"

namespace inferno::testing {
namespace {

Matrix row_of(const Matrix& matrix, int row) {
  Matrix out = matrix.top(1);
  out.data += matrix.top(row).bytes();
  return out;
}

// The `active` largest, the lower expert first if they are equal; in order of their number.
std::vector<int> chosen(std::span<const float> logits, int active) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(active));
  std::ranges::sort(order);
  return order;
}

std::vector<int> without(const std::vector<int>& from, const std::vector<int>& taken) {
  std::vector<int> out;
  std::ranges::set_difference(from, taken, std::back_inserter(out));
  return out;
}

double length_of(std::span<const float> values) {
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// Layers are told apart by their routers, and counted as they are met.
class RoutedBackend : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  void replay(std::span<const std::uint64_t>, const std::function<void()>& body) override { body(); }

 protected:
  std::size_t layer_of(const MoeWeights& weights) {
    const Weight* router = weights.router.parts.front();
    const auto found = std::ranges::find(routers_, router);
    if (found != routers_.end()) return static_cast<std::size_t>(found - routers_.begin());
    routers_.push_back(router);
    return routers_.size() - 1;
  }

  std::vector<float> router_logits(Matrix in, const MoeMlp& spec, const MoeWeights& weights) {
    const Matrix shape = {nullptr, DType::f32, in.rows, spec.experts};
    const Buffer memory = inner().allocate(shape.bytes(), "router logits");
    const Matrix logits = {memory.data(), DType::f32, in.rows, spec.experts};
    inner().linear(logits, in, weights.router);
    std::vector<float> out(static_cast<std::size_t>(in.rows) * static_cast<std::size_t>(spec.experts));
    inner().download(std::as_writable_bytes(std::span(out)), logits);
    return out;
  }

 private:
  std::vector<const Weight*> routers_;
};

class Recording final : public RoutedBackend {
 public:
  Recording(std::unique_ptr<Backend> inner, std::vector<Routes>& routes)
      : RoutedBackend(std::move(inner)), routes_(routes) {}

  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) override {
    record(in, spec, weights);
    inner().mix_experts(out, in, spec, weights);
  }
  NormedRows mix_experts_add_norm(const AfterBranch& then, NormedRows in, const MoeMlp& spec,
                                  const MoeWeights& weights) override {
    const Matrix rows = inner().finish_norm(std::move(in));
    record(rows, spec, weights);
    return inner().mix_experts_add_norm(then, rows, spec, weights);
  }

 private:
  void record(Matrix in, const MoeMlp& spec, const MoeWeights& weights) {
    const std::size_t layer = layer_of(weights);
    if (layer == routes_.size()) routes_.push_back({spec.experts, spec.active, {}});
    const std::vector<float> logits = router_logits(in, spec, weights);
    routes_[layer].logits.insert(routes_[layer].logits.end(), logits.begin(), logits.end());
  }

  std::vector<Routes>& routes_;
};

class Repeating final : public RoutedBackend {
 public:
  Repeating(std::unique_ptr<Backend> inner, const std::vector<Routes>& routes, std::vector<Detour>& detours)
      : RoutedBackend(std::move(inner)), routes_(routes), detours_(detours), next_(routes.size()) {}

  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) override {
    const std::size_t layer = layer_of(weights);
    const auto experts = static_cast<std::size_t>(spec.experts);
    const std::vector<float> logits = router_logits(in, spec, weights);
    for (int row = 0; row < in.rows; ++row) {
      const int position = next_.at(layer)++;
      const auto wanted =
          std::span(routes_[layer].logits).subspan(static_cast<std::size_t>(position) * experts, experts);
      const std::vector<int> target = chosen(wanted, spec.active);
      const auto own = std::span(logits).subspan(static_cast<std::size_t>(row) * experts, experts);
      mix_row(row_of(out, row), row_of(in, row), spec, weights, shifts(own, target, spec, layer, position));
    }
  }
  NormedRows mix_experts_add_norm(const AfterBranch& then, NormedRows in, const MoeMlp& spec,
                                  const MoeWeights& weights) override {
    return Backend::mix_experts_add_norm(then, std::move(in), spec, weights);
  }

 private:
  // What to add to each logit so that the target's experts are chosen: experts change places with those they
  // displace, and nothing else moves. Shares change by no more than the gap.
  std::vector<float> shifts(std::span<const float> logits, const std::vector<int>& target, const MoeMlp& spec,
                            std::size_t layer, int position) {
    const std::vector<int> own = chosen(logits, spec.active);
    const std::vector<int> left = without(own, target), taken = without(target, own);
    std::vector<float> out(logits.size(), 0.0f);
    double gap = 0.0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto from = static_cast<std::size_t>(left[i]), to = static_cast<std::size_t>(taken[i]);
      const float distance = logits[from] - logits[to];
      const float nudge = 1e-5f * (1.0f + std::abs(logits[from]));
      out[to] += distance + nudge;
      out[from] -= distance + nudge;
      gap = std::max(gap, static_cast<double>(distance));
    }
    if (!left.empty()) detours_.push_back({static_cast<int>(layer), position, gap, length_of(logits)});
    return out;
  }

  void mix_row(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights,
               std::vector<float> bias) {
    const Matrix old = weights.router.bias;
    if (old) {
      const auto* values = reinterpret_cast<const float*>(old.data);
      for (std::size_t e = 0; e < bias.size(); ++e) bias[e] += values[e];
    }
    MoeWeights shifted = {.router = weights.router, .gate_up = weights.gate_up, .down = weights.down};
    shifted.router.bias = {reinterpret_cast<std::byte*>(bias.data()), DType::f32, 1, spec.experts};
    inner().mix_experts(out, in, spec, shifted);
  }

  const std::vector<Routes>& routes_;
  std::vector<Detour>& detours_;
  std::vector<int> next_;  // position of each layer
};

}  // namespace

std::unique_ptr<Backend> recording(std::unique_ptr<Backend> backend, std::vector<Routes>& routes) {
  return std::make_unique<Recording>(std::move(backend), routes);
}

std::unique_ptr<Backend> repeating(std::unique_ptr<Backend> backend, const std::vector<Routes>& routes,
                                   std::vector<Detour>& detours) {
  return std::make_unique<Repeating>(std::move(backend), routes, detours);
}

}  // namespace inferno::testing
