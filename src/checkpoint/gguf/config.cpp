#include "checkpoint/gguf/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

using Values = Config::Values;

struct Rename {
  std::string_view gguf;  // after "{architecture}."
  std::string_view hugging_face;
};

constexpr std::array common_names = {
    Rename{"vocab_size", "vocab_size"},
    Rename{"context_length", "max_position_embeddings"},
    Rename{"embedding_length", "hidden_size"},
    Rename{"block_count", "num_hidden_layers"},
    Rename{"feed_forward_length", "intermediate_size"},
    Rename{"attention.head_count", "num_attention_heads"},
    Rename{"attention.head_count_kv", "num_key_value_heads"},
    Rename{"attention.key_length", "head_dim"},
    Rename{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    Rename{"attention.layer_norm_epsilon", "layer_norm_eps"},
    Rename{"attention.sliding_window", "sliding_window"},
    Rename{"attention.scale", "attention_multiplier"},
    Rename{"embedding_scale", "embedding_multiplier"},
    Rename{"residual_scale", "residual_multiplier"},
    Rename{"logit_scale", "logits_scaling"},
    Rename{"expert_count", "num_local_experts"},
    Rename{"expert_used_count", "num_experts_per_tok"},
    Rename{"expert_shared_feed_forward_length", "shared_intermediate_size"},
    Rename{"expert_weights_norm", "norm_topk_prob"},
    Rename{"rope.freq_base", "rope_theta"},
    Rename{"rope.scaling.type", "rope_scaling.rope_type"},
    Rename{"rope.scaling.factor", "rope_scaling.factor"},
    Rename{"rope.scaling.original_context_length", "rope_scaling.original_max_position_embeddings"},
    Rename{"rope.scaling.yarn_attn_factor", "rope_scaling.attention_factor"},
    Rename{"rope.scaling.yarn_beta_fast", "rope_scaling.beta_fast"},
    Rename{"rope.scaling.yarn_beta_slow", "rope_scaling.beta_slow"},
};

// Names that differ from the common ones in a family's config.json.
struct FamilyName {
  std::string_view architecture;
  Rename name;
};

constexpr std::array family_names = {
    FamilyName{"gpt2", {"context_length", "n_positions"}},
    FamilyName{"gpt2", {"embedding_length", "n_embd"}},
    FamilyName{"gpt2", {"block_count", "n_layer"}},
    FamilyName{"gpt2", {"feed_forward_length", "n_inner"}},
    FamilyName{"gpt2", {"attention.head_count", "n_head"}},
    FamilyName{"gpt2", {"attention.layer_norm_epsilon", "layer_norm_epsilon"}},
    FamilyName{"phi3", {"rope.scaling.original_context_length", "original_max_position_embeddings"}},
    FamilyName{"qwen3moe", {"expert_count", "num_experts"}},
    FamilyName{"qwen3moe", {"expert_feed_forward_length", "moe_intermediate_size"}},
    FamilyName{"gpt-oss", {"expert_feed_forward_length", "intermediate_size"}},
};

// Families whose config.json says whether attention and MLP have biases; GGUF says it only by the tensors.
constexpr std::array families_with_bias_keys = {std::string_view("llama"),      std::string_view("granite"),
                                                std::string_view("granitemoe"), std::string_view("qwen3"),
                                                std::string_view("qwen3moe"),   std::string_view("gpt-oss")};

std::string renamed(std::string_view architecture, std::string_view key) {
  for (const FamilyName& family : family_names) {
    if (family.architecture == architecture && family.name.gguf == key)
      return std::string(family.name.hugging_face);
  }
  for (const Rename& name : common_names) {
    if (name.gguf == key) return std::string(name.hugging_face);
  }
  return fmt::format("{}.{}", architecture, key);
}

// nullopt if Config has no type for the value.
std::optional<Config::Value> decode(const GgufMetadata& metadata, std::string_view key,
                                    const GgufMetadata::Entry& entry) {
  if (entry.is_array) {
    if (entry.type == GgufType::boolean) return std::nullopt;
    if (entry.type != GgufType::string) return metadata.numbers(key).value_or(std::vector<double>{});
    std::vector<std::string> texts;
    for (const std::string_view text : metadata.strings(key).value_or(std::vector<std::string_view>{})) {
      texts.emplace_back(text);
    }
    return texts;
  }
  if (entry.type == GgufType::boolean) return metadata.flag(key).value_or(false);
  if (entry.type == GgufType::string) return std::string(metadata.text(key).value_or(""));
  return metadata.number(key).value_or(0.0);
}

// Some converters write a per-layer list of equal values where others write a single number.
void collapse_uniform(Values& values, std::string_view key) {
  const auto found = values.find(key);
  if (found == values.end()) return;
  const auto* list = std::get_if<std::vector<double>>(&found->second);
  if (list == nullptr || list->empty()) return;
  const double first = list->front();
  if (std::all_of(list->begin(), list->end(), [&](double value) { return value == first; }))
    found->second = first;
}

void drop_when(Values& values, std::string_view key, const Config::Value& without_effect) {
  if (const auto found = values.find(key); found != values.end() && found->second == without_effect)
    values.erase(found);
}

void drop_keys_without_effect(Values& values, std::string_view architecture) {
  for (const std::string_view key :
       {"sliding_window", "num_local_experts", "num_experts", "num_experts_per_tok",
        "shared_intermediate_size", "embedding_multiplier", "residual_multiplier", "attention_multiplier",
        "logits_scaling"}) {
    drop_when(values, key, 0.0);
  }
  const auto own = [&](std::string_view key) { return fmt::format("{}.{}", architecture, key); };
  drop_when(values, own("attention.causal"), true);
  drop_when(values, own("expert_gating_func"), 1.0);  // softmax
  for (const std::string_view key : {"pooling_type", "leading_dense_block_count", "expert_shared_count",
                                     "expert_weights_scale", "rope.scaling.yarn_log_multiplier"}) {
    drop_when(values, own(key), 0.0);
  }
  drop_when(values, own("expert_weights_scale"), 1.0);
  drop_when(values, own("rope.scaling.yarn_ext_factor"), 1.0);
  // Describes the converter's input; the layout of GGUF does not depend on it.
  values.erase(own("tensor_data_layout"));
  // Only Granite uses this key as a switch: no RoPE if false.
  if (architecture.starts_with("granite")) {
    drop_when(values, own("rope.scaling.finetuned"), true);
  } else {
    values.erase(own("rope.scaling.finetuned"));
  }
  // Mixtral's experts are its only MLPs, and some converters write their size twice.
  const auto experts = values.find(own("expert_feed_forward_length"));
  const auto dense = values.find("intermediate_size");
  if (experts != values.end() && dense != values.end() && experts->second == dense->second)
    values.erase(experts);
}

void add_tokens_and_sampling(Values& values, const GgufMetadata& metadata) {
  std::vector<double> ends;
  for (const std::string_view key : {"eos", "eot", "eom"}) {
    const auto id = metadata.integer(fmt::format("tokenizer.ggml.{}_token_id", key));
    if (!id || *id > std::numeric_limits<std::int32_t>::max()) continue;
    if (std::find(ends.begin(), ends.end(), static_cast<double>(*id)) == ends.end()) {
      ends.push_back(static_cast<double>(*id));
    }
  }
  if (!ends.empty()) values.emplace("eos_token_id", ends);
  constexpr std::array copies = {
      std::pair{std::string_view("tokenizer.ggml.bos_token_id"), std::string_view("bos_token_id")},
      std::pair{std::string_view("tokenizer.ggml.padding_token_id"), std::string_view("pad_token_id")},
      std::pair{std::string_view("general.sampling.temp"), std::string_view("temperature")},
      std::pair{std::string_view("general.sampling.top_k"), std::string_view("top_k")},
      std::pair{std::string_view("general.sampling.top_p"), std::string_view("top_p")},
      std::pair{std::string_view("general.sampling.penalty_repeat"), std::string_view("repetition_penalty")}};
  for (const auto& [from, to] : copies) {
    const auto value = metadata.number(from);
    const bool none = to.ends_with("_token_id") && value && *value > std::numeric_limits<std::int32_t>::max();
    if (value && !none) values.emplace(to, *value);
  }
}

void add_keys_from_tensors(Values& values, std::string_view architecture, const Checkpoint& tensors) {
  const auto embedding = tensors.find("token_embd.weight");
  if (embedding) values.insert_or_assign("tie_word_embeddings", !tensors.find("output.weight").has_value());
  if (embedding && embedding->shape.size() == 2) {
    values.try_emplace("vocab_size", static_cast<double>(embedding->shape[0]));
  }
  if (std::find(families_with_bias_keys.begin(), families_with_bias_keys.end(), architecture) ==
      families_with_bias_keys.end())
    return;
  values.insert_or_assign("attention_bias", tensors.find("blk.0.attn_q.bias").has_value());
  if (architecture == "llama" || architecture == "granite") {
    values.insert_or_assign("mlp_bias", tensors.find("blk.0.ffn_up.bias").has_value());
  }
}

// gpt-oss has sliding-window attention in every second layer from the first on, unless a file says otherwise.
void add_alternating_layers(Values& values) {
  drop_when(values, "gpt-oss.attention.sliding_window_pattern", 2.0);
  const auto layers = values.find("num_hidden_layers");
  const auto* count = layers == values.end() ? nullptr : std::get_if<double>(&layers->second);
  constexpr double max_layers = 4096;
  const bool other_pattern = values.contains("gpt-oss.attention.sliding_window_pattern");
  if (count == nullptr || !(*count >= 1 && *count <= max_layers) || other_pattern) return;
  std::vector<std::string> kinds;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(*count); ++layer) {
    kinds.emplace_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  }
  values.try_emplace("layer_types", std::move(kinds));
}

// Values that the converter omits because llama.cpp derives them from the architecture's name.
void add_family_constants(Values& values, std::string_view architecture) {
  if (architecture == "qwen3moe") values.try_emplace("norm_topk_prob", true);
  if (architecture != "gpt-oss") return;
  values.try_emplace("swiglu_limit", 7.0);
  add_alternating_layers(values);
  const auto kind = values.find("rope_scaling.rope_type");
  if (kind == values.end() || kind->second != Config::Value(std::string("yarn"))) return;
  values.try_emplace("rope_scaling.beta_fast", 32.0);
  values.try_emplace("rope_scaling.beta_slow", 1.0);
  values.try_emplace("rope_scaling.truncate", false);
}

// GGUF stores the number of rotated dimensions where Hugging Face has their fraction, and stores the factors
// of some scalings in tensors.
struct RopeSource {
  std::string_view architecture;
  std::string_view origin;
  const Checkpoint& tensors;
};

constexpr std::int64_t max_factors = 4096;
constexpr std::string_view type_key = "rope_scaling.rope_type";

std::optional<double> number(const Values& values, std::string_view key) {
  const auto found = values.find(key);
  const auto* value = found == values.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string> text(const Values& values, std::string_view key) {
  const auto found = values.find(key);
  const auto* value = found == values.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

void erase(Values& values, std::string_view key) {
  if (const auto found = values.find(key); found != values.end()) values.erase(found);
}

// Empty if there is no such tensor.
std::vector<double> factors(const RopeSource& source, std::string_view name) {
  const auto tensor = source.tensors.find(name);
  if (!tensor) return {};
  if (tensor->format != WeightFormat::f32 || tensor->shape.size() != 1 || tensor->shape[0] > max_factors) {
    fail(ErrorKind::corrupt, fmt::format("{}: expected tensor \"{}\" to be a list of at most {} f32 numbers",
                                         source.origin, name, max_factors));
  }
  std::vector<float> read(static_cast<std::size_t>(tensor->shape[0]));
  tensor->read(0, std::as_writable_bytes(std::span(read)));
  const auto sound = [](float factor) { return std::isfinite(factor) && factor > 0.0f; };
  if (!std::all_of(read.begin(), read.end(), sound)) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected tensor \"{}\" to hold finite, positive numbers", source.origin, name));
  }
  return {read.begin(), read.end()};
}

std::optional<double> head_size(const Values& values) {
  if (const auto given = number(values, "head_dim")) return given;
  const auto width = number(values, "hidden_size");
  const auto heads = number(values, "num_attention_heads");
  if (!width || !heads || *heads < 1) return std::nullopt;
  return std::floor(*width / *heads);
}

// The fraction for which trunc(size * fraction), computed in float, is exactly `dims`.
double fraction_of(double dims, double size) {
  auto fraction = static_cast<float>(dims / size);
  if (std::trunc(static_cast<float>(size) * fraction) < static_cast<float>(dims)) {
    fraction = std::nextafter(fraction, std::numeric_limits<float>::infinity());
  }
  return static_cast<double>(fraction);
}

void settle_heads(Values& values, std::string_view architecture) {
  const std::string value_length = fmt::format("{}.attention.value_length", architecture);
  const std::string dims_key = fmt::format("{}.rope.dimension_count", architecture);
  const auto size = head_size(values);
  if (!size || *size < 1) return;
  if (number(values, value_length) == size) erase(values, value_length);
  const auto dims = number(values, dims_key);
  if (!dims || *dims < 1 || *dims > *size) return;
  erase(values, dims_key);
  // Phi rotates half of each head by default; the other families rotate whole heads.
  if (*dims != *size || architecture == "phi2")
    values.emplace("partial_rotary_factor", fraction_of(*dims, *size));
}

// llama.cpp treats a factor without a type as linear scaling, and a linear factor of 0 or 1 as no scaling.
void settle_kind(Values& values, std::string_view architecture) {
  const std::string old_factor = fmt::format("{}.rope.scale_linear", architecture);
  if (const auto factor = number(values, old_factor)) {
    erase(values, old_factor);
    values.try_emplace("rope_scaling.factor", *factor);
  }
  const double factor = number(values, "rope_scaling.factor").value_or(0.0);
  const std::string kind = text(values, type_key).value_or("linear");
  if (kind != "none" && !(kind == "linear" && (factor == 0.0 || factor == 1.0))) {
    values.try_emplace(std::string(type_key), kind);
    return;
  }
  erase(values, type_key);
  erase(values, "rope_scaling.factor");
  erase(values, "rope_scaling.original_max_position_embeddings");
}

// Hugging Face computes this factor for LongRoPE; GGUF stores the result.
bool is_default_attention_factor(const Values& values, double attention_factor) {
  const auto original = number(values, "original_max_position_embeddings");
  const auto context = number(values, "max_position_embeddings");
  if (!original || !context || *original <= 1) return false;
  const double scale = *context / *original;
  const double usual = scale <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(scale) / std::log(*original));
  return std::abs(usual - attention_factor) < 1e-3;
}

void add_long_factors(Values& values, const RopeSource& source) {
  std::vector<double> longer = factors(source, "rope_factors_long.weight");
  std::vector<double> shorter = factors(source, "rope_factors_short.weight");
  if (longer.empty() && shorter.empty()) return;
  if (longer.size() != shorter.size()) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected as many long rope factors as short ones, found {} and {}", source.origin,
                     longer.size(), shorter.size()));
  }
  values.insert_or_assign(std::string(type_key), std::string("longrope"));
  values.insert_or_assign("rope_scaling.long_factor", std::move(longer));
  values.insert_or_assign("rope_scaling.short_factor", std::move(shorter));
}

void add_frequency_factors(Values& values, const RopeSource& source) {
  std::vector<double> found = factors(source, "rope_freqs.weight");
  if (std::all_of(found.begin(), found.end(), [](double factor) { return factor == 1.0; })) return;
  values.try_emplace(std::string(type_key), std::string("freq_factors"));
  values.emplace("rope_scaling.freq_factors", std::move(found));
}

// An extra multiplier on the attention factor of the scaling type; for LongRoPE it is the whole factor.
void settle_attention_factor(Values& values, std::string_view architecture) {
  const std::string key = fmt::format("{}.rope.scaling.attn_factor", architecture);
  const auto factor = number(values, key);
  if (!factor) return;
  if (text(values, type_key) != "longrope") {
    if (*factor == 1.0) erase(values, key);
    return;
  }
  erase(values, key);
  if (!is_default_attention_factor(values, *factor))
    values.try_emplace("rope_scaling.attention_factor", *factor);
}

// "rope_freqs.weight", GGUF's form of llama3 scaling, becomes "rope_scaling.rope_type" =
// "freq_factors" with "rope_scaling.freq_factors": each pair's frequency is divided by its factor.
void settle_rope(Values& values, const RopeSource& source) {
  settle_heads(values, source.architecture);
  settle_kind(values, source.architecture);
  add_long_factors(values, source);
  add_frequency_factors(values, source);
  settle_attention_factor(values, source.architecture);
}

}  // namespace

Config gguf_generation_values(const GgufMetadata& metadata) {
  Values values;
  add_tokens_and_sampling(values, metadata);
  return Config(std::move(values), metadata.origin());
}

Config gguf_config(const GgufMetadata& metadata, const Checkpoint& tensors) {
  const std::string architecture(metadata.text("general.architecture").value_or(""));
  if (architecture.empty() || !utf8::is_valid(architecture)) {
    fail(ErrorKind::corrupt,
         fmt::format("{}: expected \"general.architecture\" to name the architecture", metadata.origin()));
  }
  const std::string prefix = architecture + ".";
  Values values;
  std::vector<std::string> others;
  const auto& entries = metadata.entries();
  for (auto at = entries.lower_bound(prefix); at != entries.end() && at->first.starts_with(prefix); ++at) {
    const std::string name = renamed(architecture, std::string_view(at->first).substr(prefix.size()));
    auto value = decode(metadata, at->first, at->second);
    if (!value) {
      others.push_back(name);
    } else if (const auto [place, fresh] = values.try_emplace(name, *value);
               !fresh && place->second != *value) {
      fail(ErrorKind::corrupt, fmt::format("{}: {} contradicts another key for {}", metadata.origin(),
                                           quote(at->first), quote(name)));
    }
  }
  for (const std::string_view key :
       {"intermediate_size", "n_inner", "num_attention_heads", "num_key_value_heads"}) {
    collapse_uniform(values, key);
  }
  drop_keys_without_effect(values, architecture);
  if (const auto tokens = entries.find("tokenizer.ggml.tokens");
      tokens != entries.end() && tokens->second.is_array) {
    values.try_emplace("vocab_size", static_cast<double>(tokens->second.count));
  }
  add_keys_from_tensors(values, architecture, tensors);
  add_tokens_and_sampling(values, metadata);
  settle_rope(values, {.architecture = architecture, .origin = metadata.origin(), .tensors = tensors});
  add_family_constants(values, architecture);
  // A GGUF file without this key has no sliding window, regardless of the family's default.
  return Config(std::move(values), metadata.origin(), std::move(others), {"sliding_window"});
}

}  // namespace inferno
