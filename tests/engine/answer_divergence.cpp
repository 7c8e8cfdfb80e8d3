#include "engine/answer_divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "ops/sample_reference.h"

namespace inferno::testing {
namespace {

double total_variation(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(std::exp(double{a[i]}) - std::exp(double{b[i]}));
  return 0.5 * sum;
}

// The input of the sampler for token `at` of the answer, reconstructed from log probabilities. They lack the
// sign of a logit, which the repetition penalty depends on.
reference::SampleCase sampling_of(const GenerationRequest& request, const FullAnswer& answer,
                                  std::size_t at) {
  const Sampling& sampling = request.sampling;
  reference::SampleCase c;
  c.logits = answer.tokens[at].logprobs;
  c.row.temperature = sampling.temperature;
  c.row.top_k = sampling.top_k;
  c.row.top_p = sampling.top_p;
  c.row.min_p = sampling.min_p;
  c.row.frequency = sampling.frequency_penalty;
  c.row.presence = sampling.presence_penalty;
  c.row.seed_low = static_cast<std::uint32_t>(answer.finished->seed);
  c.row.seed_high = static_cast<std::uint32_t>(answer.finished->seed >> 32);
  c.row.position = static_cast<std::int32_t>(request.prompt.size() + at);
  std::map<TokenId, float> counts;
  for (const TokenId token : request.prompt) counts[token] += 0.0f;
  for (std::size_t i = 0; i < at; ++i) counts[answer.tokens[i].token] += 1.0f;
  for (const auto& [token, count] : counts) c.history.push_back({token, count});
  return c;
}

// Whether sampling_of() knows all that the sampler knew.
bool is_known(const GenerationRequest& request) {
  return request.sampling.repetition_penalty == 1.0f;
}

void expect_drawn_rightly(const GenerationRequest& request, const FullAnswer& answer, std::size_t at) {
  const std::vector<int> possible =
      reference::possible_tokens(sampling_of(request, answer, at), {.sums = 1e-4, .logits = 1e-4});
  EXPECT_TRUE(std::ranges::count(possible, answer.tokens[at].token) > 0)
      << "token " << at << ": " << answer.tokens[at].token << " instead of " << possible[0];
}

}  // namespace

double divergence_chance(const std::vector<double>& a, const std::vector<double>& b) {
  double same = 0.0, end_a = 0.0, end_b = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double first = std::max(end_a, end_b);
    end_a += a[i];
    end_b += b[i];
    same += std::max(0.0, std::min(end_a, end_b) - first);
  }
  return std::clamp(1.0 - same, 0.0, 1.0);
}

void DivergenceCount::add(double chance, bool parted) {
  count_ += parted ? 1 : 0;
  expected_ += chance;
  variance_ += chance * (1.0 - chance);
}

double DivergenceCount::max_count() const {
  return expected_ + 3.0 * std::sqrt(variance_) + 2.0;
}

GenerationRequest asking_for_everything(GenerationRequest request) {
  request.sampling.logprobs = scene_vocab;
  return request;
}

std::vector<FullAnswer> read_fully(TokenStream& stream, int choices) {
  std::vector<FullAnswer> answers(static_cast<std::size_t>(choices));
  while (const auto event = stream.next(std::chrono::seconds(60))) {
    if (const auto* sampled = std::get_if<Sampled>(&*event)) {
      DrawnToken drawn = {sampled->token, std::vector<float>(scene_vocab, -INFINITY)};
      EXPECT_EQ(sampled->alternatives.size(), static_cast<std::size_t>(scene_vocab));
      for (const auto& [token, logprob] : sampled->alternatives) {
        drawn.logprobs[static_cast<std::size_t>(token)] = logprob;
      }
      EXPECT_EQ(drawn.logprobs[static_cast<std::size_t>(sampled->token)], sampled->logprob);
      answers[static_cast<std::size_t>(sampled->choice)].tokens.push_back(std::move(drawn));
    } else if (const auto* finished = std::get_if<Finished>(&*event)) {
      answers[static_cast<std::size_t>(finished->choice)].finished = *finished;
    } else {
      for (FullAnswer& answer : answers) answer.failed = std::get<Failed>(*event).message;
    }
  }
  return answers;
}

FullAnswer generate_fully(Engine& engine, const GenerationRequest& request) {
  return read_fully(*engine.submit(asking_for_everything(request)))[0];
}

std::vector<GenerationRequest> random_requests(int count, std::uint64_t seed) {
  Random random(seed);
  const std::vector<TokenId> common = random_prompt(random, 70);
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < count; ++i) {
    GenerationRequest request;
    const int shared = random.below(3) == 0 ? random.below(70) : 0;
    request.prompt.assign(common.begin(), common.begin() + shared);
    for (const TokenId token : random_prompt(random, 1 + random.below(random.below(4) == 0 ? 120 : 20))) {
      request.prompt.push_back(token);
    }
    request.max_tokens = 1 + random.below(24);
    Sampling& sampling = request.sampling;
    sampling.temperature = random.below(2) == 0 ? 0.0f : 0.8f + static_cast<float>(random.uniform());
    sampling.seed = random.word();
    sampling.logprobs = 0;
    if (random.below(3) == 0) sampling.top_p = 0.9f;
    if (random.below(3) == 0) sampling.top_k = 20;
    if (random.below(4) == 0) sampling.repetition_penalty = 1.2f;
    if (random.below(4) == 0) sampling.frequency_penalty = 0.5f;
    request.client = std::to_string(random.below(3));
    if (random.below(4) == 0) request.stop_tokens = {random.below(scene_vocab), random.below(scene_vocab)};
    requests.push_back(std::move(request));
  }
  return requests;
}

void DivergenceCheck::add(const GenerationRequest& request, const FullAnswer& found,
                          const FullAnswer& expected) {
  ASSERT_TRUE(found.finished.has_value()) << found.failed.value_or("the stream did not end");
  ASSERT_TRUE(expected.finished.has_value());
  ++answers_;
  const std::size_t common = std::min(found.tokens.size(), expected.tokens.size());
  for (std::size_t i = 0; i < common; ++i) {
    const double distance = total_variation(found.tokens[i].logprobs, expected.tokens[i].logprobs);
    ++steps_;
    far_ += distance > limit_ ? 1 : 0;
    farthest_ = std::max(farthest_, distance);
    const bool parted = found.tokens[i].token != expected.tokens[i].token;
    if (is_known(request)) {
      expect_drawn_rightly(request, found, i);
      divergences_.add(divergence_chance(reference::distribution(sampling_of(request, found, i)),
                                         reference::distribution(sampling_of(request, expected, i))),
                       parted);
    }
    if (parted) return;  // from here on they continue different texts
  }
  if (found.finished->reason == FinishReason::cancelled) return;
  EXPECT_EQ(found.tokens.size(), expected.tokens.size());
  EXPECT_EQ(found.finished->reason, expected.finished->reason);
}

void DivergenceCheck::expect(double far_share) const {
  std::cout << answers_ << " answers, " << divergences_.count() << " diverge, expected "
            << divergences_.expected() << "; " << steps_ << " distributions, " << far_ << " farther than "
            << limit_ << ", the farthest " << farthest_ << '\n';
  EXPECT_GT(steps_, answers_);
  EXPECT_LE(far_, far_share * steps_);
  EXPECT_LE(divergences_.count(), divergences_.max_count());
}

}  // namespace inferno::testing
