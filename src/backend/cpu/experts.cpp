// Mixture of experts: tokens are sorted by expert, so that each chosen expert's weights are read once for
// all of its tokens.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/cpu/operations.h"

namespace inferno::cpu {
namespace {

// `active` choices for each token, best first.
struct Routing {
  std::vector<int> experts;
  std::vector<float> shares;
};

// Chooses the experts with the largest logits, the lower index first among equals, and computes their
// softmax.
void choose(const float* logits, const MoeMlp& spec, int* experts, float* shares) {
  std::vector<int> order(static_cast<std::size_t>(spec.experts));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + spec.active, order.end(), [logits](int a, int b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  const float top = logits[order[0]];
  const int counted = spec.renormalize ? spec.active : spec.experts;
  float sum = 0.0f;
  for (int k = 0; k < counted; ++k) sum += std::exp(logits[order[static_cast<std::size_t>(k)]] - top);
  for (int k = 0; k < spec.active; ++k) {
    experts[k] = order[static_cast<std::size_t>(k)];
    shares[k] = std::exp(logits[experts[k]] - top) / sum;
  }
}

Routing route(const Matrix& logits, const MoeMlp& spec) {
  const auto active = static_cast<std::size_t>(spec.active);
  const auto tokens = static_cast<std::size_t>(logits.rows);
  Routing routing = {std::vector<int>(tokens * active), std::vector<float>(tokens * active)};
  for (std::size_t t = 0; t < tokens; ++t) {
    choose(floats(logits, static_cast<std::int64_t>(t)), spec, &routing.experts[t * active],
           &routing.shares[t * active]);
  }
  return routing;
}

// The choices sorted by expert.
struct Sorted {
  std::vector<std::int32_t> place;   // row of each choice
  std::vector<std::int32_t> tokens;  // token of each row
  std::vector<ExpertBatch> batches;
};

Sorted sort_by_expert(const std::vector<int>& experts, const MoeMlp& spec) {
  Sorted sorted = {std::vector<std::int32_t>(experts.size()), std::vector<std::int32_t>(experts.size()), {}};
  std::vector<int> next(static_cast<std::size_t>(spec.experts) + 1);
  for (const int expert : experts) ++next[static_cast<std::size_t>(expert) + 1];
  for (int expert = 0; expert < spec.experts; ++expert) {
    const auto at = static_cast<std::size_t>(expert);
    const int count = next[at + 1];
    next[at + 1] += next[at];
    if (count == 0) continue;
    const std::span<const std::int32_t> tokens(sorted.tokens.data() + next[at],
                                               static_cast<std::size_t>(count));
    sorted.batches.push_back({.expert = expert, .first = next[at], .input = tokens, .count = count});
  }
  for (std::size_t choice = 0; choice < experts.size(); ++choice) {
    const int place = next[static_cast<std::size_t>(experts[choice])]++;
    sorted.place[choice] = place;
    sorted.tokens[static_cast<std::size_t>(place)] =
        static_cast<std::int32_t>(choice / static_cast<std::size_t>(spec.active));
  }
  return sorted;
}

}  // namespace

void mix_experts(const Compute& compute, Matrix out, Matrix in, const MoeMlp& spec,
                 const MoeWeights& weights) {
  if (in.rows == 0) return;
  Scratch& scratch = compute.scratch;
  const Matrix logits = scratch.shared(Scratch::Use::router, in.rows, spec.experts);
  linear(compute, logits, in, weights.router);
  const Routing routing = route(logits, spec);
  const Sorted sorted = sort_by_expert(routing.experts, spec);

  const auto choices = static_cast<std::int32_t>(routing.experts.size());
  const std::int32_t wide_cols = spec.activation.gated ? 2 * spec.hidden : spec.hidden;
  const Matrix wide = scratch.shared(Scratch::Use::wide, choices, wide_cols);
  const Matrix hidden = scratch.shared(Scratch::Use::hidden, choices, spec.hidden);
  const Matrix mixed = scratch.shared(Scratch::Use::mixed, choices, out.cols);
  multiply(compute, wide, in, weights.gate_up, sorted.batches);
  activate(compute, hidden, wide, spec.activation);
  std::vector<ExpertBatch> in_place = sorted.batches;  // `hidden` is already in order of experts
  for (ExpertBatch& batch : in_place) batch.input = {};
  multiply(compute, mixed, hidden, weights.down, in_place);

  const std::int64_t cost = std::int64_t{out.cols} * spec.active;
  compute.pool.parallel_for(out.rows, grain_for(compute.pool, out.rows, cost), [&](const auto& range) {
    for (auto t = range.begin; t < range.end; ++t) {
      float* sum = floats(out, t);
      std::fill_n(sum, out.cols, 0.0f);
      for (int k = 0; k < spec.active; ++k) {
        const auto choice = static_cast<std::size_t>(t * spec.active + k);
        const float* part = floats(mixed, sorted.place[choice]);
        for (int c = 0; c < out.cols; ++c) sum[c] += routing.shares[choice] * part[c];
      }
    }
  });
}

}  // namespace inferno::cpu
