#!/usr/bin/env python3
"""The same model in Inferno and in PyTorch/transformers, on one machine, in one run.

compare_torch.py cpu THREADS
    times a model of Qwen2.5-0.5B's shape on the CPU: `inferno bench --shape qwen2.5-0.5b` is the other side.

compare_torch.py cuda INFERNO [--parts logits-llama,logits-gpt-oss,logits-skewed,speed-llama,speed-gpt-oss] [--json FILE]
    Random weights of the true shapes (random_model.py) are made on the GPU and written as a Hugging Face folder (gpt-oss: MXFP4
    experts, all 24 layers). Logits: transformers computes them in float32 (the reference, one layer at a time) and in bf16 (the
    yardstick), `inferno logits` from the files; positions 1, 127 to 129, 4096 and 8191 of one sequence, and decoding batches of
    1, 3, 8 and 33 sequences of different lengths. "skewed": a few experts take most tokens. Speed: decoding and a prompt of
    2,048 tokens, transformers with and without a CUDA graph, and how many times as fast Inferno is.
    Ends with 1 when a row of logits is farther than 2.5e-2 from the reference, all rows together farther than 1.5e-2, or a part
    breaks; with 3 when --limit seconds are over.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

import torch
from transformers import AutoConfig, AutoModelForCausalLM

POSITIONS = [1, 127, 128, 129, 4096, 8191]
BATCHES = [1, 3, 8, 33]
# tests/tolerance.h: of one row of logits, and of all together. Below NEAR_TIE rounding may choose another expert.
ONE_ROW, TOGETHER, NEAR_TIE = 2.5e-2, 1.5e-2, 0.05

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from random_model import make_weights, write_model  # noqa: E402
from torch_reference import Routers, build, in_float32, last_rows, piecewise_attention  # noqa: E402

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


def answers_of(model, scene, routers=None):
    """Logits of the long sequence's positions and of the lines' ends, and their routers' smallest margins."""
    out = []
    with piecewise_attention(model):
        for tokens, rows in ((scene["long"], scene["long_rows"]), (scene["lines"], scene["line_rows"])):
            out.append(last_rows(model, tokens, rows))
            margins = routers.take_margins() if routers else None
            longest = max(map(len, tokens))
            out.append([float("inf") if margins is None else margins[line * longest + at].item() for line, at in rows])
    return out


def inferno_logits(program, folder, tokens, *options):
    from safetensors.torch import load_file
    file, out = folder / "tokens.txt", folder / "logits.safetensors"
    file.write_text("\n".join(",".join(map(str, line)) for line in tokens))
    done = subprocess.run([program, "logits", str(folder), "--device", "cuda", "--tokens-file", str(file), "-o", str(out), *options],
                          timeout=60, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"inferno logits ended with {done.returncode}: {done.stderr[-500:]}")
    return load_file(out)["logits"]


def distance(found, reference):
    """Relative L2, and the divergence KL(reference || found) in nats, of one row."""
    found, reference = found.double(), reference.double()
    relative = ((found - reference).norm() / reference.norm()).item()
    p, q = torch.log_softmax(reference, -1), torch.log_softmax(found, -1)
    return relative, (p.exp() * (p - q)).sum().item()


class Judge:
    def __init__(self, label, results):
        self.label, self.results, self.squares, self.sizes = label, results, 0.0, 0.0
        self.rows = results.setdefault("logits", [])

    def row(self, name, found, yardstick, reference, margin, shown=True):
        relative, divergence = distance(found, reference)
        torch_relative, torch_divergence = distance(yardstick, reference)
        finite = bool(torch.isfinite(found).all())
        verdict = "ok" if finite and relative <= ONE_ROW else "near tie" if finite and margin < NEAR_TIE else "TOO FAR"
        self.results["ok"] &= verdict != "TOO FAR"
        if verdict == "ok":
            self.squares += (found.double() - reference.double()).square().sum().item()
            self.sizes += reference.double().square().sum().item()
        self.rows.append({"model": self.label, "at": name, "relative_l2": relative, "kl": divergence, "margin": min(margin, 1e9),
                          "torch_bf16_relative_l2": torch_relative, "torch_bf16_kl": torch_divergence,
                          "same_best": bool(found.argmax() == reference.argmax()), "verdict": verdict})
        if shown or verdict != "ok":
            print(f"{self.label:14} {name:>24}: relative L2 {relative:.2e}, KL {divergence:.2e}   (transformers in bf16 "
                  f"{torch_relative:.2e}, {torch_divergence:.2e}; margin {margin:.2f})  {verdict}", flush=True)

    def finish(self):
        together = (self.squares / max(self.sizes, 1e-300)) ** 0.5
        own = [row for row in self.rows if row["model"] == self.label]
        ties, agreeing = sum(row["verdict"] == "near tie" for row in own), sum(row["same_best"] for row in own)
        right = together <= TOGETHER and ties <= 0.05 * len(own)
        self.results["ok"] &= right
        self.results.setdefault("together", {})[self.label] = {"relative_l2": together, "rows": len(own), "near_ties": ties}
        print(f"{self.label}: {len(own)} rows together {together:.2e}, {ties} after near ties, {agreeing} with the same best token"
              f"  {'ok' if right else 'TOO FAR'}", flush=True)


def make_scene(c):
    random = torch.Generator().manual_seed(7)
    long = torch.randint(0, c["vocab_size"], (POSITIONS[-1] + 1,), generator=random).tolist()
    lengths = [129] + [1 + 9 * i for i in range(max(BATCHES) - 1)]  # both sides of the window of 128
    lines = [torch.randint(0, c["vocab_size"], (length,), generator=random).tolist() for length in lengths]
    return {"long": [long], "long_rows": [(0, p) for p in POSITIONS], "lines": lines,
            "line_rows": [(i, len(line) - 1) for i, line in enumerate(lines)]}


def print_histogram(label, counts, results):
    share = (counts / counts.sum(-1, keepdim=True) * counts.shape[1]).cpu()
    busiest = share.sort(-1, descending=True).values[:, :4].sum(-1) / counts.shape[1]
    results.setdefault("experts", {})[label] = {"least": share.min().item(), "most": share.max().item(), "deviation": share.std().item(),
                                                "busiest_four": busiest.mean().item(), "by_layer": share.tolist()}
    print(f"{label}: experts are chosen {share.min():.2f} to {share.max():.2f} times as often as the mean, deviation {share.std():.3f}; "
          f"the busiest four of a layer take {100 * busiest.mean():.0f} %. Layer 0: "
          + " ".join(f"{value:.2f}" for value in sorted(share[0].tolist(), reverse=True)), flush=True)


def compare_logits(program, label, c, folder, results, skew=0.0):
    started = time.time()

    def say(what):
        print(f"{label}: {time.time() - started:5.1f} s  {what}", flush=True)

    scene, weights = make_scene(c), make_weights(c, skew=skew)
    torch.cuda.synchronize()
    say("made weights")
    size = write_model(folder, c, weights)
    say(f"wrote {size / 1e9:.1f} GB")
    plain = weights.plain
    del weights
    model, _ = build(c, plain)
    del plain
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # the fast ones want bf16
    torch.cuda.empty_cache()
    say("built the model")
    routers = Routers(model, c) if "num_local_experts" in c else None
    with in_float32(model):
        long, margins, lines, line_margins = answers_of(model, scene, routers)
    say("reference in float32")
    if routers:
        print_histogram(label, routers.counts, results)
        routers.remove()
    torch.cuda.empty_cache()
    bf16_long, _, bf16_lines, _ = answers_of(model, scene)
    say("transformers in bf16")
    del model
    torch.cuda.empty_cache()
    judge = Judge(label, results)
    found = inferno_logits(program, folder, scene["long"], "--at", ",".join(map(str, POSITIONS)))
    for i, position in enumerate(POSITIONS):
        judge.row(f"position {position}", found[i], bf16_long[i], long[i], margins[i])
    for batch in BATCHES:
        found = inferno_logits(program, folder, scene["lines"][:batch], "--lines")
        order = sorted(range(batch), key=lambda i: -distance(found[i], lines[i])[0])
        for rank, i in enumerate(order):
            judge.row(f"batch {batch}, length {len(scene['lines'][i])}", found[i], bf16_lines[i], lines[i], line_margins[i], shown=rank == 0)
        say(f"batch {batch}")
    judge.finish()


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


@torch.inference_mode()
def time_compiled(model, config, c, steps=64):
    from transformers import StaticCache
    cache = StaticCache(config=config, max_cache_len=512)
    forward = torch.compile(model.forward, mode="reduce-overhead")
    token, rates = torch.randint(0, c["vocab_size"], (1, 1), device="cuda"), []
    for count in (8, steps, steps):  # the first compiles and records
        begin = time.perf_counter()
        for _ in range(count):
            out = forward(token, past_key_values=cache, use_cache=True)
            token = out.logits[:, -1:].argmax(-1).clone()
            token.item()
        rates.append(count / (time.perf_counter() - begin))
    return max(rates[1:])


def within(seconds, measure):
    def stop(*_):
        raise TimeoutError(f"not done after {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return measure()
    finally:
        signal.alarm(0)


def compare_speed(program, label, c, results, compile_too=False):
    speeds = results.setdefault("speed", {}).setdefault(label, {})
    model, config = build(c)
    ways = [("transformers pp2048", lambda: time_prompt(model, c)), ("transformers tg32, eager", lambda: time_eager(model, c)),
            ("transformers tg128, CUDA graph", lambda: time_graph(model, config, c))]
    if compile_too:
        ways.append(("transformers tg64, torch.compile", lambda: time_compiled(model, config, c)))
    for name, measure in ways:
        try:
            speeds[name] = within(60, measure)
            print(f"{label:14} {name}: {speeds[name]:.1f} tok/s", flush=True)
        except Exception as problem:  # noqa: BLE001: a way that this version of transformers does not go
            print(f"{label:14} {name}: {type(problem).__name__}: {str(problem)[:200]}", flush=True)
    del model
    torch.cuda.empty_cache()
    done = subprocess.run([program, "bench", "--device", "cuda", "--shape", label, "-p", "2048", "-n", "256", "-r", "3", "-o", "json"],
                          capture_output=True, timeout=90, check=True)
    speeds["inferno"] = json.loads(done.stdout)
    for row in speeds["inferno"]["results"]:
        print(f"{label:14} inferno {row['test']}: {row['tokens_per_second']:.1f} tok/s", flush=True)
        kind = row["test"][:2]
        peers = {name: rate for name, rate in speeds.items() if name.startswith(f"transformers {kind}")}
        for name, rate in peers.items():
            print(f"{label:14} inferno is {row['tokens_per_second'] / rate:.1f} times as fast as {name}", flush=True)


def watch_the_clock(seconds):
    def stop():
        print(f"--limit {seconds}: time is over", flush=True)
        os._exit(3)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()


def on_cuda(arguments):
    watch_the_clock(arguments.limit)
    results = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "layers": arguments.layers, "ok": True}
    folder = pathlib.Path(arguments.folder)
    gpt_oss = dict(GPT_OSS, num_hidden_layers=arguments.layers)
    parts = {"logits-llama": lambda: compare_logits(arguments.program, "llama-3.2-1b", LLAMA, folder, results),
             "logits-gpt-oss": lambda: compare_logits(arguments.program, "gpt-oss-20b", gpt_oss, folder, results),
             "logits-skewed": lambda: compare_logits(arguments.program, "gpt-oss skewed", gpt_oss, folder, results, skew=2.0),
             "speed-llama": lambda: compare_speed(arguments.program, "llama-3.2-1b", LLAMA, results, arguments.compile),
             "speed-gpt-oss": lambda: compare_speed(arguments.program, "gpt-oss-20b", GPT_OSS, results, arguments.compile)}
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
    print("compare_torch:", "all within the gates" if results["ok"] else "FAILED", flush=True)
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
    cuda.add_argument("--parts", default="logits-llama,logits-gpt-oss,logits-skewed,speed-llama,speed-gpt-oss")
    cuda.add_argument("--layers", type=int, default=24, help="of gpt-oss, for logits")
    cuda.add_argument("--limit", type=float, default=300, help="seconds after which to give up")
    cuda.add_argument("--compile", action="store_true", help="time torch.compile too, a minute at most for each model")
    cuda.add_argument("--folder", default="/dev/shm/inferno-compare", help="for the model's files")
    cuda.add_argument("--json", help="a file for the results")
    cuda.set_defaults(run=on_cuda)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
