#include "model/gguf_names.h"

namespace inferno {

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

}  // namespace inferno
