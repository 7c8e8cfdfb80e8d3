#!/usr/bin/env python3
"""The same model in Inferno and in PyTorch/transformers, on one machine, in one run.

compare_torch.py cpu THREADS
    times a model of Qwen2.5-0.5B's shape on the CPU: `inferno bench --shape qwen2.5-0.5b` is the other side.

compare_torch.py cuda INFERNO [--parts logits-llama,logits-gpt-oss,speed-llama,speed-gpt-oss] [--json FILE]
    Random weights of the true shapes are made on the GPU and written as a Hugging Face folder (gpt-oss: MXFP4 experts).
    Logits: transformers computes them in float32 (the reference) and in bf16 (the yardstick), `inferno logits` from the
    files; positions 1, 127 to 129, 4096 and 8191 of one sequence, and decoding batches of 1, 3, 8 and 33. Speed: decoding
    and a prompt of 2,048 tokens, transformers with and without a CUDA graph. Ends with 1 when Inferno is farther from
    the reference than the gate allows.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time
import traceback

import torch
from transformers import AutoConfig, AutoModelForCausalLM

POSITIONS = [1, 127, 128, 129, 4096, 8191]
BATCHES = [1, 3, 8, 33]
# bf16 rounds as transformers in bf16 does; more than half as far again means a mistake. Below the second, nobody asks.
GATE, SMALL = 1.5, 1.5e-2

LLAMA = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "head_dim": 64,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0, "max_position_embeddings": 131072, "tie_word_embeddings": True,
    "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192}}
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "head_dim": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 4,
    "vocab_size": 201088, "rms_norm_eps": 1e-05, "rope_theta": 150000.0, "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                     "original_max_position_embeddings": 4096, "truncate": False},
    "sliding_window": 128, "swiglu_limit": 7.0, "attention_bias": True, "tie_word_embeddings": False}


def median(values):
    return sorted(values)[len(values) // 2]


def layer_count(config):
    return config["num_hidden_layers"]


class Weights:
    """Random tensors on the GPU: `stored` as files hold them, `plain` as transformers computes on them."""

    def __init__(self, seed):
        self.random = torch.Generator(device="cuda").manual_seed(seed)
        self.stored, self.plain = {}, {}

    def add(self, name, tensor):
        self.stored[name] = self.plain[name] = tensor

    def normal(self, name, shape, deviation):
        values = torch.randn(shape, generator=self.random, device="cuda", dtype=torch.float32) * deviation
        self.add(name, values.to(torch.bfloat16))

    def linear(self, name, rows, cols, bias, gain=1.0):
        self.normal(name + ".weight", (rows, cols), gain * cols ** -0.5)
        if bias:
            self.normal(name + ".bias", (rows,), 0.02)

    def ones(self, name, size):
        self.add(name, torch.ones(size, device="cuda", dtype=torch.bfloat16))

    def mxfp4(self, name, experts, rows, cols):
        """Codes at random and scales of 2^-7 and 2^-8, which together deviate by about 1/sqrt(2880)."""
        blocks = torch.randint(0, 256, (experts, rows, cols // 32, 16), generator=self.random, device="cuda", dtype=torch.uint8)
        scales = torch.randint(119, 121, (experts, rows, cols // 32), generator=self.random, device="cuda", dtype=torch.uint8)
        self.stored[name + "_blocks"], self.stored[name + "_scales"] = blocks, scales
        values = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], device="cuda", dtype=torch.bfloat16)
        pairs = torch.stack((values[(blocks & 15).int()], values[(blocks >> 4).int()]), dim=-1)
        scale = torch.exp2(scales.float() - 127).to(torch.bfloat16)[..., None, None]
        # [experts, rows, cols] on disk, [experts, cols, rows] in transformers
        self.plain[name] = (pairs * scale).reshape(experts, rows, cols).transpose(1, 2).contiguous()
        self.normal(name + "_bias", (experts, rows), 0.02)


def attention(weights, prefix, c, bias):
    heads, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    weights.linear(prefix + "q_proj", heads, c["hidden_size"], bias)
    weights.linear(prefix + "k_proj", kv, c["hidden_size"], bias)
    weights.linear(prefix + "v_proj", kv, c["hidden_size"], bias)
    weights.linear(prefix + "o_proj", c["hidden_size"], heads, bias)


def make_weights(c, seed=1):
    weights = Weights(seed)
    width = c["hidden_size"]
    is_mixture = "num_local_experts" in c
    # A head three times as large: the logits then deviate by 3, and a distribution has something to say.
    tied = c["tie_word_embeddings"]
    weights.normal("model.embed_tokens.weight", (c["vocab_size"], width), 3.0 * width ** -0.5 if tied else 1.0)
    if not tied:
        weights.linear("lm_head", c["vocab_size"], width, False, gain=3.0)
    for layer in range(layer_count(c)):
        prefix = f"model.layers.{layer}."
        weights.ones(prefix + "input_layernorm.weight", width)
        weights.ones(prefix + "post_attention_layernorm.weight", width)
        attention(weights, prefix + "self_attn.", c, is_mixture)
        if is_mixture:
            weights.normal(prefix + "self_attn.sinks", (c["num_attention_heads"],), 1.0)
            weights.linear(prefix + "mlp.router", c["num_local_experts"], width, True)
            weights.mxfp4(prefix + "mlp.experts.gate_up_proj", c["num_local_experts"], 2 * c["intermediate_size"], width)
            weights.mxfp4(prefix + "mlp.experts.down_proj", c["num_local_experts"], width, c["intermediate_size"])
        else:
            weights.linear(prefix + "mlp.gate_proj", c["intermediate_size"], width, False)
            weights.linear(prefix + "mlp.up_proj", c["intermediate_size"], width, False)
            weights.linear(prefix + "mlp.down_proj", width, c["intermediate_size"], False)
    weights.ones("model.norm.weight", width)
    return weights


def write_model(folder, c, weights):
    from safetensors.torch import save_file
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = dict(c)
    if "num_local_experts" in c:
        config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config))
    save_file({name: tensor.cpu() for name, tensor in weights.stored.items()}, folder / "model.safetensors")


def build(c, dtype, plain=None):
    settings = {key: value for key, value in c.items() if key != "model_type"}
    config = AutoConfig.for_model(c["model_type"], **settings)
    more = {"attn_implementation": "eager"} if "num_local_experts" in c else {}  # the one that knows sinks everywhere
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype, **more).eval()
    if dtype == torch.float32 and hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # the fast ones want bf16
    if plain is not None:
        shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
        if any(name.endswith("gate_up_proj") and shapes[name] != tensor.shape for name, tensor in plain.items()):
            plain = {name: tensor.transpose(1, 2) if name.endswith("experts.gate_up_proj") or name.endswith("experts.down_proj")
                     else tensor for name, tensor in plain.items()}
        missing, unexpected = model.load_state_dict(plain, strict=False)
        missing = [name for name in missing if not (c["tie_word_embeddings"] and name == "lm_head.weight")]
        assert not missing and not unexpected, f"missing {missing[:5]}, unexpected {unexpected[:5]}"
    return model, config


@torch.inference_mode()
def logits_at(model, tokens, positions):
    hidden = model.model(input_ids=torch.tensor([tokens], device="cuda"), use_cache=False).last_hidden_state
    return model.lm_head(hidden[0, positions]).float().cpu()


def watch_experts(model, c):
    """Counts the experts that routers choose; the hooks see what goes into them."""
    counts = torch.zeros(layer_count(c), c["num_local_experts"], device="cuda")

    def hook(layer):
        def count(module, inputs, _):
            rows = inputs[0].reshape(-1, c["hidden_size"])
            chosen = torch.nn.functional.linear(rows, module.weight, module.bias).topk(c["num_experts_per_tok"]).indices
            counts[layer] += torch.bincount(chosen.flatten(), minlength=c["num_local_experts"])
        return count

    handles = [block.mlp.router.register_forward_hook(hook(i)) for i, block in enumerate(model.model.layers)]
    return counts, handles


def inferno_logits(program, folder, tokens, *options):
    from safetensors.torch import load_file
    file, out = folder / "tokens.txt", folder / "logits.safetensors"
    file.write_text("\n".join(",".join(map(str, line)) for line in tokens))
    subprocess.run([program, "logits", str(folder), "--device", "cuda", "--tokens-file", str(file), "-o", str(out), *options],
                   check=True, timeout=120, stderr=subprocess.PIPE)
    return load_file(out)["logits"]


def distance(found, reference):
    """Relative L2, and the divergence KL(reference || found) in nats, of one row."""
    found, reference = found.double(), reference.double()
    relative = ((found - reference).norm() / reference.norm()).item()
    p, q = torch.log_softmax(reference, -1), torch.log_softmax(found, -1)
    return relative, (p.exp() * (p - q)).sum().item()


def judge(label, where, found, yardstick, reference, rows, results):
    for i, name in enumerate(where):
        relative, divergence = distance(found[i], reference[i])
        torch_relative, torch_divergence = distance(yardstick[i], reference[i])
        right = relative <= max(GATE * torch_relative, SMALL) and bool(torch.isfinite(found[i]).all())
        results["ok"] &= right
        rows.append({"model": label, "at": name, "relative_l2": relative, "kl": divergence, "torch_bf16_relative_l2": torch_relative,
                     "torch_bf16_kl": torch_divergence, "same_best": bool(found[i].argmax() == reference[i].argmax()), "ok": right})
        print(f"{label:14} {name:>16}: relative L2 {relative:.2e}, KL {divergence:.2e}   (transformers in bf16 {torch_relative:.2e}, "
              f"{torch_divergence:.2e})  {'ok' if right else 'TOO FAR'}", flush=True)


def compare_logits(program, label, c, folder, results):
    started = time.time()
    weights = make_weights(c)
    write_model(folder, c, weights)
    model, _ = build(c, torch.float32, weights.plain)
    del weights
    torch.cuda.empty_cache()
    random = torch.Generator().manual_seed(7)
    long = torch.randint(0, c["vocab_size"], (POSITIONS[-1] + 1,), generator=random).tolist()
    lengths = [129] + [1 + 9 * i for i in range(max(BATCHES) - 1)]  # both sides of the window of 128
    lines = [torch.randint(0, c["vocab_size"], (length,), generator=random).tolist() for length in lengths]
    counts = None
    if "num_local_experts" in c:
        counts, handles = watch_experts(model, c)
    answers = []
    for dtype in (torch.float32, torch.bfloat16):
        frequencies = model.model.rotary_emb.inv_freq.clone()  # transformers keeps them in float32 whatever the model is
        model = model.to(dtype)
        model.model.rotary_emb.inv_freq = frequencies
        answers.append((logits_at(model, long, POSITIONS), torch.cat([logits_at(model, line, [len(line) - 1]) for line in lines])))
        if counts is not None and dtype == torch.float32:
            share = counts / counts.sum(-1, keepdim=True) * c["num_local_experts"]
            print(f"{label}: experts are chosen {share.min():.2f} to {share.max():.2f} times as often as the mean; "
                  f"deviation {share.std():.3f} over {layer_count(c)} layers of {c['num_local_experts']}", flush=True)
            results["experts"] = {"least": share.min().item(), "most": share.max().item(), "deviation": share.std().item()}
            for handle in handles:
                handle.remove()
    del model
    torch.cuda.empty_cache()
    (reference, reference_lines), (yardstick, yardstick_lines) = answers
    rows = results.setdefault("logits", [])
    found = inferno_logits(program, folder, [long], "--at", ",".join(map(str, POSITIONS)))
    judge(label, [f"position {p}" for p in POSITIONS], found, yardstick, reference, rows, results)
    for batch in BATCHES:
        found = inferno_logits(program, folder, lines[:batch], "--lines")
        worst = max(range(batch), key=lambda i: distance(found[i], reference_lines[i])[0])
        judge(label, [f"batch {batch}, worst"], found[worst:worst + 1], yardstick_lines[worst:worst + 1],
              reference_lines[worst:worst + 1], rows, results)
    print(f"{label}: compared in {time.time() - started:.1f} s", flush=True)


@torch.inference_mode()
def time_prompt(model, c, tokens=2048):
    prompt = torch.randint(0, c["vocab_size"], (1, tokens), device="cuda")
    seconds = []
    for _ in range(4):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        model(prompt, logits_to_keep=1, use_cache=False)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return tokens / median(seconds[1:])


@torch.inference_mode()
def time_eager(model, c, steps=32):
    token = torch.randint(0, c["vocab_size"], (1, 1), device="cuda")
    out = model(token, use_cache=True)
    seconds = []
    for _ in range(2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            token = out.logits[:, -1:].argmax(-1)
            out = model(token, past_key_values=out.past_key_values, use_cache=True)
            token.item()
        seconds.append(time.perf_counter() - begin)
    return steps / min(seconds)


@torch.inference_mode()
def time_graph(model, config, c, steps=128):
    from transformers import StaticCache
    cache = StaticCache(config=config, max_cache_len=512)
    token = torch.randint(0, c["vocab_size"], (1, 1), device="cuda")
    position = torch.zeros(1, dtype=torch.long, device="cuda")

    def step():
        out = model(token, past_key_values=cache, cache_position=position, position_ids=position[None], use_cache=True)
        token.copy_(out.logits[:, -1:].argmax(-1))
        position.add_(1)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    seconds = []
    for _ in range(3):
        position.zero_()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            graph.replay()
            token.item()
        seconds.append(time.perf_counter() - begin)
    return steps / median(seconds)


def compare_speed(program, label, c, results):
    speeds = results.setdefault("speed", {}).setdefault(label, {})
    model, config = build(c, torch.bfloat16)
    for name, measure in (("transformers pp2048", lambda: time_prompt(model, c)), ("transformers tg32, eager", lambda: time_eager(model, c)),
                          ("transformers tg128, CUDA graph", lambda: time_graph(model, config, c))):
        try:
            speeds[name] = measure()
            print(f"{label:14} {name}: {speeds[name]:.1f} tok/s", flush=True)
        except Exception as problem:  # noqa: BLE001: a way that this version of transformers does not go
            print(f"{label:14} {name}: {type(problem).__name__}: {str(problem)[:200]}", flush=True)
    del model
    torch.cuda.empty_cache()
    done = subprocess.run([program, "bench", "--device", "cuda", "--shape", label, "-p", "2048", "-n", "128", "-r", "3", "-o", "json"],
                          capture_output=True, timeout=200, check=True)
    speeds["inferno"] = json.loads(done.stdout)
    for row in speeds["inferno"]["results"]:
        print(f"{label:14} inferno {row['test']}: {row['tokens_per_second']:.1f} tok/s", flush=True)


def on_cuda(arguments):
    results = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "ok": True}
    folder = pathlib.Path(arguments.folder)
    small = dict(GPT_OSS, num_hidden_layers=arguments.layers)
    parts = {"logits-llama": lambda: compare_logits(arguments.program, "llama-3.2-1b", LLAMA, folder, results),
             "logits-gpt-oss": lambda: compare_logits(arguments.program, "gpt-oss-20b", small, folder, results),
             "speed-llama": lambda: compare_speed(arguments.program, "llama-3.2-1b", LLAMA, results),
             "speed-gpt-oss": lambda: compare_speed(arguments.program, "gpt-oss-20b", GPT_OSS, results)}
    for part in arguments.parts.split(","):
        try:
            parts[part]()
        except Exception:  # noqa: BLE001: the other parts still count
            results["ok"] = False
            traceback.print_exc()
        if arguments.json:
            pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))
        torch.cuda.empty_cache()
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if results["ok"] else 1)


@torch.inference_mode()
def on_cpu(arguments):
    torch.set_num_threads(arguments.threads)
    config = AutoConfig.for_model(
        "qwen2", hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14, num_key_value_heads=2,
        vocab_size=151936, rms_norm_eps=1e-6, rope_theta=1e6, max_position_embeddings=32768, tie_word_embeddings=True)
    for dtype in (torch.bfloat16, torch.float32):
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
        print(f"torch {torch.__version__} {dtype} {arguments.threads} threads: pp512 {512 / median(prefill[1:]):.1f} tok/s, "
              f"tg32 {32 / median(decode):.1f} tok/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    cpu = commands.add_parser("cpu")
    cpu.add_argument("threads", type=int)
    cpu.set_defaults(run=on_cpu)
    cuda = commands.add_parser("cuda")
    cuda.add_argument("program", help="the inferno to compare")
    cuda.add_argument("--parts", default="logits-llama,logits-gpt-oss,speed-llama,speed-gpt-oss")
    cuda.add_argument("--layers", type=int, default=4, help="of gpt-oss's 24, for logits: float32 must fit beside 8,192 positions")
    cuda.add_argument("--folder", default="/dev/shm/inferno-compare", help="for the model's files")
    cuda.add_argument("--json", help="a file for the results")
    cuda.set_defaults(run=on_cuda)
    arguments = parser.parse_args()
    arguments.run(arguments)


main()
