// Random mixtures of experts: how evenly their tokens spread, and that results do not depend on it. If a
// few experts take most tokens, a prompt's groups are as unequal as in trained models.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "checkpoint/config_json.h"
#include "golden/routing.h"
#include "model/load.h"
#include "model/runner.h"
#include "model/synthetic/random_checkpoint.h"
#include "support/caught_error.h"
#include "support/golden.h"
#include "support/model_backend.h"

namespace inferno::testing {
namespace {

constexpr std::string_view config = R"({
  "hidden_size": 320, "intermediate_size": 320, "num_hidden_layers": 2, "head_dim": 64,
  "num_attention_heads": 8, "num_key_value_heads": 2, "num_local_experts": 32, "num_experts_per_tok": 4,
  "vocab_size": 1000, "rms_norm_eps": 1e-05, "rope_theta": 150000, "max_position_embeddings": 4096,
  "sliding_window": 128, "swiglu_limit": 7.0, "attention_bias": true, "tie_word_embeddings": false})";
constexpr int prompt = 400, decoded = 24, rows = 16;

std::unique_ptr<Checkpoint> mixture(float skew) {
  return random_checkpoint(
      parse_config(config, "test"), "gpt_oss",
      {.dense = WeightFormat::bf16, .experts = WeightFormat::mxfp4, .seed = 5, .router_skew = skew});
}

// A prompt, whose last rows count, then token by token.
std::vector<float> logits_on(const Checkpoint& checkpoint, std::unique_ptr<Backend> backend) {
  LoadedModel model = load_model(checkpoint, *backend,
                                 {.max_tokens = prompt, .max_logit_rows = rows, .context = prompt + decoded});
  Runner runner(*model.decoder, *backend, prompt + decoded);
  std::vector<TokenId> tokens;
  for (int i = 0; i < prompt + decoded; ++i) tokens.push_back((i * 389 + 17) % 1000);
  std::vector<float> logits = runner.feed(std::span(tokens).first(prompt), rows);
  for (int i = prompt; i < prompt + decoded; ++i) {
    const std::vector<float> row = runner.feed(std::span(tokens).subspan(static_cast<std::size_t>(i), 1), 1);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

// How often each expert was chosen, as a share of the mean, the busiest first; all layers together.
std::vector<double> shares(const std::vector<Routes>& routes) {
  std::vector<double> all;
  for (const Routes& layer : routes) {
    const auto experts = static_cast<std::size_t>(layer.experts),
               active = static_cast<std::size_t>(layer.active);
    std::vector<double> counts(experts);
    for (std::size_t at = 0; at < layer.logits.size(); at += experts) {
      std::vector<std::size_t> order(experts);
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::sort(
          order, [&](std::size_t a, std::size_t b) { return layer.logits[at + a] > layer.logits[at + b]; });
      for (std::size_t i = 0; i < active; ++i) ++counts[order[i]];
    }
    const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(experts);
    for (const double count : counts) all.push_back(count / mean);
  }
  std::ranges::sort(all, std::greater());
  return all;
}

void print(const std::string& label, const std::vector<double>& shares) {
  std::cout << label << ", shares of the mean:";
  for (const double share : shares) std::cout << ' ' << static_cast<int>(share * 100.0 + 0.5) / 100.0;
  std::cout << '\n';
}

// The share of all choices that goes to the busiest eighth of the experts (a token chooses as many).
double share_of_busiest(const std::vector<double>& shares) {
  const std::size_t eighth = shares.size() / 8;
  return std::accumulate(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(eighth), 0.0) /
         static_cast<double>(shares.size());
}

// The reference sends each token to the experts that the backend under test chose for it.
void expect_agreement(const Checkpoint& checkpoint, std::vector<Routes>& routes) {
  const std::vector<float> found = logits_on(checkpoint, recording(model_backend().make(2), routes));
  std::vector<Detour> detours;
  const std::vector<float> expected = logits_on(checkpoint, repeating(make_cpu_backend(2), routes, detours));
  const double distance = relative_error(found, expected);
  std::cout << "distance " << distance << ", " << detours.size() << " other choices\n";
  EXPECT_LE(distance, model_backend().quantized_weights);
  EXPECT_LE(static_cast<double>(detours.size()), 0.05 * 2 * (prompt + decoded));
}

// The choices per expert of a mixture with such routers, busiest first; checks its results as well.
std::vector<double> shares_with(float skew) {
  std::vector<Routes> routes;
  expect_agreement(*mixture(skew), routes);
  const std::vector<double> found = shares(routes);
  print("skew " + std::to_string(static_cast<int>(skew)), found);
  return found;
}

TEST(RandomRouters, SpreadTokensOverAllExperts) {
  const std::vector<double> found = shares_with(0.0f);
  EXPECT_LT(share_of_busiest(found), 0.35);  // an eighth if they were all alike
  EXPECT_GT(found.back(), 0.02);
}

TEST(SkewedRouters, SendMostTokensToAFewExpertsAndChangeNoResult) {
  const std::vector<double> found = shares_with(2.0f);
  EXPECT_GT(share_of_busiest(found), 0.5);
  EXPECT_LT(found.back(), 0.05);
}

TEST(SkewedRouters, ThatSendEveryTokenToTheSameExpertsChangeNoResult) {
  EXPECT_GT(share_of_busiest(shares_with(100.0f)), 0.99);
}

TEST(SkewedRouters, NeedABias) {
  const Error error = caught_error([] {
    random_checkpoint(parse_config(R"({"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1,
      "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
      "vocab_size": 300, "rms_norm_eps": 1e-5, "max_position_embeddings": 64})",
                                   "test"),
                      "mixtral", {.router_skew = 2.0f});
  });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  EXPECT_NE(std::string(error.what()).find("no bias"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace inferno::testing
