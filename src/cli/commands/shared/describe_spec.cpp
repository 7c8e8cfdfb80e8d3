#include "cli/commands/shared/describe_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "chat/json.h"

namespace inferno {
namespace {

std::string_view name(Activation kind) {
  switch (kind) {
    case Activation::silu: return "silu";
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::gelu_erf: return "gelu_erf";
    case Activation::relu: return "relu";
    case Activation::swiglu_clamped: return "swiglu_clamped";
  }
  return "";
}

Json describe(const ActivationSpec& activation) {
  Json out = {{"kind", name(activation.kind)}, {"gated", activation.gated}};
  if (activation.kind == Activation::swiglu_clamped) out["limit"] = activation.limit;
  return out;
}

Json describe(const DenseMlp& mlp) {
  return {{"kind", "dense"},
          {"hidden", mlp.hidden},
          {"activation", describe(mlp.activation)},
          {"bias", mlp.bias}};
}

Json describe(const MoeMlp& mlp) {
  return {{"kind", "experts"},
          {"experts", mlp.experts},
          {"active", mlp.active},
          {"hidden", mlp.hidden},
          {"activation", describe(mlp.activation)},
          {"router_bias", mlp.router_bias},
          {"expert_bias", mlp.expert_bias},
          {"renormalize", mlp.renormalize}};
}

Json describe(const BlockSpec& block) {
  const AttentionSpec& a = block.attention;
  Json out = {{"heads", a.heads},          {"kv_heads", a.kv_heads}, {"head_dim", a.head_dim},
              {"scale", a.scale},          {"window", a.window},     {"qkv_bias", a.qkv_bias},
              {"out_bias", a.out_bias},    {"qk_norm", a.qk_norm},   {"sinks", a.sinks},
              {"parallel", block.parallel}};
  out["mlp"] = std::visit([](const auto& mlp) { return describe(mlp); }, block.mlp);
  return out;
}

Json describe(const NoScaling&) {
  return {{"kind", "none"}};
}
Json describe(const LinearScaling& s) {
  return {{"kind", "linear"}, {"factor", s.factor}};
}
Json describe(const Llama3Scaling& s) {
  return {{"kind", "llama3"},
          {"factor", s.factor},
          {"low_freq_factor", s.low_freq_factor},
          {"high_freq_factor", s.high_freq_factor},
          {"original_context", s.original_context}};
}
Json describe(const YarnScaling& s) {
  return {{"kind", "yarn"},
          {"factor", s.factor},
          {"beta_fast", s.beta_fast},
          {"beta_slow", s.beta_slow},
          {"truncate", s.truncate},
          {"original_context", s.original_context},
          {"attention_factor", s.attention_factor}};
}
Json describe(const LongRopeScaling& s) {
  return {{"kind", "longrope"},
          {"original_context", s.original_context},
          {"short_factors", s.short_factors},
          {"long_factors", s.long_factors},
          {"short_attention_factor", s.short_attention_factor},
          {"long_attention_factor", s.long_attention_factor}};
}
Json describe(const FactorScaling& s) {
  return {{"kind", "factors"}, {"factors", s.factors}};
}

Json describe(const Rope& rope) {
  Json out = {{"kind", "rotary"}, {"theta", rope.theta}, {"dims", rope.dims}};
  out["scaling"] = std::visit([](const auto& scaling) { return describe(scaling); }, rope.scaling);
  return out;
}
Json describe(const LearnedPositions& positions) {
  return {{"kind", "learned"}, {"count", positions.count}};
}

std::uint64_t elements_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(
      std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>()));
}

}  // namespace

namespace {

// Whole numbers without a point: the files have 2880, not 2880.0.
Json number(double value) {
  constexpr double exact = 9007199254740992.0;  // up to here a double holds every whole number
  if (std::trunc(value) == value && std::abs(value) <= exact) return static_cast<std::int64_t>(value);
  return value;
}

Json as_json_value(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) out.push_back(number(value));
  return out;
}
Json as_json_value(double value) {
  return number(value);
}
Json as_json_value(const auto& value) {
  return value;
}

}  // namespace

Json describe_config(const Config& config) {
  Json out = Json::object();
  for (const auto& [key, value] : config.values()) {
    std::visit([&, &name = key](const auto& v) { out[name] = as_json_value(v); }, value);
  }
  return out;
}

Json describe_tensors(const Checkpoint& checkpoint) {
  Json out = Json::array();
  for (const std::string& tensor_name : checkpoint.names()) {
    const auto tensor = checkpoint.find(tensor_name);
    if (!tensor) continue;
    out.push_back({{"name", tensor_name},
                   {"shape", tensor->shape},
                   {"format", name_of(tensor->format)},
                   {"bytes", tensor->bytes},
                   {"elements", elements_of(*tensor)}});
  }
  return out;
}

Json describe_spec(const ModelSpec& spec) {
  Json out = {{"vocab", spec.vocab},
              {"width", spec.width},
              {"layers", spec.blocks.size()},
              {"context", spec.context},
              {"norm", spec.norm == NormKind::rms ? "rms" : "layer"},
              {"norm_epsilon", spec.norm_epsilon},
              {"embedding_scale", spec.embedding_scale},
              {"residual_scale", spec.residual_scale},
              {"logit_scale", spec.logit_scale},
              {"tied_head", spec.tied_head},
              {"head_bias", spec.head_bias}};
  out["positions"] = std::visit([](const auto& positions) { return describe(positions); }, spec.positions);
  Json blocks = Json::array();
  for (std::size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    if (layer > 0 && spec.blocks[layer] == spec.blocks[layer - 1]) {
      blocks.back()["last"] = layer;
      continue;
    }
    Json block = {{"first", layer}, {"last", layer}};
    block.update(describe(spec.blocks[layer]));
    blocks.push_back(std::move(block));
  }
  out["blocks"] = std::move(blocks);
  return out;
}

Json describe_memory(const Footprint& footprint) {
  Json cache = Json::array();
  for (const auto& [window, token_bytes] : footprint.windows) {
    const int tokens = window == 0 ? footprint.context : std::min(window, footprint.context);
    cache.push_back({{"window", window}, {"bytes_per_token", token_bytes}, {"max_tokens", tokens}});
  }
  return {{"weights", footprint.weights.bytes},
          {"cache", cache},
          {"cache_at_full_context", footprint.cache},
          {"workspace", footprint.workspace},
          {"total_at_full_context", footprint.total()}};
}

}  // namespace inferno
