#include "model/slots.h"

#include <algorithm>

namespace inferno {
namespace {

// GGUF's tensor names: one table for all families, because llama.cpp normalizes them when it converts.
// Several rows for a slot are alternatives; the first that exists wins.
const std::vector<Naming>& gguf_names() {
  static const std::vector<Naming> names = {
      {Slot::embedding, {"token_embd"}},
      {Slot::positions, {"position_embd"}},
      {Slot::final_norm, {"output_norm"}},
      {Slot::head, {"output"}},
      {Slot::attention_norm, {"blk.{}.attn_norm"}},
      {Slot::qkv, {"blk.{}.attn_q", "blk.{}.attn_k", "blk.{}.attn_v"}},
      {Slot::qkv, {"blk.{}.attn_qkv"}},
      {Slot::q_norm, {"blk.{}.attn_q_norm"}},
      {Slot::k_norm, {"blk.{}.attn_k_norm"}},
      {Slot::sinks, {"blk.{}.attn_sinks"}},
      {Slot::attention_out, {"blk.{}.attn_output"}},
      {Slot::mlp_norm, {"blk.{}.ffn_norm"}},
      {Slot::mlp_norm, {"blk.{}.post_attention_norm"}},
      {Slot::gate_up, {"blk.{}.ffn_gate", "blk.{}.ffn_up"}},
      {Slot::gate_up, {"blk.{}.ffn_up"}},
      {Slot::up, {"blk.{}.ffn_up"}},
      {Slot::down, {"blk.{}.ffn_down"}},
      {Slot::router, {"blk.{}.ffn_gate_inp"}},
      {Slot::expert_gate_up, {"blk.{}.ffn_gate_exps", "blk.{}.ffn_up_exps"}},
      {Slot::expert_gate_up, {"blk.{}.ffn_gate.{e}", "blk.{}.ffn_up.{e}"}},
      {Slot::expert_down, {"blk.{}.ffn_down_exps"}},
      {Slot::expert_down, {"blk.{}.ffn_down.{e}"}},
  };
  return names;
}

std::string replaced(std::string name, std::string_view mark, const std::string& with) {
  for (auto at = name.find(mark); at != std::string::npos; at = name.find(mark, at + with.size())) {
    name.replace(at, mark.size(), with);
  }
  return name;
}

SlotRequest vector_of(Slot slot, int layer, int size, bool bias = false) {
  return {.slot = slot, .layer = layer, .parts = {1}, .cols = size, .bias = bias, .is_vector = true};
}

std::vector<int> gate_and_up(const ActivationSpec& activation, int hidden) {
  return activation.gated ? std::vector{hidden, hidden} : std::vector{hidden};
}

void add_mlp(std::vector<SlotRequest>& out, const DenseMlp& mlp, int width, int layer) {
  out.push_back({.slot = mlp.activation.gated ? Slot::gate_up : Slot::up,
                 .layer = layer,
                 .parts = gate_and_up(mlp.activation, mlp.hidden),
                 .cols = width,
                 .bias = mlp.bias});
  out.push_back({.slot = Slot::down, .layer = layer, .parts = {width}, .cols = mlp.hidden, .bias = mlp.bias});
}

void add_mlp(std::vector<SlotRequest>& out, const MoeMlp& mlp, int width, int layer) {
  out.push_back(
      {.slot = Slot::router, .layer = layer, .parts = {mlp.experts}, .cols = width, .bias = mlp.router_bias});
  out.push_back({.slot = Slot::expert_gate_up,
                 .layer = layer,
                 .parts = gate_and_up(mlp.activation, mlp.hidden),
                 .cols = width,
                 .experts = mlp.experts,
                 .bias = mlp.expert_bias});
  out.push_back({.slot = Slot::expert_down,
                 .layer = layer,
                 .parts = {width},
                 .cols = mlp.hidden,
                 .experts = mlp.experts,
                 .bias = mlp.expert_bias});
}

void add_block(std::vector<SlotRequest>& out, const ModelSpec& spec, int layer) {
  const BlockSpec& block = spec.blocks[static_cast<std::size_t>(layer)];
  const AttentionSpec& a = block.attention;
  const bool norm_bias = spec.norm == NormKind::layer;
  const int q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  out.push_back(vector_of(Slot::attention_norm, layer, spec.width, norm_bias));
  out.push_back(
      {.slot = Slot::qkv, .layer = layer, .parts = {q, kv, kv}, .cols = spec.width, .bias = a.qkv_bias});
  if (a.qk_norm) out.push_back(vector_of(Slot::q_norm, layer, a.head_dim));
  if (a.qk_norm) out.push_back(vector_of(Slot::k_norm, layer, a.head_dim));
  if (a.sinks) out.push_back(vector_of(Slot::sinks, layer, a.heads));
  out.push_back(
      {.slot = Slot::attention_out, .layer = layer, .parts = {spec.width}, .cols = q, .bias = a.out_bias});
  if (!block.parallel) out.push_back(vector_of(Slot::mlp_norm, layer, spec.width, norm_bias));
  std::visit([&](const auto& mlp) { add_mlp(out, mlp, spec.width, layer); }, block.mlp);
}

}  // namespace

std::vector<SlotRequest> slot_requests(const ModelSpec& spec) {
  std::vector<SlotRequest> out;
  out.push_back({.slot = Slot::embedding, .parts = {spec.vocab}, .cols = spec.width});
  if (const auto* learned = std::get_if<LearnedPositions>(&spec.positions)) {
    out.push_back({.slot = Slot::positions, .parts = {learned->count}, .cols = spec.width});
  }
  for (int layer = 0; layer < static_cast<int>(spec.blocks.size()); ++layer) add_block(out, spec, layer);
  out.push_back(vector_of(Slot::final_norm, -1, spec.width, spec.norm == NormKind::layer));
  if (!spec.tied_head) {
    out.push_back({.slot = Slot::head, .parts = {spec.vocab}, .cols = spec.width, .bias = spec.head_bias});
  }
  return out;
}

std::vector<NameChoice> names_for(const SlotRequest& request, const Architecture& arch, Container container) {
  std::vector<NameChoice> out;
  const auto add = [&](const Naming& naming) {
    NameChoice choice = {.tensors = {}, .layout = naming.layout, .interleaved = naming.interleaved};
    for (const std::string_view name : naming.tensors) {
      choice.tensors.push_back(replaced(std::string(name), "{}", std::to_string(request.layer)));
    }
    out.push_back(std::move(choice));
  };
  for (const Naming& naming : container == Container::gguf ? gguf_names() : arch.names) {
    if (naming.slot == request.slot) add(naming);
  }
  return out;
}

std::string for_expert(const std::string& name, int expert) {
  return replaced(name, "{e}", std::to_string(expert));
}

std::string_view name_of(Slot slot) {
  switch (slot) {
    case Slot::embedding: return "embedding";
    case Slot::positions: return "positions";
    case Slot::final_norm: return "final norm";
    case Slot::head: return "head";
    case Slot::attention_norm: return "attention norm";
    case Slot::qkv: return "Q, K, V";
    case Slot::q_norm: return "Q norm";
    case Slot::k_norm: return "K norm";
    case Slot::sinks: return "sinks";
    case Slot::attention_out: return "attention output";
    case Slot::mlp_norm: return "MLP norm";
    case Slot::gate_up: return "MLP gate and up";
    case Slot::up: return "MLP up";
    case Slot::down: return "MLP down";
    case Slot::router: return "router";
    case Slot::expert_gate_up: return "experts' gate and up";
    case Slot::expert_down: return "experts' down";
  }
  return "";
}

}  // namespace inferno
