// Every weight format through a whole model: the logits must be those of the same weights as plain floats.
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/config_json.h"
#include "checkpoint/open_checkpoint.h"
#include "golden/float_checkpoint.h"
#include "model/load.h"
#include "model/runner.h"
#include "model/synthetic/random_checkpoint.h"
#include "support/golden.h"
#include "support/model_backend.h"
#include "support/paths.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"
#include "tolerance.h"

namespace inferno::testing {
namespace {

constexpr std::string_view dense_config = R"({
  "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 300, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
  "tie_word_embeddings": true})";

constexpr std::string_view expert_config = R"({
  "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "num_local_experts": 5, "num_experts_per_tok": 2, "vocab_size": 300,
  "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "tie_word_embeddings": false})";

std::vector<float> logits_of(const Checkpoint& checkpoint) {
  const auto backend = model_backend().make(2);
  LoadedModel model =
      load_model(checkpoint, *backend, {.max_tokens = 32, .max_logit_rows = 8, .context = 40});
  Runner runner(*model.decoder, *backend, 40);
  std::vector<TokenId> tokens;
  for (int i = 0; i < 37; ++i) tokens.push_back((i * 71 + 5) % 300);
  std::vector<float> logits = runner.feed(tokens, 4);
  const TokenId next = 7;  // one more by itself: decoding takes other kernels than a prompt
  const std::vector<float> last = runner.feed(std::span(&next, 1), 1);
  logits.insert(logits.end(), last.begin(), last.end());
  return logits;
}

class Format : public ::testing::TestWithParam<WeightFormat> {
 protected:
  void SetUp() override {
    const AttentionSpec attention = {.heads = 4, .kv_heads = 2, .head_dim = 64, .scale = 1.0f};
    const BlockSpec block = {.attention = attention, .mlp = DenseMlp{.hidden = 1, .activation = {}}};
    if (const auto reason = model_backend().make(1)->refuses(block, GetParam())) GTEST_SKIP() << *reason;
  }
};

TEST_P(Format, GivesTheLogitsOfItsDecodedWeights) {
  const auto checkpoint =
      random_checkpoint(parse_config(dense_config, "test"), "llama", {.dense = GetParam(), .seed = 3});
  EXPECT_LE(relative_error(logits_of(*checkpoint), logits_of(*as_float_checkpoint(*checkpoint))),
            model_backend().decoded_weights);
}

TEST_P(Format, GivesTheLogitsOfItsDecodedExperts) {
  const auto checkpoint = random_checkpoint(parse_config(expert_config, "test"), "mixtral",
                                            {.dense = WeightFormat::bf16, .experts = GetParam(), .seed = 3});
  EXPECT_LE(relative_error(logits_of(*checkpoint), logits_of(*as_float_checkpoint(*checkpoint))),
            model_backend().decoded_weights);
}

bool holds_fractions(WeightFormat format) {
  const std::string_view name = name_of(format);
  return block_elements(format) > 1 || (name != "u8" && name[0] != 'i');
}

// Integers cannot hold weights of a trained size; the operations' own tests cover them.
std::vector<WeightFormat> weight_formats() {
  std::vector<WeightFormat> out;
  for (const WeightFormat format : all_formats) {
    if (holds_fractions(format)) out.push_back(format);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Formats, Format, ::testing::ValuesIn(weight_formats()),
                         [](const auto& format) { return std::string(name_of(format.param)); });

// What reference files lack: weights of eight bits, doubles, several shards of several types.
TEST(Safetensors, WithMixedTypesInSeveralShardsGiveTheSameLogits) {
  const auto checkpoint = random_checkpoint(parse_config(dense_config, "test"), "llama",
                                            {.dense = WeightFormat::f8_e4m3, .seed = 9});
  const TemporaryDirectory folder;
  std::vector<std::vector<SafetensorsData>> shards(3);
  const std::vector<std::string> names = checkpoint->names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const StoredTensor tensor = *checkpoint->find(names[i]);
    SafetensorsData data = {names[i], tensor.format == WeightFormat::f32 ? "F32" : "F8_E4M3", tensor.shape,
                            std::vector<std::byte>(tensor.bytes)};
    tensor.read(0, data.bytes);
    shards[i % shards.size()].push_back(std::move(data));
  }
  write_sharded_safetensors(folder.path(), shards);
  std::ofstream(folder.path() / "config.json")
      << R"({"model_type": "llama", )" << dense_config.substr(dense_config.find('"'));
  EXPECT_EQ(logits_of(*open_checkpoint(folder.path())), logits_of(*checkpoint));
}

}  // namespace
}  // namespace inferno::testing
