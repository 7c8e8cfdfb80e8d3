// Answers with the whole distribution behind every token, and how near two of them are.
//
// A GPU sums in another order for another number of rows, so an answer may change with its neighbours. What
// must hold instead: as long as two answers have the same tokens, their distributions are nearly the same;
// each token is what sampling must draw from its own distribution; and answers part no oftener than two such
// distributions make them.
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

// How probably one random number draws different tokens from two distributions. Tokens lie side by side in
// their order, and whatever moves a border moves all borders behind it: over a hundred tokens that is some
// ten times the total variation.
double parting_chance(const std::vector<double>& a, const std::vector<double>& b);

// Whether answers part as often as chance makes them. Random numbers do not depend on what is drawn with
// them, so the steps' chances add up, and so do their variances, though an answer ends where it parts.
class Partings {
 public:
  void add(double chance, bool parted);
  int count() const { return count_; }
  double expected() const { return expected_; }
  // More than this is no accident: three standard deviations, and two for expectations so small that the
  // deviation says little. Of draws that follow the distributions one run in a thousand has more.
  double most() const;

 private:
  int count_ = 0;
  double expected_ = 0.0, variance_ = 0.0;
};

class Nearness {
 public:
  // `limit` is on the total variation between two distributions; beyond it a step is far.
  explicit Nearness(double limit) : limit_(limit) {}

  // `found` may be shorter when it was cancelled.
  void add(const GenerationRequest& request, const FullAnswer& found, const FullAnswer& expected);

  // At most this share of the steps is far, and answers part no oftener than by chance.
  void expect(double far_share) const;

 private:
  double limit_;
  int answers_ = 0, steps_ = 0, far_ = 0;
  Partings partings_;
  double farthest_ = 0.0;
};

}  // namespace inferno::testing
