#!/usr/bin/env python3
"""Times PyTorch/transformers on the CPU on a model of the shape that `inferno bench --shape qwen2.5-0.5b` uses, with
random weights: a prompt of 512 tokens and 32 decoded ones. Prints one line for each dtype. `compare_torch.py THREADS`"""
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

threads = int(sys.argv[1])
torch.set_num_threads(threads)
config = AutoConfig.for_model(
    "qwen2", hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
    vocab_size=151936, rms_norm_eps=1e-6, rope_theta=1e6, max_position_embeddings=32768, tie_word_embeddings=True)


def median(values):
    return sorted(values)[len(values) // 2]


@torch.inference_mode()
def measure(dtype):
    model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    prompt = torch.randint(0, config.vocab_size, (1, 512))
    prefill, decode = [], []
    for _ in range(4):
        begin = time.perf_counter()
        model(prompt, logits_to_keep=1)
        prefill.append(time.perf_counter() - begin)
    for _ in range(3):
        out = model(prompt[:, :1], use_cache=True)
        begin = time.perf_counter()
        for _ in range(32):
            token = out.logits[:, -1:].argmax(-1)
            out = model(token, past_key_values=out.past_key_values, use_cache=True)
        decode.append(time.perf_counter() - begin)
    print(f"torch {torch.__version__} {dtype} {threads} threads: pp512 {512 / median(prefill[1:]):.1f} tok/s, "
          f"tg32 {32 / median(decode):.1f} tok/s", flush=True)


for dtype in (torch.bfloat16, torch.float32):
    measure(dtype)
