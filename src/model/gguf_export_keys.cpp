// A spec in the keys of a GGUF file: gguf_config.cpp and gguf_rope.cpp backwards.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/architecture.h"
#include "model/gguf_export.h"
#include "model/rope.h"

namespace inferno {
namespace {

class Keys {
 public:
  explicit Keys(std::string_view architecture) : architecture_(architecture) {}
  void whole(std::string_view name, int value) { add(name, static_cast<std::uint32_t>(value)); }
  void add(std::string_view name, GgufKeyValue value) {
    keys_.emplace_back(fmt::format("{}.{}", architecture_, name), std::move(value));
  }
  GgufKeys take() { return std::move(keys_); }

 private:
  std::string_view architecture_;
  GgufKeys keys_;
};

// The dense MLP's size, also where every layer has experts and the config still names it.
int dense_hidden(const ModelSpec& spec, const Config& config) {
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) return dense->hidden;
  }
  return config.positive("intermediate_size", std::get<MoeMlp>(spec.blocks.front().mlp).hidden);
}

void add_experts(Keys& keys, const ModelSpec& spec, std::string_view architecture) {
  const auto has_experts = [](const BlockSpec& block) { return std::holds_alternative<MoeMlp>(block.mlp); };
  const auto found = std::find_if(spec.blocks.begin(), spec.blocks.end(), has_experts);
  if (found == spec.blocks.end()) return;
  const auto& moe = std::get<MoeMlp>(found->mlp);
  keys.whole("expert_count", moe.experts);
  keys.whole("expert_used_count", moe.active);
  if (architecture == "qwen3moe" || architecture == "gpt-oss") {
    keys.whole("expert_feed_forward_length", moe.hidden);
  }
  if (architecture == "qwen3moe" && !moe.renormalize) keys.add("expert_weights_norm", false);
}

struct AddScaling {
  Keys& keys;

  void operator()(const NoScaling&) const {}
  void operator()(const Llama3Scaling&) const {}  // a tensor
  void operator()(const FactorScaling&) const {}  // a tensor
  void operator()(const LinearScaling& scaling) const {
    keys.add("rope.scaling.type", std::string("linear"));
    keys.add("rope.scaling.factor", scaling.factor);
  }
  void operator()(const YarnScaling& scaling) const {
    keys.add("rope.scaling.type", std::string("yarn"));
    keys.add("rope.scaling.factor", scaling.factor);
    keys.whole("rope.scaling.original_context_length", scaling.original_context);
    if (scaling.beta_fast != 32.0f) keys.add("rope.scaling.yarn_beta_fast", scaling.beta_fast);
    if (scaling.beta_slow != 1.0f) keys.add("rope.scaling.yarn_beta_slow", scaling.beta_slow);
    // Another attention factor than the usual one is not said: readers disagree about what the key for it
    // means. The comparison with the original then refuses the model.
  }
  void operator()(const LongRopeScaling& scaling) const {
    keys.whole("rope.scaling.original_context_length", scaling.original_context);
    keys.add("rope.scaling.attn_factor", scaling.long_attention_factor);
  }
};

void add_positions(Keys& keys, const ModelSpec& spec) {
  const auto* rope = std::get_if<Rope>(&spec.positions);
  if (rope == nullptr) return;
  keys.add("rope.freq_base", rope->theta);
  keys.whole("rope.dimension_count", rope->dims);
  std::visit(AddScaling{keys}, rope->scaling);
}

void add_multipliers(Keys& keys, const ModelSpec& spec, const Config& config) {
  keys.add("embedding_scale", spec.embedding_scale);
  keys.add("residual_scale", spec.residual_scale);
  keys.add("attention.scale", spec.blocks.front().attention.scale);
  keys.add("logit_scale", config.number("logits_scaling", 1.0f));
}

}  // namespace

std::string_view gguf_architecture(const Checkpoint& checkpoint) {
  // llama.cpp has one name for these three.
  const std::string_view type = checkpoint.architecture();
  if (type == "mistral" || type == "mixtral") return "llama";
  const Architecture& arch = architecture_for(checkpoint);
  expects(!arch.gguf_types.empty(), "a family has a name in GGUF files");
  return arch.gguf_types.front();
}

GgufKeys architecture_keys(const ModelSpec& spec, const Config& config, std::string_view architecture) {
  Keys keys(architecture);
  const AttentionSpec& attention = spec.blocks.front().attention;
  const bool learned = std::holds_alternative<LearnedPositions>(spec.positions);
  keys.whole("vocab_size", spec.vocab);
  keys.whole("context_length", spec.context);
  keys.whole("embedding_length", spec.width);
  keys.whole("block_count", static_cast<int>(spec.blocks.size()));
  keys.whole("feed_forward_length", dense_hidden(spec, config));
  keys.whole("attention.head_count", attention.heads);
  if (!learned) keys.whole("attention.head_count_kv", attention.kv_heads);
  if (attention.head_dim * attention.heads != spec.width || config.has("head_dim")) {
    keys.whole("attention.key_length", attention.head_dim);
    keys.whole("attention.value_length", attention.head_dim);
  }
  keys.add(spec.norm == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
           spec.norm_epsilon);
  const auto narrower = [](const BlockSpec& a, const BlockSpec& b) {
    return a.attention.window < b.attention.window;
  };
  const int window = std::max_element(spec.blocks.begin(), spec.blocks.end(), narrower)->attention.window;
  if (window > 0) keys.whole("attention.sliding_window", window);
  add_experts(keys, spec, architecture);
  add_positions(keys, spec);
  if (architecture.starts_with("granite")) add_multipliers(keys, spec, config);
  return keys.take();
}

std::uint32_t gguf_file_type(const OutgoingGguf& file, const ExportOptions& options) {
  const bool mxfp4 = std::any_of(file.tensors.begin(), file.tensors.end(), [](const OutgoingTensor& tensor) {
    return tensor.format == WeightFormat::mxfp4;
  });
  if (mxfp4) return 38;  // MOSTLY_MXFP4_MOE
  if (options.type == WeightFormat::f16) return 1;
  if (options.type == WeightFormat::q4_0) return 2;
  if (options.type == WeightFormat::q8_0) return 7;
  if (options.type == WeightFormat::q4_k) return 14;  // MOSTLY_Q4_K_S: without other types mixed in
  if (options.type == WeightFormat::q6_k) return 18;
  if (options.type == WeightFormat::bf16) return 32;
  return 0;  // ALL_F32
}

}  // namespace inferno
