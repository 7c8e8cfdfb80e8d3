// Compares answers together with the whole distribution of every token.
//
// A GPU sums in a different order for a different number of rows, so an answer may change with its
// neighbours. What must hold instead: as long as two answers have the same tokens, their distributions are
// nearly the same; each token is the one that sampling must draw from its own distribution; and answers
// diverge no more often than such distributions make likely.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine_scene.h"

namespace inferno::testing {

struct DrawnToken {
  TokenId token = 0;
  std::vector<float> logprobs;  // of every token of the vocabulary
};

struct FullAnswer {
  std::vector<DrawnToken> tokens;
  std::optional<Finished> finished;
  std::optional<std::string> failed;
};

// For engines whose max_logprobs is scene_vocab and requests made by asking_for_everything().
GenerationRequest asking_for_everything(GenerationRequest request);
std::vector<FullAnswer> read_fully(TokenStream& stream, int choices = 1);
FullAnswer generate_fully(Engine& engine, const GenerationRequest& request);

// Half greedy, half seeded; some prompts begin alike.
std::vector<GenerationRequest> random_requests(int count, std::uint64_t seed);

// The probability that one random number draws different tokens from two distributions. Sampling divides [0,
// 1) among the tokens in order, and a border that moves also moves all borders after it: over a hundred
// tokens that is some ten times the total variation.
double divergence_chance(const std::vector<double>& a, const std::vector<double>& b);

// Whether answers diverge as often as chance predicts. Random numbers do not depend on the tokens drawn, so
// the chances of the steps add up, and so do their variances, although an answer ends where it diverges.
class DivergenceCount {
 public:
  void add(double chance, bool parted);
  int count() const { return count_; }
  double expected() const { return expected_; }
  // More than this is not chance: three standard deviations, and two more for expectations so small that the
  // deviation says little. With correct sampling, one run in a thousand has more.
  double max_count() const;

 private:
  int count_ = 0;
  double expected_ = 0.0, variance_ = 0.0;
};

class DivergenceCheck {
 public:
  // `limit` is on the total variation between two distributions; beyond it a step is far.
  explicit DivergenceCheck(double limit) : limit_(limit) {}

  // `found` may be shorter when it was cancelled.
  void add(const GenerationRequest& request, const FullAnswer& found, const FullAnswer& expected);

  // At most this share of the steps is far apart, and answers diverge no more often than by chance.
  void expect(double far_share) const;

 private:
  double limit_;
  int answers_ = 0, steps_ = 0, far_ = 0;
  DivergenceCount divergences_;
  double farthest_ = 0.0;
};

}  // namespace inferno::testing
