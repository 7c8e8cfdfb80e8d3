#!/usr/bin/env python3
"""Makes tests/data/variants: tiny random models of forms that real checkpoints take and the reference set lacks,
each with logits from transformers in float32. Needs torch and transformers; run as `make_golden.py OUT_FOLDER`."""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

COMMON = dict(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
              vocab_size=64, max_position_embeddings=128, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
              pad_token_id=0)
LONG = [1.0 + 0.25 * i for i in range(4)]
SHORT = [1.0 + 0.03125 * i for i in range(4)]

# name: (model type, changes to COMMON, dtype of the stored weights)
VARIANTS = {
    "llama_biases": ("llama", dict(attention_bias=True, mlp_bias=True), "float32"),
    "llama_linear_rope": ("llama", dict(rope_scaling={"rope_type": "linear", "factor": 4.0}), "float32"),
    "llama_yarn": ("llama", dict(rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}),
                   "bfloat16"),
    "llama_wide_heads": ("llama", dict(head_dim=24, num_attention_heads=2, num_key_value_heads=1), "float16"),
    "mistral_narrow_window": ("mistral", dict(sliding_window=5), "bfloat16"),
    "mixtral_three_active": ("mixtral", dict(num_local_experts=5, num_experts_per_tok=3, sliding_window=7), "bfloat16"),
    "qwen2_plain": ("qwen2", dict(tie_word_embeddings=True), "bfloat16"),
    "qwen2_upper_window": ("qwen2", dict(use_sliding_window=True, sliding_window=6, max_window_layers=1), "bfloat16"),
    "qwen3_bias": ("qwen3", dict(head_dim=16, attention_bias=True), "bfloat16"),
    "qwen3_moe_mixed": ("qwen3_moe", dict(head_dim=8, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=16,
                                          norm_topk_prob=False, mlp_only_layers=[1], num_hidden_layers=3), "bfloat16"),
    "qwen3_moe_step": ("qwen3_moe", dict(head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                         norm_topk_prob=True, decoder_sparse_step=2, num_hidden_layers=4), "bfloat16"),
    "phi_wide_rotary": ("phi", dict(num_key_value_heads=4, partial_rotary_factor=1.0), "float16"),
    "phi_grouped": ("phi", dict(num_key_value_heads=2, partial_rotary_factor=0.5), "float16"),
    "phi3_longrope": ("phi3", dict(rope_scaling={"type": "longrope", "short_factor": SHORT, "long_factor": LONG},
                                   original_max_position_embeddings=32, sliding_window=None), "bfloat16"),
    "phi3_partial": ("phi3", dict(partial_rotary_factor=0.5, sliding_window=9), "bfloat16"),
    "granite_bias": ("granite", dict(attention_bias=True, embedding_multiplier=3.0, residual_multiplier=0.5,
                                     attention_multiplier=0.2, logits_scaling=4.0), "bfloat16"),
    "granitemoe_untied": ("granitemoe", dict(num_local_experts=3, num_experts_per_tok=2, embedding_multiplier=2.0,
                                             residual_multiplier=0.3, attention_multiplier=0.3, logits_scaling=2.0),
                          "bfloat16"),
    "gpt2_inverse_layers": ("gpt2", dict(n_embd=32, n_layer=2, n_head=4, n_positions=128, n_inner=40,
                                         scale_attn_by_inverse_layer_idx=True, activation_function="gelu"), "float32"),
    "gpt2_unscaled": ("gpt2", dict(n_embd=32, n_layer=2, n_head=2, n_positions=128, scale_attn_weights=False,
                                   activation_function="relu"), "float16"),
    "gpt_oss_full": ("gpt_oss", dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=3,
                                     layer_types=["full_attention", "sliding_attention"],
                                     rope_scaling={"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0,
                                                   "beta_slow": 1.0, "original_max_position_embeddings": 16,
                                                   "truncate": False}), "bfloat16"),
}


def make(name, kind, changes, dtype, out):
    torch.manual_seed(sum(map(ord, name)))
    keys = dict(bos_token_id=1, eos_token_id=2, vocab_size=64) if kind == "gpt2" else dict(COMMON)
    keys.update(changes)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **keys), attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            spread = 0.5 if parameter.dim() == 1 else 1.6 / parameter.shape[-1] ** 0.5
            base = 1.0 if parameter.dim() == 1 and parameter.mean().item() == 1.0 else 0.0
            parameter.copy_((base + spread * torch.randn_like(parameter)).to(getattr(torch, dtype)).float())
    folder = out / name
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    # Loaded again, because .to(bfloat16) also rounds the rotary frequencies, which a real load does not.
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tensors = {}
    for case, count in (("one", 1), ("short", 7), ("long", 61)):
        ids = torch.randint(0, 64, (1, count))
        with torch.no_grad():
            logits = model(ids).logits[0].float()
        rows = min(count, 4)
        tensors[f"{case}.ids"] = ids[0].to(torch.int32)
        tensors[f"{case}.logits"] = logits[-rows:].contiguous()
    save_file(tensors, str(folder / "golden.safetensors"))
    (folder / "generation_config.json").unlink(missing_ok=True)


def main():
    out = pathlib.Path(sys.argv[1])
    for name, (kind, changes, dtype) in VARIANTS.items():
        try:
            make(name, kind, changes, dtype, out)
            size = sum(f.stat().st_size for f in (out / name).iterdir())
            print(f"{name}: {size} bytes")
        except Exception as problem:  # one variant must not hide the others
            print(f"{name}: FAILED {type(problem).__name__}: {problem}")


main()
