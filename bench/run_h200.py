#!/usr/bin/env python3
"""Every speed that docs/benchmarks.md states for one NVIDIA H200, in one command: run_h200.py INFERNO [--only REGEX] [--out FILE]

Random weights of the true shapes, at least 256 tokens of each stream, the median of five runs; host wall clock, tokens drawn on
the device and read back. Each figure is printed next to llama.cpp's on the same GPU (b21e4de, best flags) and its goal.
Writes JSON (to bench/results/h200.json by default) with the command and the commit of each figure. Exits with 1 if a command
fails or takes too long; figures below their goal are marked and counted, and are failures only with --strict.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parents[1]

# shape, weights, options of bench, {(test, batch): (llama.cpp, must reach)}
RUNS = [
    ("gpt-oss-20b", "bf16+mxfp4", "-p 0 -n 256 -d 0,2048,16384",
     {("tg256", 1): (325, 780), ("tg256 @ d2048", 1): (321, 780), ("tg256 @ d16384", 1): (306, 700)}),
    ("gpt-oss-20b", "bf16+mxfp4", "-p 2048,8192 -n 0", {("pp2048", 1): (14700, 14700), ("pp8192", 1): (17100, 17100)}),
    ("gpt-oss-20b", "bf16+mxfp4", "-p 0 -n 256 -d 1024 -b 8,32,64",
     {("tg256 @ d1024", 8): (905, 905), ("tg256 @ d1024", 32): (3037, 3037), ("tg256 @ d1024", 64): (4530, 4530)}),
    ("gpt-oss-20b", "q8_0+mxfp4", "-p 0 -n 256", {("tg256", 1): (354, 800)}),
    ("llama-3.2-1b", "bf16", "-p 2048 -n 256", {("tg256", 1): (784, 1100), ("pp2048", 1): (62700, 100000)}),
    ("llama-3.1-8b", "bf16", "-p 2048 -n 256", {("tg256", 1): (210, 235), ("pp2048", 1): (23000, 23000)}),
    ("llama-3.1-8b", "q8_0", "-p 0 -n 256", {("tg256", 1): (None, 380)}),
    ("llama-3.1-8b", "q4_k", "-p 0 -n 256", {("tg256", 1): (284, 500)}),
    ("qwen2.5-0.5b", "bf16", "-p 0 -n 256", {("tg256", 1): (None, 1400)}),
    ("qwen2.5-0.5b", "q8_0", "-p 0 -n 256", {("tg256", 1): (893, 1400)}),
    # Not in the table of goals: skewed routers, for one stream, many streams and a prompt.
    ("gpt-oss-20b", "bf16+mxfp4", "-p 2048 -n 256 -b 1,32 --router-skew 2", {}),
]
LOAD_GOALS = {"ready": 3.0, "first text": 5.0}


class Report:
    def __init__(self, out, inferno):
        self.out, self.failures, self.below = out, 0, 0
        about = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw", "--format=csv,noheader"],
                               capture_output=True, text=True)
        self.data = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                     "gpu": about.stdout.strip(), "program": str(inferno), "commit": None, "results": [], "load": []}

    def write(self):
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.out.write_text(json.dumps(self.data, indent=1) + "\n")

    def goal(self, reached):
        self.below += not reached
        return "" if reached else "  BELOW"


def bench(inferno, run, arguments, report):
    shape, weights, options, goals = run
    command = [str(inferno), "bench", "--device", "cuda", "--shape", shape, "--weights", weights, *options.split(), "-r", str(arguments.repeat),
               "-o", "json"]
    begin = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit)
        if done.returncode != 0:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
        found = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, RuntimeError, ValueError) as problem:
        report.failures += 1
        print(f"FAILED {' '.join(command[1:])}: {problem}", flush=True)
        return
    report.data["commit"] = found["commit"]
    missing = set(goals)
    for row in found["results"]:
        missing.discard((row["test"], row["batch"]))
        llama_cpp, goal = goals.get((row["test"], row["batch"]), (None, None))
        rate = row["tokens_per_second"]
        verdict = report.goal(rate >= goal) if goal else ""
        report.data["results"].append({"shape": shape, "weights": weights, **row, "llama_cpp": llama_cpp, "goal": goal,
                                       "command": found["command"], "load_seconds": found["load_seconds"],
                                       "read_bandwidth": found["read_bandwidth"]})
        label = f"{shape} {weights}" + (" skewed" if "skew" in options else "")
        print(f"{label:32} {row['test']:16} batch {row['batch']:3}: {rate:10.1f} ± {row['deviation']:7.1f} tok/s   "
              f"llama.cpp {llama_cpp or '-':>6}, goal {goal or '-':>6}{verdict}", flush=True)
    if missing:
        report.failures += 1
        print(f"FAILED {shape} {weights}: no figures for {sorted(missing)}", flush=True)
    print(f"{'':32} [{time.time() - begin:.1f} s; reads {found['read_bandwidth'] / 1e9:.0f} GB/s]", flush=True)


def first_text(inferno, folder):
    """Seconds from the start of the process to the first byte of its answer, and what it said about loading."""
    begin = time.time()
    process = subprocess.Popen([str(inferno), "generate", "-m", str(folder), "--device", "cuda", "-n", "4", "--ignore-eos", "--temperature", "0",
                                "--stream", "--verbose", "Hello, who are you?"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(1)
    seconds = time.time() - begin
    _, said = process.communicate(timeout=60)
    if process.returncode != 0:
        raise RuntimeError(f"exit {process.returncode}: {said.decode(errors='replace')[-600:]}")
    loaded = re.search(r"loaded ([0-9.]+) GB in ([0-9.]+) s", said.decode(errors="replace"))
    return seconds, float(loaded[2]) if loaded else None


def load(inferno, arguments, report):
    folder = pathlib.Path(arguments.folder)
    maker = next(path for path in (PROJECT / "tools/make_shape_checkpoint.py", pathlib.Path(__file__).with_name("make_shape_checkpoint.py"))
                 if path.exists())
    if not (arguments.tokenizer / "tokenizer.json").exists():
        report.failures += 1
        print(f"FAILED load: {arguments.tokenizer} has no tokenizer.json; --tokenizer FOLDER names another", flush=True)
        return
    try:
        begin = time.time()
        subprocess.run([sys.executable, maker, folder, "--tokenizer", arguments.tokenizer], check=True, timeout=90)
        print(f"{'':32} [made the files in {time.time() - begin:.1f} s]", flush=True)
        for _ in range(arguments.repeat):
            text, ready = first_text(inferno, folder)
            report.data["load"].append({"ready": ready, "first_text": text})
        median = {"ready": sorted(one["ready"] or 1e9 for one in report.data["load"])[arguments.repeat // 2],
                  "first text": sorted(one["first_text"] for one in report.data["load"])[arguments.repeat // 2]}
        for what, goal in LOAD_GOALS.items():
            print(f"{'load gpt-oss-20b, 13.8 GB, warm':32} {what:16}: {median[what]:10.2f} s, goal {goal}{report.goal(median[what] <= goal)}", flush=True)
    except (subprocess.SubprocessError, RuntimeError) as problem:
        report.failures += 1
        print(f"FAILED load: {problem}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferno", type=pathlib.Path)
    parser.add_argument("--only", default="", help="a regular expression, of 'shape weights options' and 'load'")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=90, help="seconds for each command")
    parser.add_argument("--out", type=pathlib.Path, default=PROJECT / "bench/results/h200.json")
    parser.add_argument("--folder", default="/dev/shm/inferno-bench", help="for the files whose loading is timed")
    parser.add_argument("--tokenizer", type=pathlib.Path, help="a folder with gpt-oss's tokenizer files, for loading",
                        default=pathlib.Path(os.environ.get("INFERNO_SHARED", PROJECT.parent / "shared")) / "reference/tokenizers/gpt-oss")
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    begin, report = time.time(), Report(arguments.out, arguments.inferno)
    chosen = re.compile(arguments.only)
    for run in RUNS:
        if chosen.search(" ".join(run[:3])):
            bench(arguments.inferno.resolve(), run, arguments, report)
            report.write()
    if chosen.search("load"):
        load(arguments.inferno.resolve(), arguments, report)
    report.write()
    print(f"{len(report.data['results'])} figures in {time.time() - begin:.0f} s, {report.below} below their goal, {report.failures} failures; "
          f"{arguments.out}", flush=True)
    sys.exit(1 if report.failures or (arguments.strict and report.below) else 0)


if __name__ == "__main__":
    main()
