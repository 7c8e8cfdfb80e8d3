// However a prompt is cut and whoever shares the step, the logits stay the same, bit for bit: at once, in
// chunks, token by token and in a ragged batch with strangers, over cache blocks scattered at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "checkpoint/config_json.h"
#include "checkpoint/open_checkpoint.h"
#include "model/kv_cache.h"
#include "model/load.h"
#include "model/step.h"
#include "model/synthetic/random_checkpoint.h"
#include "spec/window_groups.h"
#include "support/golden.h"
#include "support/model_backend.h"
#include "support/paths.h"

namespace inferno::testing {
namespace {

constexpr int block_size = 4;
constexpr int prompt_tokens = 61;  // longer than every window of the test models but phi3's
constexpr int sequences = 8;

struct Sequence {
  std::vector<TokenId> tokens;
  std::vector<std::vector<int>> blocks;  // for each window group
  int computed = 0;
};

class Scene {
 public:
  Scene(const Checkpoint& checkpoint, int threads, int length = prompt_tokens)
      : length_(length),
        blocks_each_((length + block_size - 1) / block_size),
        backend_(model_backend().make(threads)),
        model_(load_model(checkpoint, *backend_,
                          {.max_tokens = 1024, .max_logit_rows = sequences, .context = length + 3})),
        groups_(static_cast<int>(window_groups(spec()).size())),
        cache_(spec(), *backend_,
               std::vector<int>(static_cast<std::size_t>(groups_), sequences * blocks_each_), block_size),
        buffers_(*backend_,
                 {.tokens = 1024,
                  .sequences = sequences,
                  .logit_rows = sequences,
                  .blocks_per_sequence = blocks_each_},
                 groups_, block_size) {
    free_.resize(static_cast<std::size_t>(groups_));
    for (std::vector<int>& free : free_) {
      free.resize(static_cast<std::size_t>(sequences * blocks_each_));
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
    for (int i = 0; i < length_; ++i) {
      out.tokens.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(spec().vocab)));
    }
    for (std::vector<int>& free : free_) {
      out.blocks.emplace_back(free.end() - blocks_each_, free.end());
      free.resize(free.size() - static_cast<std::size_t>(blocks_each_));
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
  int length_, blocks_each_;
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
  std::unique_ptr<Checkpoint> checkpoint() const { return open_checkpoint(data_folder() / GetParam()); }
};

TEST_P(Parity, CuttingThePromptDoesNotChangeTheLogits) {
  const auto model = checkpoint();
  Scene scene(*model, 2);
  Sequence once = scene.sequence(1), chunks = scene.sequence(1), single = scene.sequence(1);
  const std::vector<float> expected = scene.step({&once}, {prompt_tokens})[0];
  std::vector<float> last;
  for (const int count : {1, 17, 4, 30, 9}) last = scene.step({&chunks}, {count})[0];
  EXPECT_LE(relative_error(last, expected), scene.tolerance());
  for (int i = 0; i < prompt_tokens; ++i) last = scene.step({&single}, {1})[0];
  EXPECT_LE(relative_error(last, expected), scene.tolerance());
}

TEST_P(Parity, StrangersInTheBatchDoNotChangeTheLogits) {
  const auto model = checkpoint();
  Scene scene(*model, 2);
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
  const auto model = checkpoint();
  Scene one(*model, 1), three(*model, 3);
  Sequence a = one.sequence(1), b = three.sequence(1);
  const std::vector<float> expected = one.step({&a}, {prompt_tokens})[0];
  EXPECT_LE(relative_error(three.step({&b}, {prompt_tokens})[0], expected), one.tolerance());
}

// A step of the same shape is queued the first time, recorded the second and replayed from then on.
TEST_P(Parity, ReplayedStepsGiveTheSameBits) {
  const auto model = checkpoint();
  Scene scene(*model, 1);
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

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const char* folder : {"models", "variants"}) {
    for (const std::string& name : names_in(data_folder() / folder)) names.push_back(folder + ("/" + name));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Families, Parity, ::testing::ValuesIn(models()),
                         [](const auto& model) { return model.param.substr(model.param.find('/') + 1); });

// Rows wider than a run of sums and contexts longer than a segment of attention, with a window between the
// two.
class WideParity : public ::testing::TestWithParam<WeightFormat> {};

TEST_P(WideParity, NeitherCuttingNorStrangersNorThreadsChangeTheLogits) {
  const auto model = random_checkpoint(
      parse_config(R"({"hidden_size": 1280, "intermediate_size": 2304, "num_hidden_layers": 2, "head_dim": 40,
        "num_attention_heads": 12, "num_key_value_heads": 3, "vocab_size": 300, "rms_norm_eps": 1e-05,
        "rope_theta": 10000, "max_position_embeddings": 4096, "sliding_window": 300, "max_window_layers": 1,
        "use_sliding_window": true, "tie_word_embeddings": false})",
                   "config.json"),
      "qwen2", {.dense = GetParam(), .experts = GetParam()});
  constexpr int length = 700;
  Scene scene(*model, 2, length), one(*model, 1, length);
  Sequence once = scene.sequence(1), chunks = scene.sequence(1), other = scene.sequence(2),
           alone = one.sequence(1);
  const std::vector<float> expected = scene.step({&once}, {length})[0];
  scene.step({&chunks}, {290});
  scene.step({&other, &chunks}, {13, 1});
  scene.step({&chunks, &other}, {333, 650});
  for (int i = 0; i < 75; ++i) scene.step({&chunks}, {1});
  EXPECT_LE(relative_error(scene.step({&other, &chunks}, {1, 1})[1], expected), scene.tolerance());
  EXPECT_LE(relative_error(one.step({&alone}, {length})[0], expected), scene.tolerance());
}

INSTANTIATE_TEST_SUITE_P(Formats, WideParity,
                         ::testing::Values(WeightFormat::f32, WeightFormat::f16, WeightFormat::bf16,
                                           WeightFormat::q8_0, WeightFormat::q4_k, WeightFormat::q5_0),
                         [](const auto& format) { return std::string(name_of(format.param)); });

}  // namespace
}  // namespace inferno::testing
