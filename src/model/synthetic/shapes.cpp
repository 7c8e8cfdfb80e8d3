#include "model/synthetic/shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/error.h"

namespace inferno {
namespace {

constexpr Shape all[] = {
    {"gpt-oss-20b", "gpt_oss", "bf16+mxfp4", R"({
      "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "head_dim": 64,
      "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 4,
      "vocab_size": 201088, "rms_norm_eps": 1e-05, "rope_theta": 150000, "max_position_embeddings": 131072,
      "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                       "original_max_position_embeddings": 4096, "truncate": false},
      "sliding_window": 128, "swiglu_limit": 7.0, "attention_bias": true, "tie_word_embeddings": false})"},
    {"gpt-oss-120b", "gpt_oss", "bf16+mxfp4", R"({
      "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "head_dim": 64,
      "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 128, "num_experts_per_tok": 4,
      "vocab_size": 201088, "rms_norm_eps": 1e-05, "rope_theta": 150000, "max_position_embeddings": 131072,
      "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                       "original_max_position_embeddings": 4096, "truncate": false},
      "sliding_window": 128, "swiglu_limit": 7.0, "attention_bias": true, "tie_word_embeddings": false})"},
    {"llama-3.2-1b", "llama", "bf16", R"({
      "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-05,
      "rope_theta": 500000, "max_position_embeddings": 131072,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}, "tie_word_embeddings": true})"},
    {"llama-3.1-8b", "llama", "bf16", R"({
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "head_dim": 128,
      "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-05,
      "rope_theta": 500000, "max_position_embeddings": 131072,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}, "tie_word_embeddings": false})"},
    {"mistral-7b", "mistral", "bf16", R"({
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 32768, "rms_norm_eps": 1e-05, "rope_theta": 1000000,
      "max_position_embeddings": 32768, "tie_word_embeddings": false})"},
    {"mixtral-8x7b", "mixtral", "bf16", R"({
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
      "rms_norm_eps": 1e-05, "rope_theta": 1000000, "max_position_embeddings": 32768,
      "tie_word_embeddings": false})"},
    {"qwen2.5-0.5b", "qwen2", "bf16", R"({
      "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
      "num_key_value_heads": 2, "vocab_size": 151936, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
      "max_position_embeddings": 32768, "tie_word_embeddings": true})"},
    {"qwen2.5-7b", "qwen2", "bf16", R"({
      "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "vocab_size": 152064, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
      "max_position_embeddings": 32768, "tie_word_embeddings": false})"},
    {"qwen3-0.6b", "qwen3", "bf16", R"({
      "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "head_dim": 128,
      "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 151936, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000, "max_position_embeddings": 40960, "tie_word_embeddings": true})"},
    {"qwen3-30b-a3b", "qwen3_moe", "bf16", R"({
      "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
      "head_dim": 128, "num_attention_heads": 32, "num_key_value_heads": 4, "num_experts": 128,
      "num_experts_per_tok": 8, "norm_topk_prob": true, "vocab_size": 151936, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000, "max_position_embeddings": 40960, "tie_word_embeddings": false})"},
    {"phi-2", "phi", "f16", R"({
      "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 32, "vocab_size": 51200, "layer_norm_eps": 1e-05, "rope_theta": 10000,
      "partial_rotary_factor": 0.4, "max_position_embeddings": 2048, "hidden_act": "gelu_new",
      "tie_word_embeddings": false})"},
    {"phi-3-mini", "phi3", "bf16", R"({
      "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32,
      "num_key_value_heads": 32, "vocab_size": 32064, "rms_norm_eps": 1e-05, "rope_theta": 10000,
      "max_position_embeddings": 4096, "sliding_window": 2047, "tie_word_embeddings": false})"},
    {"granite-3.3-2b", "granite", "bf16", R"({
      "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 40, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 49159, "rms_norm_eps": 1e-05, "rope_theta": 10000000,
      "max_position_embeddings": 131072, "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
      "attention_multiplier": 0.015625, "logits_scaling": 8.0, "tie_word_embeddings": true})"},
    {"granite-3.1-3b-a800m", "granitemoe", "bf16", R"({
      "hidden_size": 1536, "intermediate_size": 512, "num_hidden_layers": 32, "num_attention_heads": 24,
      "num_key_value_heads": 8, "num_local_experts": 40, "num_experts_per_tok": 8, "vocab_size": 49155,
      "rms_norm_eps": 1e-06, "rope_theta": 10000000, "max_position_embeddings": 131072,
      "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.015625,
      "logits_scaling": 6.0, "tie_word_embeddings": true})"},
    {"gpt2", "gpt2", "f16", R"({
      "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
      "layer_norm_epsilon": 1e-05, "activation_function": "gelu_new"})"},
};

}  // namespace

std::span<const Shape> shapes() {
  return all;
}

const Shape& shape_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Shape& shape : all) {
    if (shape.name == name) return shape;
    names.push_back(shape.name);
  }
  fail(ErrorKind::invalid_request,
       fmt::format("--shape {}: expected one of {}", name, fmt::join(names, ", ")));
}

}  // namespace inferno
