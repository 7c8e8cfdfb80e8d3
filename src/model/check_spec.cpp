#include "model/check_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace inferno {
namespace {

class Problems {
 public:
  template <class... Args>
  void unless(bool good, fmt::format_string<Args...> text, Args&&... args) {
    if (!good) list_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

// Larger than any existing model, but small enough that the product of two such numbers fits in 64 bits and
// an activation row in 32.
constexpr int max_features = 1 << 22;
constexpr int max_positions = 1 << 24;

void check(Problems& problems, const AttentionSpec& a, std::size_t layer) {
  problems.unless(a.heads % a.kv_heads == 0,
                  "layer {}: {} attention heads are not a multiple of {} key/value heads", layer, a.heads,
                  a.kv_heads);
  const auto features = (static_cast<std::int64_t>(a.heads) + 2 * std::int64_t{a.kv_heads}) * a.head_dim;
  problems.unless(features <= max_features, "layer {}: {} heads of {} are too many features", layer, a.heads,
                  a.head_dim);
  problems.unless(std::isfinite(a.scale), "layer {}: the attention scale is not finite", layer);
}

void check(Problems& problems, const DenseMlp& mlp, std::size_t layer) {
  problems.unless(mlp.hidden <= max_features, "layer {}: an MLP of {} features is too large", layer,
                  mlp.hidden);
}

void check(Problems& problems, const MoeMlp& mlp, std::size_t layer) {
  problems.unless(mlp.hidden <= max_features, "layer {}: experts of {} features are too large", layer,
                  mlp.hidden);
  problems.unless(mlp.experts <= 65536, "layer {}: {} experts are too many", layer, mlp.experts);
  problems.unless(mlp.active <= mlp.experts, "layer {}: {} of {} experts cannot be active", layer, mlp.active,
                  mlp.experts);
  problems.unless(mlp.activation.kind != Activation::swiglu_clamped || mlp.activation.limit > 0.0f,
                  "layer {}: the clamp {} is not positive", layer, mlp.activation.limit);
}

void check_factors(Problems& problems, const std::vector<float>& factors, int dims, std::string_view name) {
  problems.unless(factors.size() == static_cast<std::size_t>(dims / 2),
                  "rotary scaling: expected {} {} factors, found {}", dims / 2, name, factors.size());
  for (const float factor : factors) {
    problems.unless(factor > 0.0f && std::isfinite(factor), "rotary scaling: {} factor {} is not positive",
                    name, factor);
  }
}

void check(Problems& problems, const Rope& rope, int head_dim) {
  problems.unless(rope.dims > 0 && rope.dims <= head_dim && rope.dims % 2 == 0,
                  "{} rotated dimensions of a head of {}: expected an even number, at most all", rope.dims,
                  head_dim);
  problems.unless(rope.theta > 0.0f && std::isfinite(rope.theta), "rotary base {} is not positive",
                  rope.theta);
  if (const auto* factors = std::get_if<FactorScaling>(&rope.scaling)) {
    check_factors(problems, factors->factors, rope.dims, "frequency");
  }
  if (const auto* scaling = std::get_if<LongRopeScaling>(&rope.scaling)) {
    check_factors(problems, scaling->short_factors, rope.dims, "short");
    check_factors(problems, scaling->long_factors, rope.dims, "long");
  }
  if (const auto* scaling = std::get_if<Llama3Scaling>(&rope.scaling)) {
    problems.unless(scaling->high_freq_factor > scaling->low_freq_factor,
                    "rotary scaling: high_freq_factor {} is not above low_freq_factor {}",
                    scaling->high_freq_factor, scaling->low_freq_factor);
  }
}

void check(Problems&, const LearnedPositions&, int) {}

// Hugging Face configs carry dozens of keys about training, saving and generating. Only a key whose name
// refers to the forward pass can make the results silently wrong.
//
// Words of keys about the forward pass.
constexpr std::array suspicious = {
    std::string_view("rope"),
    std::string_view("rotary"),
    std::string_view("attention"),
    std::string_view("attn"),
    std::string_view("window"),
    std::string_view("scale"),
    std::string_view("scaling"),
    std::string_view("multiplier"),
    std::string_view("softcap"),
    std::string_view("norm"),
    std::string_view("bias"),
    std::string_view("clip"),
    std::string_view("clamp"),
    std::string_view("alibi"),
    std::string_view("expert"),
    std::string_view("moe"),
    std::string_view("router"),
    std::string_view("mlp"),
    std::string_view("activation"),
    std::string_view("residual"),
    std::string_view("parallel"),
    std::string_view("logit"),
    std::string_view("head"),
    std::string_view("layer_types"),
    std::string_view("mamba"),
    std::string_view("ssm"),
    std::string_view("conv"),
    std::string_view("lora"),
    std::string_view("position"),
    std::string_view("sink"),
    std::string_view("kv_"),
    std::string_view("qk_"),
    std::string_view("query_"),
    std::string_view("hidden_act"),
    std::string_view("embedding"),
    std::string_view("limit"),
    std::string_view("linear_"),
    std::string_view("shared"),
    std::string_view("interleave"),
    std::string_view("chunk"),
    std::string_view("temperature_tuning"),
};

// Keys about training, saving, generating, other heads, or what the tensors already say.
constexpr std::array bookkeeping = {
    std::string_view("architectures"),
    std::string_view("model_type"),
    std::string_view("transformers_version"),
    std::string_view("torch_dtype"),
    std::string_view("dtype"),
    std::string_view("_name_or_path"),
    std::string_view("name_or_path"),
    std::string_view("bos_token_id"),
    std::string_view("eos_token_id"),
    std::string_view("pad_token_id"),
    std::string_view("sep_token_id"),
    std::string_view("decoder_start_token_id"),
    std::string_view("tokenizer_class"),
    std::string_view("initializer_range"),
    std::string_view("gradient_checkpointing"),
    std::string_view("use_cache"),
    std::string_view("is_decoder"),
    std::string_view("is_encoder_decoder"),
    std::string_view("return_dict"),
    std::string_view("output_hidden_states"),
    std::string_view("torchscript"),
    std::string_view("pruned_heads"),
    std::string_view("problem_type"),
    std::string_view("finetuning_task"),
    std::string_view("hidden_dropout"),
    std::string_view("attention_dropout"),
    std::string_view("attn_pdrop"),
    std::string_view("resid_pdrop"),
    std::string_view("embd_pdrop"),
    std::string_view("residual_dropout"),
    std::string_view("embedding_dropout"),
    std::string_view("router_aux_loss_coef"),
    std::string_view("router_jitter_noise"),
    std::string_view("output_router_logits"),
    std::string_view("output_attentions"),
    std::string_view("attn_implementation"),
    std::string_view("_attn_implementation"),
    std::string_view("_attn_implementation_internal"),
    std::string_view("n_positions"),
    std::string_view("n_ctx"),
    std::string_view("max_position_embeddings"),
    std::string_view("initial_context_length"),
    std::string_view("original_max_position_embeddings"),
    std::string_view("experts_per_token"),
    std::string_view("reorder_and_upcast_attn"),
    std::string_view("chunk_size_feed_forward"),
    std::string_view("sliding_window"),
    std::string_view("max_window_layers"),
    std::string_view("use_sliding_window"),
    std::string_view("pretraining_tp"),
    std::string_view("rope_scaling.finetuned"),
    std::string_view("tie_encoder_decoder"),
    std::string_view("tie_word_embeddings"),
    std::string_view("temperature"),
    std::string_view("top_k"),
    std::string_view("top_p"),
    std::string_view("repetition_penalty"),
};

constexpr std::array bookkeeping_prefixes = {
    std::string_view("quantization_config."),
    std::string_view("task_specific_params."),
    std::string_view("auto_map."),
    std::string_view("id2label."),
    std::string_view("label2id."),
    std::string_view("summary_"),
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_bookkeeping(std::string_view key) {
  return std::find(bookkeeping.begin(), bookkeeping.end(), key) != bookkeeping.end() ||
         std::any_of(bookkeeping_prefixes.begin(), bookkeeping_prefixes.end(),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

// false, 0, 1 and empty lists leave a product, a sum or a switch as it was.
bool is_neutral(const Config::Value& value) {
  struct Neutral {
    bool operator()(bool flag) const { return !flag; }
    bool operator()(double number) const { return number == 0.0 || number == 1.0; }
    bool operator()(const std::string& text) const {
      return text.empty() || text == "none" || text == "default";
    }
    bool operator()(const std::vector<std::string>& list) const { return list.empty(); }
    bool operator()(const std::vector<double>& list) const { return list.empty(); }
  };
  return std::visit(Neutral{}, value);
}

}  // namespace

std::vector<std::string> spec_problems(const ModelSpec& spec) {
  Problems problems;
  problems.unless(spec.width <= max_features, "a width of {} is too large", spec.width);
  problems.unless(spec.vocab <= 1 << 24, "a vocabulary of {} is too large", spec.vocab);
  problems.unless(spec.context <= max_positions, "a context of {} is too long", spec.context);
  problems.unless(spec.norm_epsilon >= 0.0f && spec.norm_epsilon < 1.0f, "invalid norm epsilon {}",
                  spec.norm_epsilon);
  problems.unless(!(spec.tied_head && spec.head_bias), "a tied head with a bias is not supported");
  for (std::size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const BlockSpec& block = spec.blocks[layer];
    if (layer > 0 && block == spec.blocks[layer - 1]) continue;  // say it once
    check(problems, block.attention, layer);
    std::visit([&](const auto& mlp) { check(problems, mlp, layer); }, block.mlp);
    std::visit([&](const auto& p) { check(problems, p, block.attention.head_dim); }, spec.positions);
  }
  return problems.take();
}

UnreadKeys unread_keys(const Config& config) {
  UnreadKeys out;
  for (const std::string& key : config.unread()) {
    if (is_bookkeeping(key)) continue;
    const bool matters = std::any_of(suspicious.begin(), suspicious.end(),
                                     [&](std::string_view word) { return contains(key, word); });
    const auto value = config.values().find(key);
    const bool neutral = value != config.values().end() && is_neutral(value->second);
    if (matters && !neutral) {
      out.refused.push_back(key);
    } else if (!matters) {
      out.ignored.push_back(key);
    }
  }
  return out;
}

}  // namespace inferno
