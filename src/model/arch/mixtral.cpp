#include "model/arch/common.h"

namespace inferno::arch {

// Mistral with a mixture of experts, each a gated MLP of three tensors: w1 gates, w3 goes up, w2 down.
Architecture mixtral() {
  return {
      .hf_types = {"mixtral"},
      .gguf_types = {},
      .names = llama_names({{Slot::router, {"model.layers.{}.block_sparse_moe.gate"}},
                            {Slot::expert_gate_up,
                             {"model.layers.{}.block_sparse_moe.experts.{e}.w1",
                              "model.layers.{}.block_sparse_moe.experts.{e}.w3"}},
                            {Slot::expert_down, {"model.layers.{}.block_sparse_moe.experts.{e}.w2"}}}),
      .describe =
          [](const Config& c) {
            ModelSpec spec = llama_spec(c, {.theta = 1e6f});
            set_windows(spec, c, c.integer("sliding_window", 0), every_layer);
            use_experts(spec, {.experts = c.positive("num_local_experts"),
                               .active = c.positive("num_experts_per_tok"),
                               .hidden = c.positive("intermediate_size"),
                               .activation = {.kind = activation(c, "hidden_act", "silu")}});
            return spec;
          },
  };
}

}  // namespace inferno::arch
