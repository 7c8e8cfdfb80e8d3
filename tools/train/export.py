#!/usr/bin/env python3
"""Writes a trained state as a Hugging Face directory, and reads one back.  export.py WORK MODEL_FOLDER"""
import json
import pathlib
import shutil
import sys

import torch

import mxfp4
import tensor_file
from model import Model, Shape
from model_ids import CONTROL, ID

HERE = pathlib.Path(__file__).resolve().parent
PLAIN = {"before_attention.weight": "input_layernorm.weight", "before_experts.weight": "post_attention_layernorm.weight",
         "attention.sinks": "self_attn.sinks", "experts.router.weight": "mlp.router.weight", "experts.router.bias": "mlp.router.bias",
         "experts.gate_up_bias": "mlp.experts.gate_up_proj_bias", "experts.down_bias": "mlp.experts.down_proj_bias"}
for _name in "qkvo":
    for _kind in ("weight", "bias"):
        PLAIN[f"attention.{_name}.{_kind}"] = f"self_attn.{_name}_proj.{_kind}"
PACKED = {"experts.gate_up": "mlp.experts.gate_up_proj", "experts.down": "mlp.experts.down_proj"}
OUTER = {"embedding.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight", "head.weight": "lm_head.weight"}


def names(shape):
    """(ours, theirs, is it packed) of every tensor."""
    for ours, theirs in OUTER.items():
        yield ours, theirs, False
    for layer in range(shape.layers):
        for ours, theirs in PLAIN.items():
            yield f"layers.{layer}.{ours}", f"model.layers.{layer}.{theirs}", False
        for ours, theirs in PACKED.items():
            yield f"layers.{layer}.{ours}", f"model.layers.{layer}.{theirs}", True


def config(shape):
    kinds = ["sliding_attention" if shape.windowed(i) else "full_attention" for i in range(shape.layers)]
    yarn = {"rope_type": "yarn", "factor": shape.yarn_factor, "beta_fast": shape.beta_fast, "beta_slow": shape.beta_slow,
            "original_max_position_embeddings": shape.yarn_original, "truncate": False, "rope_theta": shape.theta}
    return {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "vocab_size": shape.vocabulary,
            "hidden_size": shape.hidden, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_size, "intermediate_size": shape.expert_hidden,
            "num_local_experts": shape.experts, "num_experts_per_tok": shape.active, "experts_per_token": shape.active,
            "sliding_window": shape.window, "layer_types": kinds, "swiglu_limit": shape.limit, "attention_bias": True,
            "attention_dropout": 0.0, "hidden_act": "silu", "rms_norm_eps": shape.epsilon, "rope_theta": shape.theta,
            "rope_scaling": yarn, "initial_context_length": shape.yarn_original, "max_position_embeddings": shape.context,
            "tie_word_embeddings": False, "eos_token_id": ID["<|return|>"], "pad_token_id": ID["<|endoftext|>"],
            "use_cache": True, "torch_dtype": "bfloat16",
            "quantization_config": {"quant_method": "mxfp4",
                                    "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                                               "model.embed_tokens", "lm_head"]}}


def write(state, shape, tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for ours, theirs, packed in names(shape):
        weight = state[ours].detach().float().cpu()
        if packed:
            tensors[theirs + "_blocks"], tensors[theirs + "_scales"] = mxfp4.pack(weight)
        else:
            tensors[theirs] = weight.to(torch.bfloat16).contiguous()
    tensor_file.save(tensors, folder / "model.safetensors")
    generation = {"bos_token_id": ID["<|startoftext|>"], "do_sample": True, "temperature": 0.7, "top_p": 0.95,
                  "eos_token_id": [ID["<|return|>"], ID["<|endoftext|>"], ID["<|call|>"]], "pad_token_id": ID["<|endoftext|>"]}
    token_config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|startoftext|>", "eos_token": "<|return|>",
                    "pad_token": "<|endoftext|>", "clean_up_tokenization_spaces": False, "model_max_length": shape.context,
                    "additional_special_tokens": CONTROL}
    for name, content in (("config.json", config(shape)), ("generation_config.json", generation),
                          ("tokenizer_config.json", token_config)):
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")
    shutil.copy(tokenizer, folder / "tokenizer.json")
    shutil.copy(HERE / "data" / "chat_template.jinja", folder / "chat_template.jinja")


def load(folder, shape=Shape()):
    """The model as stored, for float32 arithmetic."""
    tensors, state = tensor_file.load(folder / "model.safetensors"), {}
    for ours, theirs, packed in names(shape):
        state[ours] = mxfp4.unpack(tensors[theirs + "_blocks"], tensors[theirs + "_scales"]) if packed else tensors[theirs].float()
    model = Model(shape)
    model.load_state_dict(state)
    return model.eval()


def main():
    work, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    shape = Shape()
    state = torch.load(work / "state.pt", weights_only=False, map_location="cpu")["model"]
    write(state, shape, work / "tokenizer.json", folder)
    trained, again = Model(shape), load(folder, shape)
    trained.load_state_dict(state)
    tokens = torch.randint(0, shape.vocabulary, (1, 64))
    with torch.no_grad():
        difference = (trained(tokens)[0] - again(tokens)[0]).abs().max().item()
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{folder}: {size / 1e6:.2f} MB; stored against trained: largest difference of logits {difference:.1e}")


if __name__ == "__main__":
    main()
