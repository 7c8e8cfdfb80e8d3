#include "model/arch/common.h"

namespace inferno::arch {

// Granite with a mixture of experts, all of them stacked in two tensors.
Architecture granitemoe() {
  return {
      .hf_types = {"granitemoe"},
      .gguf_types = {"granitemoe"},
      .gguf_rows = GgufRows::rotary_neighbours,
      .names = llama_names({{Slot::router, {"model.layers.{}.block_sparse_moe.router.layer"}},
                            {Slot::expert_gate_up, {"model.layers.{}.block_sparse_moe.input_linear"}},
                            {Slot::expert_down, {"model.layers.{}.block_sparse_moe.output_linear"}}}),
      .describe =
          [](const Config& c) {
            ModelSpec spec = llama_spec(c);
            apply_multipliers(spec, c);
            use_experts(spec, {.experts = c.positive("num_local_experts"),
                               .active = c.positive("num_experts_per_tok"),
                               .hidden = c.positive("intermediate_size"),
                               .activation = {.kind = activation(c, "hidden_act", "silu")}});
            return spec;
          },
  };
}

}  // namespace inferno::arch
