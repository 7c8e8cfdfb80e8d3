#include "checkpoint/gguf/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "checkpoint/generation_config.h"
#include "checkpoint/gguf/open_gguf.h"
#include "support/caught_error.h"
#include "support/gguf_writer.h"

namespace inferno {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

GgufWriter model(std::string architecture) {
  return GgufWriter()
      .set("general.architecture", std::move(architecture))
      .tensor("token_embd.weight", 0, {8, 4});
}

std::vector<std::byte> floats(std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Config config_of(const GgufWriter& writer) {
  return open_gguf(memory_source(writer.image().bytes), "x.gguf")->config();
}

TEST(GgufConfig, RenamesLlamasKeys) {
  const Config c = config_of(tiny_llama_gguf(2));
  EXPECT_EQ(c.integer("max_position_embeddings"), 64);
  EXPECT_EQ(c.integer("hidden_size"), 8);
  EXPECT_EQ(c.integer("num_hidden_layers"), 2);
  EXPECT_EQ(c.integer("intermediate_size"), 16);
  EXPECT_EQ(c.integer("num_attention_heads"), 2);
  EXPECT_EQ(c.integer("num_key_value_heads"), 1);
  EXPECT_EQ(c.number("rms_norm_eps"), 1e-5f);
  EXPECT_EQ(c.number("rope_theta"), 10000.0f);
  EXPECT_EQ(c.integer("vocab_size"), 4);
  EXPECT_TRUE(c.flag("tie_word_embeddings", false));
  EXPECT_FALSE(c.flag("attention_bias", true));
  EXPECT_FALSE(c.flag("mlp_bias", true));
  EXPECT_THAT(generation_config(c).eos, ElementsAre(3));
  EXPECT_THAT(c.unread(), IsEmpty());
}

TEST(GgufConfig, RenamesGpt2sKeys) {
  const Config c = config_of(model("gpt2")
                                 .set("gpt2.context_length", std::uint32_t{1024})
                                 .set("gpt2.embedding_length", std::uint32_t{768})
                                 .set("gpt2.block_count", std::uint32_t{12})
                                 .set("gpt2.feed_forward_length", std::uint32_t{3072})
                                 .set("gpt2.attention.head_count", std::uint32_t{12})
                                 .set("gpt2.attention.layer_norm_epsilon", 1e-5f));
  EXPECT_EQ(c.integer("n_positions"), 1024);
  EXPECT_EQ(c.integer("n_embd"), 768);
  EXPECT_EQ(c.integer("n_layer"), 12);
  EXPECT_EQ(c.integer("n_inner"), 3072);
  EXPECT_EQ(c.integer("n_head"), 12);
  EXPECT_EQ(c.number("layer_norm_epsilon"), 1e-5f);
  EXPECT_EQ(c.integer("vocab_size"), 4);
}

TEST(GgufConfig, ConvertsRotatedDimensionsToAFraction) {
  const auto phi = [](std::uint32_t dims) {
    return model("phi2")
        .set("phi2.embedding_length", std::uint32_t{2560})
        .set("phi2.attention.head_count", std::uint32_t{32})
        .set("phi2.rope.dimension_count", dims);
  };
  EXPECT_FLOAT_EQ(config_of(phi(32)).number("partial_rotary_factor"), 0.4f);
  // Phi rotates half of each head by default, so whole heads need an explicit value.
  EXPECT_FLOAT_EQ(config_of(phi(80)).number("partial_rotary_factor"), 1.0f);
  EXPECT_THAT(config_of(phi(81)).unread(), Contains("phi2.rope.dimension_count"));
  for (std::uint32_t dims = 1; dims < 80; ++dims) {
    const float share = config_of(phi(dims)).number("partial_rotary_factor");
    EXPECT_EQ(static_cast<std::uint32_t>(80.0f * share), dims);
  }
}

TEST(GgufConfig, AcceptsConsistentHeadSizes) {
  GgufWriter writer = model("qwen3")
                          .set("qwen3.embedding_length", std::uint32_t{1024})
                          .set("qwen3.attention.head_count", std::uint32_t{16})
                          .set("qwen3.attention.key_length", std::uint32_t{128})
                          .set("qwen3.attention.value_length", std::uint32_t{128})
                          .set("qwen3.rope.dimension_count", std::uint32_t{128});
  EXPECT_EQ(config_of(writer).integer("head_dim"), 128);
  EXPECT_THAT(config_of(writer).unread(), Not(Contains(HasSubstr("qwen3."))));
  writer.set("qwen3.attention.value_length", std::uint32_t{64});
  EXPECT_THAT(config_of(writer).unread(), Contains("qwen3.attention.value_length"));
}

TEST(GgufConfig, RenamesTheExpertKeysOfEachFamily) {
  const Config qwen = config_of(model("qwen3moe")
                                    .set("qwen3moe.expert_count", std::uint32_t{128})
                                    .set("qwen3moe.expert_used_count", std::uint32_t{8})
                                    .set("qwen3moe.feed_forward_length", std::uint32_t{6144})
                                    .set("qwen3moe.expert_feed_forward_length", std::uint32_t{768}));
  EXPECT_EQ(qwen.integer("num_experts"), 128);
  EXPECT_EQ(qwen.integer("num_experts_per_tok"), 8);
  EXPECT_EQ(qwen.integer("moe_intermediate_size"), 768);
  EXPECT_EQ(qwen.integer("intermediate_size"), 6144);
  EXPECT_TRUE(qwen.flag("norm_topk_prob", false));

  const Config mixtral = config_of(model("llama")
                                       .set("llama.expert_count", std::uint32_t{8})
                                       .set("llama.expert_used_count", std::uint32_t{2})
                                       .set("llama.feed_forward_length", std::uint32_t{14336})
                                       .set("llama.expert_feed_forward_length", std::uint32_t{14336}));
  EXPECT_EQ(mixtral.integer("num_local_experts"), 8);
  EXPECT_EQ(mixtral.integer("intermediate_size"), 14336);
  EXPECT_THAT(mixtral.unread(), Not(Contains(HasSubstr("expert_feed"))));

  const Config dense = config_of(model("llama")
                                     .set("llama.expert_count", std::uint32_t{0})
                                     .set("llama.expert_used_count", std::uint32_t{0}));
  EXPECT_FALSE(dense.has("num_local_experts") || dense.has("num_experts_per_tok"));
}

TEST(GgufConfig, RenamesGranitesMultipliers) {
  GgufWriter writer = model("granite")
                          .set("granite.embedding_scale", 12.0f)
                          .set("granite.residual_scale", 0.22f)
                          .set("granite.attention.scale", 0.015625f)
                          .set("granite.logit_scale", 8.0f)
                          .set("granite.rope.scaling.finetuned", true);
  const Config c = config_of(writer);
  EXPECT_EQ(c.number("embedding_multiplier"), 12.0f);
  EXPECT_EQ(c.number("residual_multiplier"), 0.22f);
  EXPECT_EQ(c.number("attention_multiplier"), 0.015625f);
  EXPECT_EQ(c.number("logits_scaling"), 8.0f);
  EXPECT_FALSE(c.has("granite.rope.scaling.finetuned"));
  writer.set("granite.rope.scaling.finetuned", false);
  EXPECT_THAT(config_of(writer).unread(), Contains("granite.rope.scaling.finetuned"));
}

TEST(GgufConfig, AddsTheConstantsOfGptOss) {
  const Config c = config_of(model("gpt-oss")
                                 .set("gpt-oss.block_count", std::uint32_t{3})
                                 .set("gpt-oss.feed_forward_length", std::uint32_t{2880})
                                 .set("gpt-oss.expert_feed_forward_length", std::uint32_t{2880})
                                 .set("gpt-oss.attention.sliding_window", std::uint32_t{128})
                                 .set("gpt-oss.rope.scaling.type", std::string("yarn"))
                                 .set("gpt-oss.rope.scaling.factor", 32.0f)
                                 .set("gpt-oss.rope.scaling.original_context_length", std::uint32_t{4096})
                                 .tensor("blk.0.attn_q.bias", 0, {8})
                                 .tensor("output.weight", 0, {8, 4}));
  EXPECT_EQ(c.number("swiglu_limit"), 7.0f);
  EXPECT_THAT(c.texts("layer_types"),
              ElementsAre("sliding_attention", "full_attention", "sliding_attention"));
  EXPECT_EQ(c.number("rope_scaling.beta_fast"), 32.0f);
  EXPECT_EQ(c.number("rope_scaling.beta_slow"), 1.0f);
  EXPECT_FALSE(c.flag("rope_scaling.truncate", true));
  EXPECT_EQ(c.text("rope_scaling.rope_type", ""), "yarn");
  EXPECT_EQ(c.integer("rope_scaling.original_max_position_embeddings"), 4096);
  EXPECT_EQ(c.integer("intermediate_size"), 2880);
  EXPECT_TRUE(c.flag("attention_bias", false));
  EXPECT_FALSE(c.flag("tie_word_embeddings", true));
}

TEST(GgufConfig, AddsNoOtherConstantsToGptOss) {
  GgufWriter writer = model("gpt-oss").set("gpt-oss.block_count", std::uint32_t{2});
  EXPECT_FALSE(config_of(writer).has("rope_scaling.beta_fast"));
  writer.set("gpt-oss.attention.sliding_window_pattern", std::uint32_t{2});
  EXPECT_THAT(config_of(writer).texts("layer_types"), ElementsAre("sliding_attention", "full_attention"));
  EXPECT_FALSE(config_of(writer).has("gpt-oss.attention.sliding_window_pattern"));
  writer.set("gpt-oss.attention.sliding_window_pattern", std::uint32_t{3});
  EXPECT_FALSE(config_of(writer).has("layer_types"));
  EXPECT_THAT(config_of(writer).unread(), Contains("gpt-oss.attention.sliding_window_pattern"));
}

TEST(GgufConfig, RefusesKeysThatContradictEachOther) {
  const GgufWriter writer = model("gpt-oss")
                                .set("gpt-oss.feed_forward_length", std::uint32_t{1})
                                .set("gpt-oss.expert_feed_forward_length", std::uint32_t{2});
  EXPECT_THAT(caught_error([&] { config_of(writer); }).what(), HasSubstr("contradicts another key"));
}

TEST(GgufConfig, RecognizesKeysThatMeanNoScaling) {
  const auto scaled = [](std::string kind, float factor) {
    return config_of(model("llama")
                         .set("llama.rope.scaling.type", std::move(kind))
                         .set("llama.rope.scaling.factor", factor));
  };
  EXPECT_FALSE(scaled("none", 4.0f).has("rope_scaling.factor"));
  EXPECT_FALSE(scaled("linear", 1.0f).has("rope_scaling.rope_type"));
  EXPECT_EQ(scaled("linear", 4.0f).number("rope_scaling.factor"), 4.0f);
  EXPECT_EQ(scaled("yarn", 1.0f).text("rope_scaling.rope_type", ""), "yarn");
  const Config old = config_of(model("llama").set("llama.rope.scale_linear", 2.0f));
  EXPECT_EQ(old.text("rope_scaling.rope_type", ""), "linear");
  EXPECT_EQ(old.number("rope_scaling.factor"), 2.0f);
}

TEST(GgufConfig, ReadsLlama3sFrequencyFactors) {
  const Config c = config_of(model("llama").tensor("rope_freqs.weight", 0, {3}, floats({1.0f, 2.0f, 8.0f})));
  EXPECT_EQ(c.text("rope_scaling.rope_type", ""), "freq_factors");
  EXPECT_THAT(c.numbers("rope_scaling.freq_factors"), ElementsAre(1.0f, 2.0f, 8.0f));
  const Config none = config_of(model("llama").tensor("rope_freqs.weight", 0, {2}, floats({1.0f, 1.0f})));
  EXPECT_FALSE(none.has("rope_scaling.rope_type"));
}

TEST(GgufConfig, ReadsPhi3sLongRopeFactors) {
  const double scale = 131072.0 / 4096.0;
  const auto usual = static_cast<float>(std::sqrt(1.0 + std::log(scale) / std::log(4096.0)));
  GgufWriter writer = model("phi3")
                          .set("phi3.context_length", std::uint32_t{131072})
                          .set("phi3.rope.scaling.original_context_length", std::uint32_t{4096})
                          .set("phi3.rope.scaling.attn_factor", usual)
                          .set("phi3.attention.sliding_window", std::uint32_t{0})
                          .tensor("rope_factors_long.weight", 0, {2}, floats({2.0f, 3.0f}))
                          .tensor("rope_factors_short.weight", 0, {2}, floats({1.0f, 1.5f}));
  const Config c = config_of(writer);
  EXPECT_EQ(c.text("rope_scaling.rope_type", ""), "longrope");
  EXPECT_THAT(c.numbers("rope_scaling.long_factor"), ElementsAre(2.0f, 3.0f));
  EXPECT_THAT(c.numbers("rope_scaling.short_factor"), ElementsAre(1.0f, 1.5f));
  EXPECT_EQ(c.integer("original_max_position_embeddings"), 4096);
  EXPECT_FALSE(c.has("rope_scaling.attention_factor") || c.has("sliding_window"));
  writer.set("phi3.rope.scaling.attn_factor", 2.0f);
  EXPECT_EQ(config_of(writer).number("rope_scaling.attention_factor"), 2.0f);
}

TEST(GgufConfig, RefusesInvalidFactors) {
  const std::vector<GgufWriter> bad = {
      model("llama").tensor("rope_freqs.weight", 0, {2}, floats({1.0f, 0.0f})),
      model("llama").tensor("rope_freqs.weight", 0, {2}, floats({1.0f, std::nanf("")})),
      model("llama").tensor("rope_freqs.weight", 1, {2}),
      model("llama").tensor("rope_freqs.weight", 0, {2, 2}),
      model("llama").tensor("rope_freqs.weight", 0, {5000}),
      model("phi3").tensor("rope_factors_long.weight", 0, {2}, floats({1.0f, 2.0f}))};
  for (const GgufWriter& writer : bad) {
    EXPECT_EQ(caught_error([&] { config_of(writer); }).kind(), ErrorKind::corrupt);
  }
}

TEST(GgufConfig, KeepsUnknownKeysUnderTheirOwnNames) {
  const Config c = config_of(model("llama")
                                 .set("llama.attn_logit_softcapping", 50.0f)
                                 .set("llama.pattern", std::vector<bool>{true, false})
                                 .set("llama.tensor_data_layout", std::string("Meta AI original pth"))
                                 .set("other.key", std::uint32_t{1}));
  EXPECT_THAT(c.unread(), Contains("llama.attn_logit_softcapping"));
  EXPECT_THAT(c.unread(), Contains("llama.pattern"));
  EXPECT_FALSE(c.has("other.key") || c.has("llama.tensor_data_layout"));
}

TEST(GgufConfig, CollapsesListsOfOneValue) {
  const auto heads = [](std::vector<std::int32_t> list) {
    return config_of(model("llama").set("llama.attention.head_count_kv", std::move(list)));
  };
  EXPECT_EQ(heads({4, 4, 4}).integer("num_key_value_heads"), 4);
  EXPECT_EQ(caught_error([&] { heads({4, 2}).integer("num_key_value_heads"); }).kind(), ErrorKind::corrupt);
}

TEST(GgufConfig, CollectsTheEosTokens) {
  const Config c = config_of(model("llama")
                                 .set("tokenizer.ggml.eos_token_id", std::uint32_t{128001})
                                 .set("tokenizer.ggml.eot_token_id", std::uint32_t{128009})
                                 .set("tokenizer.ggml.eom_token_id", std::uint32_t{128001})
                                 .set("tokenizer.ggml.padding_token_id", ~std::uint32_t{0})
                                 .set("general.sampling.temp", 0.7f)
                                 .set("general.sampling.top_k", std::int32_t{20}));
  const GenerationConfig g = generation_config(c);
  EXPECT_THAT(g.eos, ElementsAre(128001, 128009));
  EXPECT_FALSE(g.pad);
  EXPECT_EQ(g.temperature, 0.7f);
  EXPECT_EQ(g.top_k, 20);
}

}  // namespace
}  // namespace inferno
