#include "ops/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace inferno::reference {

HostMatrix linear(const HostMatrix& in, const HostMatrix& weight, std::span<const double> bias) {
  HostMatrix out(in.rows, weight.rows);
  for (int r = 0; r < in.rows; ++r) {
    const auto input = in.row(r);
    for (int c = 0; c < weight.rows; ++c) {
      const auto features = weight.row(c);
      double sum = bias.empty() ? 0.0 : bias[static_cast<std::size_t>(c)];
      for (std::size_t i = 0; i < input.size(); ++i) sum += input[i] * features[i];
      out.row(r)[static_cast<std::size_t>(c)] = sum;
    }
  }
  return out;
}

HostMatrix side_by_side(const std::vector<HostMatrix>& parts) {
  int cols = 0;
  for (const HostMatrix& part : parts) cols += part.cols;
  HostMatrix out(parts.front().rows, cols);
  for (int r = 0; r < out.rows; ++r) {
    auto to = out.row(r).begin();
    for (const HostMatrix& part : parts) to = std::copy(part.row(r).begin(), part.row(r).end(), to);
  }
  return out;
}

void norm(std::span<double> row, const NormWeights& weights) {
  const auto count = static_cast<double>(row.size());
  const double mean =
      weights.kind == NormKind::layer ? std::accumulate(row.begin(), row.end(), 0.0) / count : 0.0;
  double squares = 0.0;
  for (const double value : row) squares += (value - mean) * (value - mean);
  const double factor = 1.0 / std::sqrt(squares / count + weights.epsilon);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = (row[i] - mean) * factor * weights.gain[i] + (weights.bias.empty() ? 0.0 : weights.bias[i]);
  }
}

double activation(double x, Activation kind) {
  switch (kind) {
    case Activation::silu: return x / (1.0 + std::exp(-x));
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf: return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    case Activation::relu: return std::max(x, 0.0);
    case Activation::swiglu_clamped: return x / (1.0 + std::exp(-1.702 * x));
  }
  return std::nan("");
}

HostMatrix activate(const HostMatrix& in, const ActivationSpec& spec) {
  const int hidden = spec.gated ? in.cols / 2 : in.cols;
  const double limit = spec.limit;
  HostMatrix out(in.rows, hidden);
  for (int r = 0; r < in.rows; ++r) {
    for (int c = 0; c < hidden; ++c) {
      const double gate = in.row(r)[static_cast<std::size_t>(c)];
      const double up = spec.gated ? in.row(r)[static_cast<std::size_t>(hidden + c)] : 1.0;
      out.row(r)[static_cast<std::size_t>(c)] =
          spec.kind == Activation::swiglu_clamped
              ? activation(std::min(gate, limit), spec.kind) * (std::clamp(up, -limit, limit) + 1.0)
              : activation(gate, spec.kind) * up;
    }
  }
  return out;
}

void rotate(std::span<double> head, std::span<const double> cosines, std::span<const double> sines) {
  const std::size_t half = cosines.size();
  for (std::size_t i = 0; i < half; ++i) {
    const double x = head[i], y = head[i + half];
    head[i] = x * cosines[i] - y * sines[i];
    head[i + half] = y * cosines[i] + x * sines[i];
  }
}

std::vector<double> attend(std::span<const double> query, const Seen& seen, double scale,
                           const double* sink) {
  std::vector<double> scores;
  for (int p = 0; p < seen.keys.rows; ++p) {
    const auto key = seen.keys.row(p);
    scores.push_back(scale * std::inner_product(query.begin(), query.end(), key.begin(), 0.0));
  }
  double top = *std::max_element(scores.begin(), scores.end());
  if (sink != nullptr) top = std::max(top, *sink);
  double sum = sink == nullptr ? 0.0 : std::exp(*sink - top);
  for (const double score : scores) sum += std::exp(score - top);
  std::vector<double> out(query.size());
  for (int p = 0; p < seen.values.rows; ++p) {
    const double share = std::exp(scores[static_cast<std::size_t>(p)] - top) / sum;
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += share * seen.values.row(p)[d];
  }
  return out;
}

std::vector<Choice> choose(std::span<const double> logits, const MoeMlp& spec) {
  std::vector<Choice> choices;
  for (int expert = 0; expert < spec.experts; ++expert) {
    choices.push_back({expert, std::exp(logits[static_cast<std::size_t>(expert)])});
  }
  std::sort(choices.begin(), choices.end(),
            [](const Choice& a, const Choice& b) { return a.share > b.share; });
  const auto sum_of = [&] {
    return std::accumulate(choices.begin(), choices.end(), 0.0,
                           [](double sum, const Choice& choice) { return sum + choice.share; });
  };
  const double sum_of_all = sum_of();
  choices.resize(static_cast<std::size_t>(spec.active));
  const double sum = spec.renormalize ? sum_of() : sum_of_all;
  for (Choice& choice : choices) choice.share /= sum;
  return choices;
}

double margin(std::span<const double> logits, int active) {
  std::vector<double> sorted(logits.begin(), logits.end());
  std::ranges::sort(sorted, std::greater());
  const auto last = static_cast<std::size_t>(active);
  return last == sorted.size() ? 1.0 : sorted[last - 1] - sorted[last];
}

HostMatrix mix(const HostMatrix& in, const HostMatrix& logits, const MoeMlp& spec,
               const std::vector<Expert>& experts) {
  HostMatrix out(in.rows, experts.front().down.rows);
  for (int r = 0; r < in.rows; ++r) {
    HostMatrix token(1, in.cols);
    std::copy(in.row(r).begin(), in.row(r).end(), token.values.begin());
    for (const Choice& choice : choose(logits.row(r), spec)) {
      const Expert& expert = experts[static_cast<std::size_t>(choice.expert)];
      const HostMatrix hidden = activate(linear(token, expert.gate_up, expert.gate_up_bias), spec.activation);
      const HostMatrix result = linear(hidden, expert.down, expert.down_bias);
      for (std::size_t c = 0; c < result.values.size(); ++c) out.row(r)[c] += choice.share * result.values[c];
    }
  }
  return out;
}

}  // namespace inferno::reference
