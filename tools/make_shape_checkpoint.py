#!/usr/bin/env python3
"""Writes a gpt-oss checkpoint of true size with random weights, as Hugging Face lays it out: sharded safetensors, MXFP4
experts, everything else bf16. For timing the loader and for comparing whole models when real weights are not available.
Needs nothing but Python; a process for each core fills the files. Equal arguments give equal files.

    tools/make_shape_checkpoint.py /dev/shm/gpt-oss-20b --tokenizer FOLDER   # 13.8 GB
    tools/make_shape_checkpoint.py OUT --config tests/data/models/gpt_oss/config.json
    tools/make_shape_checkpoint.py OUT --tokenizer FOLDER --ascii   # greedy answers are ASCII text, for servers that parse them
"""
import argparse
import json
import math
import multiprocessing
import os
import pathlib
import random
import shutil
import struct
import time

GPT_OSS_20B = {
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "torch_dtype": "bfloat16",
    "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "head_dim": 64, "num_attention_heads": 64,
    "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 4, "experts_per_token": 4,
    "vocab_size": 201088, "rms_norm_eps": 1e-05, "rope_theta": 150000, "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                     "original_max_position_embeddings": 4096, "truncate": False},
    "initial_context_length": 4096, "sliding_window": 128, "swiglu_limit": 7.0, "attention_bias": True,
    "hidden_act": "silu", "tie_word_embeddings": False, "eos_token_id": 200002, "pad_token_id": 199999,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "quantization_config": {"quant_method": "mxfp4",
                            "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                                       "model.embed_tokens", "lm_head"]},
}
MXFP4_RMS = 2.926  # of the sixteen codes, all equally likely
STRETCH = 8 << 20  # bytes made at once


def tensors_of(config):
    """name: (dtype, shape, standard deviation); 0 means ones"""
    width, hidden, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    queries, keys = (config[key] * config["head_dim"] for key in ("num_attention_heads", "num_key_value_heads"))
    found = {"model.embed_tokens.weight": ("BF16", [config["vocab_size"], width], 1.0),
             "model.norm.weight": ("BF16", [width], 0),
             "lm_head.weight": ("BF16", [config["vocab_size"], width], width ** -0.5)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}{norm}.weight"] = ("BF16", [width], 0)
        matrices = {"self_attn.q_proj": (queries, width), "self_attn.k_proj": (keys, width),
                    "self_attn.v_proj": (keys, width), "self_attn.o_proj": (width, queries),
                    "mlp.router": (experts, width)}
        for name, (rows, cols) in matrices.items():
            found[f"{at}{name}.weight"] = ("BF16", [rows, cols], cols ** -0.5)
            found[f"{at}{name}.bias"] = ("BF16", [rows], 0.02)
        found[f"{at}self_attn.sinks"] = ("BF16", [config["num_attention_heads"]], 1.0)
        for name, rows, cols in (("gate_up_proj", 2 * hidden, width), ("down_proj", width, hidden)):
            expert = f"{at}mlp.experts.{name}"
            found[f"{expert}_blocks"] = ("U8", [experts, rows, cols // 32, 16], None)
            found[f"{expert}_scales"] = ("U8", [experts, rows, cols // 32], cols ** -0.5)
            found[f"{expert}_bias"] = ("BF16", [experts, rows], 0.02)
    return found


def two_valued(low, high, share_of_high):
    """a table for bytes.translate: of 256 random bytes a share becomes `high`"""
    return bytes(high if i < round(256 * share_of_high) else low for i in range(256))


def scale_table(deviation):
    """E8M0 exponents of two neighbouring powers of two, mixed to the deviation"""
    scale = deviation / MXFP4_RMS
    power = math.floor(math.log2(scale))
    return two_valued(127 + power, 128 + power, ((scale / 2 ** power) ** 2 - 1) / 3)


def bf16_table(deviation):
    """upper bytes: a random sign, and seven bits of exponent of two neighbouring values, mixed to the deviation"""
    mean_square = 7 / 3 * 2.5  # a random mantissa, and a random lowest bit of the exponent
    power = math.floor(math.log2(deviation / mean_square ** 0.5))
    half = (127 + power) // 2
    share = (deviation ** 2 / mean_square / 4.0 ** (2 * half - 127) - 1) / 15
    magnitudes = two_valued(half, half + 1, min(max(share, 0), 1))
    return bytes(magnitudes[i] | (i & 1) << 7 for i in range(256))


def content(dtype, deviation, count, seed):
    if deviation == 0:
        return struct.pack("<H", 0x3F80) * (count // 2)
    draw = random.Random(seed)
    if dtype == "U8":
        raw = draw.randbytes(count)
        return raw if deviation is None else raw.translate(scale_table(deviation))
    out = bytearray(count)
    out[0::2] = draw.randbytes(count // 2)
    out[1::2] = draw.randbytes(count // 2).translate(bf16_table(deviation))
    return bytes(out)


def fill(task):
    path, offset, dtype, deviation, count, seed = task
    with open(path, "r+b", buffering=0) as file:
        file.seek(offset)
        file.write(content(dtype, deviation, count, seed))


def plan_file(path, tensors, seed):
    """writes the header, makes the file as long as it will be, and returns what is to be filled in"""
    header, tasks, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, (dtype, shape, deviation) in tensors.items():
        size = math.prod(shape) * (2 if dtype == "BF16" else 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        for start in range(0, size, STRETCH):
            tasks.append((path, at + start, dtype, deviation, min(STRETCH, size - start), f"{seed} {name} {start}"))
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return [(path, 8 + len(text) + offset, *rest) for path, offset, *rest in tasks], at


def is_ascii_text(token):
    """a byte-level token (Ġ is a space, Ċ a line feed) that is printable ASCII"""
    return all(" " < letter <= "~" or letter in "ĠĊ" for letter in token)


def keep_ascii(out, index, config, tokenizer):
    """Sets the rows of the output matrix to zero that are not ASCII text. Of thousands of random logits one is above zero, so
    that greedy answers have ASCII tokens only."""
    vocab = json.loads((tokenizer / "tokenizer.json").read_text())["model"]["vocab"]
    kept = {number for token, number in vocab.items() if is_ascii_text(token)}
    with open(out / index["lm_head.weight"], "r+b") as file:
        length, = struct.unpack("<Q", file.read(8))
        start = 8 + length + json.loads(file.read(length))["lm_head.weight"]["data_offsets"][0]
        row = 2 * config["hidden_size"]
        for number in range(config["vocab_size"]):
            if number not in kept:
                file.seek(start + number * row)
                file.write(bytes(row))


def split(tensors, shards):
    """neighbours stay together, and every shard has about as many bytes"""
    sizes = {name: math.prod(shape) for name, (_, shape, _) in tensors.items()}
    total, done, parts = sum(sizes.values()), 0, [{} for _ in range(shards)]
    for name in tensors:
        parts[min(shards - 1, done * shards // total)][name] = tensors[name]
        done += sizes[name]
    return [part for part in parts if part]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--config", type=pathlib.Path, help="a gpt_oss config.json; without it gpt-oss-20b")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="a folder whose tokenizer files are copied")
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ascii", action="store_true", help="greedy answers are ASCII text; needs --tokenizer")
    options = parser.parse_args()
    if options.ascii and not options.tokenizer:
        parser.error("--ascii needs --tokenizer: only the vocabulary says which tokens are ASCII text")
    began = time.monotonic()
    config = json.loads(options.config.read_text()) if options.config else GPT_OSS_20B
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "config.json").write_text(json.dumps(config, indent=1))
    parts = split(tensors_of(config), options.shards)
    index, tasks, total = {}, [], 0
    for number, part in enumerate(parts, 1):
        name = f"model-{number:05}-of-{len(parts):05}.safetensors"
        more, size = plan_file(options.out / name, part, options.seed)
        tasks += more
        total += size
        index.update(dict.fromkeys(part, name))
    (options.out / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=1))
    if options.tokenizer:
        for file in options.tokenizer.iterdir():
            if file.name != "config.json" and ".safetensors" not in file.name:
                shutil.copy(file, options.out / file.name)
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.imap_unordered(fill, tasks, chunksize=4):
            pass
    if options.ascii:
        keep_ascii(options.out, index, config, options.tokenizer)
    print(f"{options.out}: {total / 1e9:.2f} GB in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
