#include "base/error.h"
#include "model/arch/common.h"

namespace inferno::arch {

// Attention and an ungated MLP side by side under one LayerNorm, biases everywhere, heads partly rotated.
Architecture phi() {
  return {
      .hf_types = {"phi"},
      .gguf_types = {"phi2"},
      .names = llama_names({{Slot::final_norm, {"model.final_layernorm"}},
                            {Slot::attention_out, {"model.layers.{}.self_attn.dense"}},
                            {Slot::up, {"model.layers.{}.mlp.fc1"}},
                            {Slot::down, {"model.layers.{}.mlp.fc2"}}},
                           {Slot::mlp_norm, Slot::gate_up}),
      .describe = [](const Config& c) -> ModelSpec {
        if (c.flag("qk_layernorm", false)) {
          fail(ErrorKind::unsupported, c.origin() + ": \"qk_layernorm\": true is not supported for phi");
        }
        BlockSpec block = {
            .attention = grouped_attention(c, {}),
            .mlp = DenseMlp{.hidden = c.positive("intermediate_size"),
                            .activation = {.kind = activation(c, "hidden_act", "gelu_new"), .gated = false},
                            .bias = true},
            .parallel = true,
        };
        block.attention.qkv_bias = block.attention.out_bias = true;
        Rope positions = rope(c, block.attention.head_dim, {});
        if (!c.has("partial_rotary_factor")) positions.dims = block.attention.head_dim / 2;
        return {.vocab = c.positive("vocab_size"),
                .width = c.positive("hidden_size"),
                .context = c.positive("max_position_embeddings"),
                .norm = NormKind::layer,
                .norm_epsilon = c.number("layer_norm_eps", 1e-5f),
                .positions = positions,
                .blocks = repeated(block, c, "num_hidden_layers"),
                .tied_head = c.flag("tie_word_embeddings", false),
                .head_bias = true};
      },
  };
}

}  // namespace inferno::arch
