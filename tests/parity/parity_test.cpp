// However a prompt is cut and whoever shares the step, the logits stay the same to the bit: at once, in
// chunks, token by token and in a ragged batch with strangers, over cache blocks scattered at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "model/kv_cache.h"
#include "model/load.h"
#include "model/step.h"
#include "spec/window_groups.h"
#include "support/golden.h"
#include "support/model_backend.h"
#include "support/paths.h"

namespace inferno::testing {
namespace {

constexpr int block_size = 4;
constexpr int prompt_tokens = 61;  // longer than every window of the test models but phi3's
constexpr int blocks_each = (prompt_tokens + block_size - 1) / block_size;
constexpr int sequences = 8;

struct Sequence {
  std::vector<TokenId> tokens;
  std::vector<std::vector<int>> blocks;  // for each window group
  int computed = 0;
};

class Scene {
 public:
  explicit Scene(const std::filesystem::path& path, int threads)
      : checkpoint_(open_checkpoint(path)),
        backend_(model_backend().make(threads)),
        model_(load_model(*checkpoint_, *backend_,
                          {.max_tokens = 256, .max_logit_rows = sequences, .context = 64})),
        groups_(static_cast<int>(window_groups(spec()).size())),
        cache_(spec(), *backend_,
               std::vector<int>(static_cast<std::size_t>(groups_), sequences * blocks_each), block_size),
        buffers_(*backend_,
                 {.tokens = 256,
                  .sequences = sequences,
                  .logit_rows = sequences,
                  .blocks_per_sequence = blocks_each},
                 groups_, block_size) {
    free_.resize(static_cast<std::size_t>(groups_));
    for (std::vector<int>& free : free_) {
      free.resize(sequences * blocks_each);
      std::iota(free.begin(), free.end(), 0);
      std::shuffle(free.begin(), free.end(), random_);
    }
  }

  const ModelSpec& spec() const { return model_.decoder->spec(); }
  double tolerance() const {
    const bool mixes = std::ranges::any_of(
        spec().blocks, [](const BlockSpec& block) { return std::holds_alternative<MoeMlp>(block.mlp); });
    return mixes ? model_backend().expert_parity : model_backend().parity;
  }

  Sequence sequence(unsigned seed) {
    Sequence out;
    std::mt19937 random(seed);
    for (int i = 0; i < prompt_tokens; ++i) {
      out.tokens.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(spec().vocab)));
    }
    for (std::vector<int>& free : free_) {
      out.blocks.emplace_back(free.end() - blocks_each, free.end());
      free.resize(free.size() - blocks_each);
    }
    return out;
  }

  // Feeds `counts[i]` more tokens of each sequence and returns the last logits of each.
  std::vector<std::vector<float>> step(std::vector<Sequence*> batch, const std::vector<int>& counts) {
    std::vector<StepSlice> slices;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Sequence& s = *batch[i];
      StepSlice slice = {.tokens = std::span(s.tokens).subspan(static_cast<std::size_t>(s.computed),
                                                               static_cast<std::size_t>(counts[i])),
                         .start = s.computed,
                         .logits = 1,
                         .blocks = {}};
      for (const std::vector<int>& blocks : s.blocks) slice.blocks.emplace_back(blocks);
      slices.push_back(slice);
      s.computed += counts[i];
    }
    const Matrix logits = model_.decoder->forward(buffers_.fill(slices), cache_.layers());
    std::vector<float> all(static_cast<std::size_t>(logits.rows) * static_cast<std::size_t>(logits.cols));
    backend_->download(std::as_writable_bytes(std::span(all)), logits);
    std::vector<std::vector<float>> out;
    for (int row = 0; row < logits.rows; ++row) {
      out.emplace_back(all.begin() + row * logits.cols, all.begin() + (row + 1) * logits.cols);
    }
    return out;
  }

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Backend> backend_;
  LoadedModel model_;
  int groups_;
  KvCache cache_;
  StepBuffers buffers_;
  std::mt19937 random_{7};
  std::vector<std::vector<int>> free_;
};

class Parity : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path path() const { return data_folder() / "models" / GetParam(); }
};

TEST_P(Parity, CuttingThePromptDoesNotChangeTheLogits) {
  Scene scene(path(), 2);
  Sequence once = scene.sequence(1), chunks = scene.sequence(1), single = scene.sequence(1);
  const std::vector<float> expected = scene.step({&once}, {prompt_tokens})[0];
  std::vector<float> last;
  for (const int count : {1, 17, 4, 30, 9}) last = scene.step({&chunks}, {count})[0];
  EXPECT_LE(relative_error(last, expected), scene.tolerance());
  for (int i = 0; i < prompt_tokens; ++i) last = scene.step({&single}, {1})[0];
  EXPECT_LE(relative_error(last, expected), scene.tolerance());
}

TEST_P(Parity, StrangersInTheBatchDoNotChangeTheLogits) {
  Scene scene(path(), 2);
  Sequence once = scene.sequence(1), mixed = scene.sequence(1);
  const std::vector<float> expected = scene.step({&once}, {prompt_tokens})[0];
  Sequence a = scene.sequence(2), b = scene.sequence(3), c = scene.sequence(4);
  scene.step({&a, &mixed}, {12, 20});
  scene.step({&a, &mixed, &b}, {1, 1, 40});
  scene.step({&b, &a, &mixed}, {1, 1, 23});
  const auto last = scene.step({&a, &c, &mixed, &b}, {1, 33, 17, 1});
  EXPECT_LE(relative_error(last[2], expected), scene.tolerance());
}

TEST_P(Parity, ThreadsDoNotChangeTheLogits) {
  Scene one(path(), 1), three(path(), 3);
  Sequence a = one.sequence(1), b = three.sequence(1);
  const std::vector<float> expected = one.step({&a}, {prompt_tokens})[0];
  EXPECT_LE(relative_error(three.step({&b}, {prompt_tokens})[0], expected), one.tolerance());
}

// A step of the same shape is queued the first time, recorded the second and replayed from then on.
TEST_P(Parity, ReplayedStepsGiveTheSameBits) {
  Scene scene(path(), 1);
  Sequence a = scene.sequence(1), b = scene.sequence(2);
  scene.step({&a, &b}, {20, 30});
  std::vector<std::vector<float>> expected;
  for (int round = 0; round < 4; ++round) {
    a.computed = 20;
    b.computed = 30;
    const auto logits = scene.step({&a, &b}, {1, 1});
    if (round == 0) expected = logits;
    EXPECT_EQ(logits, expected) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Parity, ::testing::ValuesIn(names_in(data_folder() / "models")),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace inferno::testing
