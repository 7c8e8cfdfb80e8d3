// However a prompt is cut into steps and whichever sequences share them, its logits stay the same bit for
// bit: in one step, in chunks, token by token and in a ragged batch, over cache blocks scattered at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "checkpoint/config_json.h"
#include "checkpoint/open_checkpoint.h"
#include "model/load.h"
#include "model/runner.h"
#include "model/synthetic/random_checkpoint.h"
#include "support/golden.h"
#include "support/model_backend.h"
#include "support/paths.h"
#include "support/published.h"

namespace inferno::testing {
namespace {

constexpr int block_size = 4;
constexpr int prompt_tokens = 61;  // longer than every window of the test models but phi3's
constexpr int sequences = 8;

struct Sequence {
  int index = 0;  // in the batch runner
  std::vector<TokenId> tokens;
  int computed = 0;
};

// A model with a batch runner whose cache blocks are scattered at random.
class ScatteredBatch {
 public:
  ScatteredBatch(const Checkpoint& checkpoint, int threads, const CacheChoice& cache = {},
                 int length = prompt_tokens)
      : length_(length),
        cache_(cache),
        backend_(model_backend().make(threads)),
        model_(load_model(
            checkpoint, *backend_,
            {.max_tokens = 1024, .max_logit_rows = sequences, .context = length + 3, .cache = cache})),
        runner_(*model_.decoder, *backend_,
                {.sequences = sequences, .context = length, .block_size = block_size, .scattered = true}) {}

  const ModelSpec& spec() const { return model_.decoder->spec(); }
  double tolerance() const {
    const bool has_experts = std::ranges::any_of(
        spec().blocks, [](const BlockSpec& block) { return std::holds_alternative<MoeMlp>(block.mlp); });
    const double parity = has_experts ? model_backend().expert_parity : model_backend().parity;
    if (cache_.is_auto()) return parity;
    const bool is_fp8 = cache_.keys == DType::f8_e4m3 || cache_.values == DType::f8_e4m3;
    return std::max(parity, is_fp8 ? model_backend().fp8_parity : model_backend().rounded_cache);
  }

  Sequence sequence(unsigned seed) {
    Sequence out = {.index = next_++, .tokens = {}};
    std::mt19937 random(seed);
    for (int i = 0; i < length_; ++i) {
      out.tokens.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(spec().vocab)));
    }
    return out;
  }

  // Feeds `counts[i]` more tokens of each sequence and returns the last logits of each.
  std::vector<std::vector<float>> step(std::vector<Sequence*> batch, const std::vector<int>& counts) {
    std::vector<BatchRunner::Input> inputs;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      Sequence& s = *batch[i];
      inputs.push_back({.sequence = s.index,
                        .tokens = std::span(s.tokens).subspan(static_cast<std::size_t>(s.computed),
                                                              static_cast<std::size_t>(counts[i])),
                        .start = s.computed,
                        .logits = 1});
      s.computed += counts[i];
    }
    const std::vector<float> all = runner_.read(runner_.step(inputs));
    std::vector<std::vector<float>> out;
    for (auto row = all.begin(); row != all.end(); row += spec().vocab) {
      out.emplace_back(row, row + spec().vocab);
    }
    return out;
  }

 private:
  int length_;
  CacheChoice cache_;
  std::unique_ptr<Backend> backend_;
  LoadedModel model_;
  BatchRunner runner_;
  int next_ = 0;
};

// A model, and whether its KV cache is rounded: to q8_0, or to FP8 and bf16 where heads are no multiple
// of 32.
struct ParityCase {
  std::string model;
  bool is_rounded = false;
};

class Parity : public ::testing::TestWithParam<ParityCase> {
 protected:
  std::unique_ptr<Checkpoint> checkpoint() const { return open_checkpoint(data_folder() / GetParam().model); }
  static CacheChoice cache_for(const Checkpoint& checkpoint) {
    if (!GetParam().is_rounded) return {};
    const ModelSpec spec = describe_model(checkpoint).spec;
    const bool has_blocks = spec.blocks.front().attention.head_dim % 32 == 0;
    return parse_cache_choice(has_blocks ? "q8_0" : "fp8,bf16", "test");
  }
};

TEST_P(Parity, CuttingThePromptDoesNotChangeTheLogits) {
  const auto model = checkpoint();
  ScatteredBatch batch(*model, 2, cache_for(*model));
  Sequence once = batch.sequence(1), chunks = batch.sequence(1), single = batch.sequence(1);
  const std::vector<float> expected = batch.step({&once}, {prompt_tokens})[0];
  std::vector<float> last;
  for (const int count : {1, 17, 4, 30, 9}) last = batch.step({&chunks}, {count})[0];
  EXPECT_LE(relative_error(last, expected), batch.tolerance());
  for (int i = 0; i < prompt_tokens; ++i) last = batch.step({&single}, {1})[0];
  EXPECT_LE(relative_error(last, expected), batch.tolerance());
}

TEST_P(Parity, OtherSequencesInTheBatchDoNotChangeTheLogits) {
  const auto model = checkpoint();
  ScatteredBatch batch(*model, 2, cache_for(*model));
  Sequence once = batch.sequence(1), mixed = batch.sequence(1);
  const std::vector<float> expected = batch.step({&once}, {prompt_tokens})[0];
  Sequence a = batch.sequence(2), b = batch.sequence(3), c = batch.sequence(4);
  batch.step({&a, &mixed}, {12, 20});
  batch.step({&a, &mixed, &b}, {1, 1, 40});
  batch.step({&b, &a, &mixed}, {1, 1, 23});
  const auto last = batch.step({&a, &c, &mixed, &b}, {1, 33, 17, 1});
  EXPECT_LE(relative_error(last[2], expected), batch.tolerance());
}

TEST_P(Parity, ThreadsDoNotChangeTheLogits) {
  const auto model = checkpoint();
  const CacheChoice cache = cache_for(*model);
  ScatteredBatch one(*model, 1, cache), three(*model, 3, cache);
  Sequence a = one.sequence(1), b = three.sequence(1);
  const std::vector<float> expected = one.step({&a}, {prompt_tokens})[0];
  EXPECT_LE(relative_error(three.step({&b}, {prompt_tokens})[0], expected), one.tolerance());
}

// A step of the same shape is queued the first time, recorded the second and replayed from then on.
TEST_P(Parity, ReplayedStepsGiveTheSameBits) {
  const auto model = checkpoint();
  ScatteredBatch batch(*model, 1, cache_for(*model));
  Sequence a = batch.sequence(1), b = batch.sequence(2);
  batch.step({&a, &b}, {20, 30});
  std::vector<std::vector<float>> expected;
  for (int round = 0; round < 4; ++round) {
    a.computed = 20;
    b.computed = 30;
    const auto logits = batch.step({&a, &b}, {1, 1});
    if (round == 0) expected = logits;
    EXPECT_EQ(logits, expected) << "round " << round;
  }
}

std::vector<ParityCase> models(bool is_rounded) {
  std::vector<ParityCase> cases;
  for (const char* folder : {"models", "variants"}) {
    for (const std::string& name : names_in(data_folder() / folder)) {
      cases.push_back({folder + ("/" + name), is_rounded});
    }
  }
  return cases;
}

std::string name_of_model(const ::testing::TestParamInfo<ParityCase>& one) {
  return one.param.model.substr(one.param.model.find('/') + 1);
}

// One of each kind of block that quantized safetensors become, columns in order of activation and experts.
class PublishedParity : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedParity, NeitherCuttingNorOtherSequencesNorThreadsChangeTheLogits) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const auto model = open_checkpoint(*reference / "quantized" / GetParam());
  ScatteredBatch batch(*model, 2), one(*model, 1);
  Sequence once = batch.sequence(1), chunks = batch.sequence(1), single = batch.sequence(1);
  Sequence other = batch.sequence(2), alone = one.sequence(1);
  const std::vector<float> expected = batch.step({&once}, {prompt_tokens})[0];
  std::vector<float> last;
  for (const int count : {1, 17, 4, 30, 9}) last = batch.step({&other, &chunks}, {count, count})[1];
  EXPECT_LE(relative_error(last, expected), batch.tolerance());
  for (int i = 0; i < prompt_tokens; ++i) last = batch.step({&single}, {1})[0];
  EXPECT_LE(relative_error(last, expected), batch.tolerance());
  EXPECT_LE(relative_error(one.step({&alone}, {prompt_tokens})[0], expected), batch.tolerance());
}

INSTANTIATE_TEST_SUITE_P(Quantized, PublishedParity, ::testing::ValuesIn(published_quantizations()),
                         [](const auto& model) { return model.param; });

INSTANTIATE_TEST_SUITE_P(Families, Parity, ::testing::ValuesIn(models(false)), name_of_model);
INSTANTIATE_TEST_SUITE_P(RoundedCache, Parity, ::testing::ValuesIn(models(true)), name_of_model);

// Rows wider than a run of sums and contexts longer than a segment of attention, with a window between the
// two.
struct WideCase {
  WeightFormat weights;
  std::string cache = "auto";
};
std::string name_of_wide(const ::testing::TestParamInfo<WideCase>& one) {
  std::string name = one.param.cache == "auto" ? "" : "_cache_" + one.param.cache;
  std::ranges::replace(name, ',', '_');
  return std::string(name_of(one.param.weights)) + name;
}
class WideParity : public ::testing::TestWithParam<WideCase> {};

TEST_P(WideParity, NeitherCuttingNorOtherSequencesNorThreadsChangeTheLogits) {
  if (model_backend().is_simulated) GTEST_SKIP() << "takes a minute";
  const CacheChoice cache = parse_cache_choice(GetParam().cache, "test");
  const std::string head_dim = cache.keys == DType::q8_0 ? "96" : "40";
  const auto model = random_checkpoint(
      parse_config(
          R"({"hidden_size": 1280, "intermediate_size": 2304, "num_hidden_layers": 2, "head_dim": )" +
              head_dim + R"(,
        "num_attention_heads": 12, "num_key_value_heads": 3, "vocab_size": 300, "rms_norm_eps": 1e-05,
        "rope_theta": 10000, "max_position_embeddings": 4096, "sliding_window": 300, "max_window_layers": 1,
        "use_sliding_window": true, "tie_word_embeddings": false})",
          "config.json"),
      "qwen2", {.dense = GetParam().weights, .experts = GetParam().weights});
  constexpr int length = 700;
  ScatteredBatch batch(*model, 2, cache, length), one(*model, 1, cache, length);
  Sequence once = batch.sequence(1), chunks = batch.sequence(1), other = batch.sequence(2),
           alone = one.sequence(1);
  const std::vector<float> expected = batch.step({&once}, {length})[0];
  batch.step({&chunks}, {290});
  batch.step({&other, &chunks}, {13, 1});
  batch.step({&chunks, &other}, {333, 650});
  for (int i = 0; i < 75; ++i) batch.step({&chunks}, {1});
  EXPECT_LE(relative_error(batch.step({&other, &chunks}, {1, 1})[1], expected), batch.tolerance());
  EXPECT_LE(relative_error(one.step({&alone}, {length})[0], expected), batch.tolerance());
}

INSTANTIATE_TEST_SUITE_P(Formats, WideParity,
                         ::testing::Values(WideCase{WeightFormat::f32}, WideCase{WeightFormat::f16},
                                           WideCase{WeightFormat::bf16}, WideCase{WeightFormat::q8_0},
                                           WideCase{WeightFormat::q4_k}, WideCase{WeightFormat::q5_0}),
                         name_of_wide);
INSTANTIATE_TEST_SUITE_P(RoundedCache, WideParity,
                         ::testing::Values(WideCase{WeightFormat::q8_0, "q8_0"},
                                           WideCase{WeightFormat::bf16, "fp8,f16"}),
                         name_of_wide);

}  // namespace
}  // namespace inferno::testing
