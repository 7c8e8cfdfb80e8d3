// Answers with the whole distribution behind every token, and how near two of them are.
//
// A GPU sums in another order for another number of rows, so an answer may change with its neighbours. What
// must hold instead: as long as two answers have the same tokens, their distributions are nearly the same;
// each token is what sampling must draw from its own distribution; and few answers ever part.
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

class Nearness {
 public:
  // `limit` is on the total variation between two distributions; beyond it a step is far.
  explicit Nearness(double limit) : limit_(limit) {}

  // `found` may be shorter when it was cancelled.
  void add(const GenerationRequest& request, const FullAnswer& found, const FullAnswer& expected);

  // At most this share of the steps is far. Answers part no oftener than distributions may differ: at one
  // step in a hundred where the limit is a hundredth.
  void expect(double far_share) const;

 private:
  double limit_;
  int answers_ = 0, parted_ = 0, steps_ = 0, far_ = 0;
  double farthest_ = 0.0;
};

}  // namespace inferno::testing
