#!/usr/bin/env python3
"""Bytes that decoding one token reads from the GPU's memory, counted by the hardware (Nsight Compute), against the fewest possible.

    gpu_bytes.py INFERNO [--shapes gpt-oss-20b,llama-3.2-1b] [--depth 0] [--way kernels|graph] [--json FILE]

`inferno bench --profile` shows ncu exactly one token; caches and clocks are left as they are. `kernels` counts every kernel of the
token's graph by itself (ncu runs them one after another), `graph` the replayed graph as a whole, as it runs for users. Fewest
possible: each weight the token needs once (of experts the chosen ones), and the cache. Ends with 1 when a token reads 5 % more or
less than that, with 2 when ncu could not count.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

READ, WRITTEN, TIME = "dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum"
ALLOWED = 0.05
BITS = {"bf16": 16.0, "q8_0": 8.5, "mxfp4": 4.25}


def gpt_oss_20b(depth, dense="bf16"):
    width, layers, queries, keys, hidden, active = 2880, 24, 64 * 64, 8 * 64, 2880, 4
    attention = width * (queries + 2 * keys) + queries * width
    weights = {"attention": layers * attention * BITS[dense] / 8, "router": layers * 32 * width * 2,
               "experts": layers * active * 3 * width * hidden * BITS["mxfp4"] / 8, "head": 201088 * width * BITS[dense] / 8}
    return weights | {"cache": 12 * 2 * keys * 2 * (depth + min(depth, 128))}


def llama_1b(depth):
    width, layers, keys, hidden = 2048, 16, 8 * 64, 8192
    return {"attention": layers * (2 * width * width + 2 * width * keys) * 2, "mlp": layers * 3 * width * hidden * 2,
            "head": 128256 * width * 2, "cache": layers * 2 * keys * 2 * depth}


LIMITS = {"gpt-oss-20b": gpt_oss_20b, "llama-3.2-1b": llama_1b}


def profile(arguments, shape, log):
    command = ["ncu", "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "none", "--graph-profiling",
               "node" if arguments.way == "kernels" else "graph", "--metrics", f"{READ},{WRITTEN},{TIME}", "--csv", "--page", "raw",
               "--print-units", "base", "--log-file", str(log), arguments.inferno, "bench", "--device", "cuda", "--shape", shape, "-p", "0",
               "-n", str(arguments.tokens), "-r", "2", "-d", str(arguments.depth), "--profile", "-o", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit)
    except FileNotFoundError:
        sys.exit("ncu is not on the PATH")
    except subprocess.TimeoutExpired:
        print(f"{shape}: ncu was not done after {arguments.limit} s", flush=True)
        return None
    if done.returncode != 0:
        print(f"{shape}: ncu ended with {done.returncode}\n{done.stdout[-400:]}\n{done.stderr[-800:]}", flush=True)
    return log.read_text() if log.exists() else None


def rows_of(text):
    """One dictionary for each line of ncu's table; the first line below the names holds units."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    return [row for row in rows if re.fullmatch(r"[0-9.,]+", row.get(READ) or "")]


def number(text):
    return float((text or "0").replace(",", ""))


def short(name):
    name = re.sub(r"^void ", "", name)
    return re.sub(r"\(anonymous namespace\)::|<unnamed>::|inferno::cuda::|inferno::", "", name).split("(")[0][:70]


def print_table(rows):
    groups = collections.OrderedDict()
    for row in rows:
        entry = groups.setdefault(short(row.get("Kernel Name", "?")), [0, 0.0, 0.0, 0.0])
        for i, value in enumerate((1, number(row[READ]), number(row.get(WRITTEN)), number(row.get(TIME)))):
            entry[i] += value
    print(f"  {'kernel':70} {'times':>5} {'MB read':>9} {'written':>8} {'us':>8}")
    for name, (count, read, written, time_) in sorted(groups.items(), key=lambda item: -item[1][1]):
        print(f"  {name:70} {count:5d} {read / 1e6:9.2f} {written / 1e6:8.2f} {time_ / 1e3:8.1f}", flush=True)


def examine(arguments, shape, results):
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        text = profile(arguments, shape, pathlib.Path(folder) / "ncu.csv")
    rows = rows_of(text or "")
    if not rows:
        print(f"{shape}: ncu counted nothing; its output:\n" + "\n".join((text or "").splitlines()[-15:]), flush=True)
        return 2
    parts = LIMITS[shape](arguments.depth + arguments.tokens)
    limit, read = sum(parts.values()), sum(number(row[READ]) for row in rows)
    print_table(rows)
    ratio = read / limit
    right = abs(ratio - 1.0) <= ALLOWED
    print(f"{shape} at depth {arguments.depth}, {arguments.way}: {read / 1e6:.1f} MB read for a token by {len(rows)} "
          f"{'kernels' if arguments.way == 'kernels' else 'workloads'}; fewest possible {limit / 1e6:.1f} MB "
          f"({', '.join(f'{name} {size / 1e6:.0f}' for name, size in parts.items())}): {100 * (ratio - 1):+.1f} %  "
          f"{'ok' if right else 'BEYOND 5 %'}   [{time.time() - begin:.0f} s]", flush=True)
    results[f"{shape} {arguments.way}"] = {"read": read, "limit": limit, "ratio": ratio, "rows": len(rows), "depth": arguments.depth,
                                           "written": sum(number(row.get(WRITTEN)) for row in rows), "ok": right}
    return 0 if right else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferno")
    parser.add_argument("--shapes", default="gpt-oss-20b,llama-3.2-1b", help=", ".join(LIMITS))
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=8, help="generated before the one that counts")
    parser.add_argument("--way", choices=["kernels", "graph"], default="kernels")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each shape")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    results, worst = {}, 0
    for shape in arguments.shapes.split(","):
        worst = max(worst, examine(arguments, shape, results))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))
    sys.exit(worst)


if __name__ == "__main__":
    main()
