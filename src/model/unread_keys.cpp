// Which unread config keys matter. Hugging Face configs carry dozens of keys about training, saving and
// generating; only those whose names speak of the forward pass can make us wrong in silence.
#include <algorithm>
#include <array>
#include <cmath>

#include "model/check_spec.h"

namespace inferno {
namespace {

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
