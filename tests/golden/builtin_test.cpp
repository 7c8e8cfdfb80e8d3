// The built-in model generates what transformers generates in float32: ten prompts and their greedy
// continuations.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/open_checkpoint.h"
#include "model/load.h"
#include "model/runner.h"
#include "support/model_backend.h"
#include "support/paths.h"

namespace inferno::testing {
namespace {

namespace fs = std::filesystem;

// The two best logits of a token may be nearly equal; the token may differ only if they are closer
// than this.
float tie() {
  return model_backend().tie;
}

fs::path builtin_model() {
  return source_folder() / "models" / "builtin";
}

struct Continuation {
  std::string prompt;
  std::vector<TokenId> ids, greedy;
  float min_margin = 0;
};

std::vector<Continuation> stored_continuations() {
  std::ifstream file(data_folder() / "builtin_greedy.json");
  std::vector<Continuation> all;
  const nlohmann::json stored = nlohmann::json::parse(file);
  for (const auto& row : stored.at("prompts")) {
    all.push_back({row.at("prompt"), row.at("ids"), row.at("greedy"), row.at("min_margin")});
  }
  return all;
}

class BuiltinModel : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = model_backend().make(2);
  std::unique_ptr<Checkpoint> checkpoint_ = open_checkpoint(builtin_model());
  LoadedModel loaded_ =
      load_model(*checkpoint_, *backend_, {.max_tokens = 64, .max_logit_rows = 1, .context = 256});
  Runner runner_{*loaded_.decoder, *backend_, 256};

  // The largest difference between the best logit and that of the stored token; 0 if every stored token is
  // best.
  float largest_distance(const Continuation& one) {
    runner_.reset();
    std::vector<float> logits = runner_.feed(one.ids, 1);
    float distance = 0;
    for (const TokenId token : one.greedy) {
      const float best = *std::max_element(logits.begin(), logits.end());
      distance = std::max(distance, best - logits.at(static_cast<std::size_t>(token)));
      logits = runner_.feed(std::span(&token, 1), 1);
    }
    return distance;
  }
};

TEST_F(BuiltinModel, ContinuesTenPromptsAsTransformersDoes) {
  const std::vector<Continuation> all = stored_continuations();
  ASSERT_EQ(all.size(), 10u);
  for (const Continuation& one : all) {
    ASSERT_FALSE(one.greedy.empty()) << one.prompt;
    EXPECT_LE(largest_distance(one), one.min_margin > tie() ? 0.0f : tie()) << one.prompt;
  }
}

TEST_F(BuiltinModel, EndsItsAnswersWithTheStopToken) {
  constexpr TokenId return_token = 2;
  int answers = 0;
  for (const Continuation& one : stored_continuations()) {
    if (one.greedy.size() == 64) continue;  // a story, cut off
    EXPECT_EQ(one.greedy.back(), return_token) << one.prompt;
    ++answers;
  }
  EXPECT_EQ(answers, 4);
}

TEST(BuiltinModelFiles, TakeTwelveMegabytesAtMost) {
  std::uintmax_t bytes = 0;
  for (const auto& file : fs::directory_iterator(builtin_model())) bytes += file.file_size();
  EXPECT_LE(bytes, 12'000'000u);
}

}  // namespace
}  // namespace inferno::testing
