// Tests routing.h: routes recorded on one backend are repeated on another, and a changed route is detected.
#include "golden/routing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/open_checkpoint.h"
#include "model/load.h"
#include "model/runner.h"
#include "support/golden.h"
#include "support/paths.h"

namespace inferno::testing {
namespace {

constexpr int tokens = 12;

std::vector<float> logits_on(const Checkpoint& checkpoint, std::unique_ptr<Backend> backend) {
  LoadedModel model =
      load_model(checkpoint, *backend, {.max_tokens = 8, .max_logit_rows = tokens, .context = tokens});
  Runner runner(*model.decoder, *backend, tokens);
  std::vector<TokenId> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back((i * 37 + 11) % model.decoder->spec().vocab);
  return runner.feed(ids, tokens);
}

class Routing : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Checkpoint> checkpoint_ = open_checkpoint(data_folder() / GetParam());
  std::vector<Routes> routes_;
  std::vector<Detour> detours_;
};

TEST_P(Routing, RepeatedWhereItWasRecordedChangesNothing) {
  const std::vector<float> expected = logits_on(*checkpoint_, make_cpu_backend(1));
  EXPECT_EQ(logits_on(*checkpoint_, recording(make_cpu_backend(1), routes_)), expected);
  ASSERT_FALSE(routes_.empty());
  EXPECT_EQ(logits_on(*checkpoint_, repeating(make_cpu_backend(1), routes_, detours_)), expected);
  EXPECT_TRUE(detours_.empty());
}

TEST_P(Routing, ThatWasChangedIsFollowedAndReported) {
  const std::vector<float> expected = logits_on(*checkpoint_, recording(make_cpu_backend(1), routes_));
  constexpr std::ptrdiff_t position = 7;
  Routes& last = routes_.back();
  const auto row = last.logits.begin() + position * last.experts;
  std::iter_swap(std::min_element(row, row + last.experts), std::max_element(row, row + last.experts));
  const std::vector<float> found = logits_on(*checkpoint_, repeating(make_cpu_backend(1), routes_, detours_));
  ASSERT_EQ(detours_.size(), 1u);
  EXPECT_EQ(detours_[0].position, position);
  EXPECT_EQ(detours_[0].layer, static_cast<int>(routes_.size()) - 1);
  EXPECT_GT(detours_[0].gap, 0.0);
  const auto vocab = static_cast<std::ptrdiff_t>(expected.size()) / tokens;
  const auto logits_at = [&](const std::vector<float>& all, std::ptrdiff_t at) {
    return std::vector<float>(all.begin() + at * vocab, all.begin() + (at + 1) * vocab);
  };
  EXPECT_EQ(logits_at(found, position - 1), logits_at(expected, position - 1));
  EXPECT_GT(relative_error(logits_at(found, position), logits_at(expected, position)), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Golden, Routing,
                         ::testing::Values("models/mixtral", "models/gpt_oss", "variants/qwen3_moe_mixed"),
                         [](const auto& model) { return model.param.substr(model.param.find('/') + 1); });

}  // namespace
}  // namespace inferno::testing
