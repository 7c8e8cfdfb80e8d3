#include "model/runner.h"

#include <gtest/gtest.h>

#include "model/load.h"
#include "model/synthetic/edited_checkpoint.h"
#include "support/caught_error.h"

namespace inferno {
namespace {

struct Scene {
  EditedCheckpoint checkpoint;
  std::unique_ptr<Backend> backend = make_cpu_backend(1);
  LoadedModel model = load_model(checkpoint, *backend, {.max_tokens = 5, .max_logit_rows = 2, .context = 20});
  Runner runner{*model.decoder, *backend, 20};
};

TEST(Runner, ReturnsOneRowForEachTokenAskedFor) {
  Scene scene;
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(scene.runner.feed(tokens, 7).size(), 7u * 50u);
  EXPECT_EQ(scene.runner.position(), 12);
}

TEST(Runner, GivesTheSameLogitsAfterAReset) {
  Scene scene;
  const std::vector<TokenId> tokens = {4, 8, 15, 16, 23, 42};
  const std::vector<float> first = scene.runner.feed(tokens, 1);
  scene.runner.reset();
  EXPECT_EQ(scene.runner.feed(tokens, 1), first);
}

TEST(LastLogits, AreThoseOfEachSequenceAlone) {
  Scene scene;
  const std::vector<std::vector<TokenId>> sequences = {{4, 8, 15, 16, 23, 42, 1, 2, 3}, {7}};
  const std::vector<float> together = last_logits(*scene.model.decoder, *scene.backend, sequences);
  std::vector<float> alone;
  for (const std::vector<TokenId>& sequence : sequences) {
    scene.runner.reset();
    const std::vector<float> last = scene.runner.feed(sequence, 1);
    alone.insert(alone.end(), last.begin(), last.end());
  }
  EXPECT_EQ(together, alone);
  EXPECT_EQ(caught_error([&] { last_logits(*scene.model.decoder, *scene.backend, {{{1, 50}}}); }).kind(),
            ErrorKind::invalid_request);
}

TEST(Runner, RefusesTokensOutsideTheVocabulary) {
  Scene scene;
  for (const TokenId wrong : {-1, 50, 1 << 30}) {
    const std::vector<TokenId> tokens = {1, wrong};
    EXPECT_EQ(caught_error([&] { scene.runner.feed(tokens, 1); }).kind(), ErrorKind::invalid_request);
  }
}

TEST(Runner, RefusesMoreThanTheContextHolds) {
  Scene scene;
  const std::vector<TokenId> tokens(21, 1);
  EXPECT_EQ(caught_error([&] { scene.runner.feed(tokens, 1); }).kind(), ErrorKind::invalid_request);
}

}  // namespace
}  // namespace inferno
