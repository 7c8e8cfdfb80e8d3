#!/usr/bin/env python3
"""Checks every claim about the GPU at true size in one command: prove.py PROGRAMS [--parts bytes,logits,...] [--out FOLDER]

PROGRAMS holds `inferno` (for `sanitize` the test programs too; pack.py collects them, or a build folder). Parts, with seconds on
an H200: bytes (20; what a token reads, by ncu), logits (90; gpt-oss-20b and Llama-3.2-1B against transformers, with even and
skewed routers), speed (60; compared with transformers), bench (130; every figure of docs/benchmarks.md), sanitize (150). They run
one after another, because each needs the whole GPU; their output is shown as it arrives. Exits with 1 if one fails.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

import run_all

HERE = pathlib.Path(__file__).resolve().parent


def script(name):
    """Beside this file in a package, in its own folder in the project."""
    for folder in (HERE, HERE.parents[1] / "tools", HERE.parents[1] / "bench"):
        if (folder / name).exists():
            return folder / name
    sys.exit(f"prove.py: no {name}")


def commands(programs, out, tokenizer):
    inferno = run_all.find(programs, "inferno")
    python = [sys.executable, "-u"]
    torch = [*python, script("compare_torch.py"), "cuda", inferno]
    return {
        "bytes": [([*python, script("gpu_bytes.py"), inferno, "--way", way, "--json", out / f"bytes-{way}.json"], 45)
                  for way in ("kernels", "graph")],
        "logits": [([*torch, "--parts", "logits-gpt-oss,logits-skewed,logits-llama", "--limit", 170, "--json", out / "logits.json"], 180)],
        "speed": [([*torch, "--parts", "speed-gpt-oss,speed-llama", "--limit", 110, "--json", out / "speed.json"], 120)],
        "bench": [([*python, script("run_h200.py"), inferno, "--out", out / "h200.json", "--tokenizer", tokenizer], 280)],
        "sanitize": [(["sh", script("sanitize.sh"), programs, out / "sanitize"], 230)],
    }


def run(name, command, limit, log):
    begin = time.time()
    print(f"=== {name}: {' '.join(str(part) for part in command)}", flush=True)
    process = subprocess.Popen(["timeout", str(limit), *[str(part) for part in command]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace")
    for line in process.stdout:
        print(line, end="", flush=True)
        log.write(line)
    code = process.wait()
    words = "too long" if code == 124 else f"exit {code}"
    print(f"=== {name}: {words}, {time.time() - begin:.0f} s", flush=True)
    return f"{name}: {words}, {time.time() - begin:.0f} s", code == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--parts", default="bytes,logits,speed,bench")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("proofs"))
    parser.add_argument("--source", type=pathlib.Path, default=run_all.PROJECT)
    parser.add_argument("--tokenizer", type=pathlib.Path)
    arguments = parser.parse_args()
    run_all.restore_copies(arguments.programs, arguments.source)
    packed = arguments.programs / "tokenizer"
    shared = pathlib.Path(os.environ.get("INFERNO_SHARED", arguments.source.parent / "shared"))
    tokenizer = arguments.tokenizer or (packed if packed.is_dir() else shared / "reference/tokenizers/gpt-oss")
    arguments.out.mkdir(parents=True, exist_ok=True)
    todo = commands(arguments.programs.resolve(), arguments.out.resolve(), tokenizer.resolve())
    os.environ["PYTHONUNBUFFERED"] = "1"
    lines, right = [], True
    with open(arguments.out / "prove.log", "w", encoding="utf-8") as log:
        for part in arguments.parts.split(","):
            for command, limit in todo[part]:
                line, passed = run(part, command, limit, log)
                lines.append(line)
                right &= passed
    print("\n".join(lines), flush=True)
    print("prove.py:", "everything holds" if right else "NOT PROVEN", flush=True)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
