#include "model/arch/common.h"

namespace inferno::arch {
namespace {

// Every "decoder_sparse_step"-th layer routes to experts, unless "mlp_only_layers" names it.
void mix_sparse_layers(ModelSpec& spec, const Config& c) {
  // Newer exporters write "num_local_experts".
  const bool newer = c.has("num_local_experts");
  const MoeMlp experts = {.experts = c.positive(newer ? "num_local_experts" : "num_experts"),
                          .active = c.positive("num_experts_per_tok"),
                          .hidden = c.positive("moe_intermediate_size"),
                          .activation = {.kind = activation(c, "hidden_act", "silu")},
                          .renormalize = c.flag("norm_topk_prob", false)};
  const int step = c.positive("decoder_sparse_step", 1);
  const std::vector<float> dense = c.numbers_or_empty("mlp_only_layers");
  for (std::size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    bool sparse = (static_cast<int>(layer) + 1) % step == 0;
    for (const float exception : dense) sparse = sparse && exception != static_cast<float>(layer);
    if (sparse) spec.blocks[layer].mlp = experts;
  }
}

}  // namespace

// Qwen3 with a mixture of experts.
Architecture qwen3_moe() {
  return {
      .hf_types = {"qwen3_moe"},
      .gguf_types = {"qwen3moe"},
      .names = llama_names(
          {{Slot::q_norm, {"model.layers.{}.self_attn.q_norm"}},
           {Slot::k_norm, {"model.layers.{}.self_attn.k_norm"}},
           {Slot::router, {"model.layers.{}.mlp.gate"}},
           {Slot::expert_gate_up,
            {"model.layers.{}.mlp.experts.{e}.gate_proj", "model.layers.{}.mlp.experts.{e}.up_proj"}},
           {Slot::expert_down, {"model.layers.{}.mlp.experts.{e}.down_proj"}}}),
      .describe =
          [](const Config& c) {
            ModelSpec spec = llama_spec(c);
            for (BlockSpec& block : spec.blocks) block.attention.qk_norm = true;
            set_windows(spec, c, optional_window(c), every_layer);
            mix_sparse_layers(spec, c);
            return spec;
          },
  };
}

}  // namespace inferno::arch
