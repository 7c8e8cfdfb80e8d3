#include "ops/sample_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/counter_random.h"

namespace inferno::reference {
namespace {

constexpr double nowhere = -std::numeric_limits<double>::infinity();

std::vector<double> edited(const SampleCase& c) {
  std::vector<double> logits(c.logits.begin(), c.logits.end());
  for (const ListEntry& entry : c.history) {
    double& l = logits[static_cast<std::size_t>(entry.token)];
    l = l > 0.0 ? l / c.row.repetition : l * c.row.repetition;
    if (entry.value > 0.0f) l -= c.row.presence + c.row.frequency * static_cast<double>(entry.value);
  }
  for (const ListEntry& entry : c.bias) logits[static_cast<std::size_t>(entry.token)] += entry.value;
  for (int token = 0; token < static_cast<int>(logits.size()); ++token) {
    if (!c.permits(token)) logits[static_cast<std::size_t>(token)] = nowhere;
  }
  if (c.allowed.empty()) return logits;
  std::vector<double> only(logits.size(), nowhere);
  for (const ListEntry& entry : c.allowed) {
    only[static_cast<std::size_t>(entry.token)] = logits[static_cast<std::size_t>(entry.token)];
  }
  return only;
}

void normalize(std::vector<double>& p) {
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
}

// Keeps the first entries of `order` until their sum reaches `share`, and clears the others.
void keep_until(std::vector<double>& p, const std::vector<int>& order, double share) {
  double sum = 0.0;
  for (const int token : order) {
    double& x = p[static_cast<std::size_t>(token)];
    if (sum >= share) {
      x = 0.0;
    } else {
      sum += x;
    }
  }
  normalize(p);
}

void keep_typical(std::vector<double>& p, double share) {
  double entropy = 0.0;
  for (const double x : p) entropy -= x > 0.0 ? x * std::log(x) : 0.0;
  std::vector<double> nearness;
  for (const double x : p) nearness.push_back(x > 0.0 ? -std::abs(-std::log(x) - entropy) : nowhere);
  keep_until(p, by_value(nearness), share);
}

struct Nudge {
  double share = 0.0, draw = 0.0;
};

std::vector<double> probabilities(const SampleCase& c, const Nudge& nudge) {
  const std::vector<double> logits = edited(c);
  const double top = *std::max_element(logits.begin(), logits.end());
  if (top == nowhere) return {};
  const std::vector<int> order = by_value(logits);
  std::vector<double> p(logits.size(), 0.0);
  if (c.row.temperature == 0.0f) {
    p[static_cast<std::size_t>(order[0])] = 1.0;
    return p;
  }
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::exp((logits[i] - top) / c.row.temperature);
  normalize(p);
  if (c.row.top_k > 0) {
    for (std::size_t i = static_cast<std::size_t>(c.row.top_k); i < order.size(); ++i)
      p[static_cast<std::size_t>(order[i])] = 0.0;
    normalize(p);
  }
  if (c.row.top_p < 1.0f) keep_until(p, by_value(p), c.row.top_p + nudge.share);
  if (c.row.min_p > 0.0f) {
    const double least = (c.row.min_p + nudge.share) * *std::max_element(p.begin(), p.end());
    for (double& x : p) x = x >= least ? x : 0.0;
    normalize(p);
  }
  if (c.row.typical_p < 1.0f) keep_typical(p, c.row.typical_p + nudge.share);
  return p;
}

int sample(const SampleCase& c, const Nudge& nudge) {
  const std::vector<double> p = probabilities(c, nudge);
  const std::uint64_t seed = std::uint64_t{c.row.seed_high} << 32 | c.row.seed_low;
  const double u = c.row.temperature == 0.0f
                       ? 0.0
                       : uniform_at(seed, static_cast<std::uint64_t>(c.row.position)) + nudge.draw;
  double sum = 0.0;
  int last = -1;
  for (std::size_t token = 0; token < p.size(); ++token) {
    sum += p[token];
    if (p[token] > 0.0) last = static_cast<int>(token);
    if (sum > u) return static_cast<int>(token);
  }
  return last;
}

}  // namespace

std::vector<int> possible_tokens(const SampleCase& c, const Rounding& rounding) {
  std::vector<int> tokens;
  const auto add = [&tokens](int token) {
    if (std::ranges::count(tokens, token) == 0) tokens.push_back(token);
  };
  for (const double share : {0.0, -rounding.sums, rounding.sums}) {
    for (const double draw : {0.0, -rounding.sums, rounding.sums}) add(sample(c, {share, draw}));
  }
  if (c.row.temperature > 0.0f || tokens[0] < 0) return tokens;
  const std::vector<double> logits = edited(c);
  const double top = logits[static_cast<std::size_t>(tokens[0])];
  for (std::size_t token = 0; rounding.logits > 0.0 && token < logits.size(); ++token) {
    if (logits[token] >= top - rounding.logits) add(static_cast<int>(token));
  }
  return tokens;
}

std::vector<double> distribution(const SampleCase& c) {
  return probabilities(c, {});
}

std::vector<double> logprobs(const std::vector<float>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l) - top);
  std::vector<double> out;
  for (const float l : logits) out.push_back(static_cast<double>(l) - top - std::log(sum));
  return out;
}

std::vector<int> by_value(const std::vector<double>& values) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
  });
  return order;
}

}  // namespace inferno::reference
