#!/usr/bin/env python3
"""Runs all tests that need a GPU concurrently: run_all.py PROGRAMS [--out FOLDER] [--source FOLDER] [--shared FOLDER] [--with sanitize,torch]

PROGRAMS holds the test programs and `inferno` (tests/gpu/pack.py collects them, or the build folder: they are searched there).
Prints a line for each job and the summary last; writes FOLDER/gpu-tests.json and a log for each job. Exits with 1 if a test
failed or was skipped for lack of a GPU, or if a job took too long. Tests that need the whole device run alone at the end."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
ALONE = "FullDevice.*:*Beyond31Bits*:*HugeCache*"
SHARDS = {"ops_cuda_test": 8, "golden_cuda_test": 4, "golden_cuda_f32_test": 2, "parity_cuda_test": 2, "parity_cuda_f32_test": 1,
          "engine_cuda_test": 3, "engine_cuda_f32_test": 2}
MOST_STRAYS = 0.05  # of all positions of golden_cuda_test: tests/support/cuda_model_backend.cpp


def find(folder, name):
    direct = folder / name
    found = [direct] if direct.is_file() else [path for path in folder.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
    if not found:
        sys.exit(f"{folder}: no {name}; build the target gpu_tests and inferno")
    return found[0]


class Job:
    def __init__(self, name, command, limit, extra=None):
        self.name, self.command, self.limit, self.extra = name, [str(part) for part in command], limit, extra or {}

    def run(self, out, environment):
        begin = time.time()
        log = out / f"{self.name}.log"
        with open(log, "wb") as file:
            try:
                code = subprocess.run(self.command, stdout=file, stderr=subprocess.STDOUT, timeout=self.limit,
                                      env={**environment, **self.extra}).returncode
            except subprocess.TimeoutExpired:
                code = "too long"
        text = log.read_text(errors="replace")
        passed = [int(n) for n in re.findall(r"^\[  PASSED  \] (\d+) test", text, re.M)]
        failed = sorted(set(re.findall(r"^\[  FAILED  \] (\S+?),? ", text + " ", re.M)) - {"1", "2", "3"})
        skipped = len(set(re.findall(r"^\[  SKIPPED \] (\S+)", text, re.M)))
        result = {"job": self.name, "exit": code, "seconds": round(time.time() - begin, 1), "passed": sum(passed),
                  "failed": [name for name in failed if not name.isdigit()], "skipped": skipped, "log": text}
        print(f"{self.name:28} exit {code}, {result['seconds']:6.1f} s, {result['passed']:4} passed, {len(result['failed'])} failed, "
              f"{skipped} skipped", flush=True)
        return result


def test_jobs(programs):
    side_by_side, alone = [], []
    for name, shards in SHARDS.items():
        program = find(programs, name)
        for shard in range(shards):
            side_by_side.append(Job(f"{name}.{shard}", [program, f"--gtest_filter=-{ALONE}"], 240,
                                    {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}))
        if name in ("ops_cuda_test", "engine_cuda_test"):
            alone.append(Job(f"{name}.alone", [program, f"--gtest_filter={ALONE}"], 240))
    return side_by_side, alone


def restore_copies(programs, source):
    """pack.py leaves out what tests/data has; here it is put back."""
    listed = programs / "copies.json"
    if listed.is_file():
        left_out = json.loads(listed.read_text())
        for name, original in left_out["files"].items():
            (programs / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / original, programs / name)
        for name, holes in left_out["holes"].items():
            with open(programs / name, "r+b") as program:
                for at, original in holes:
                    program.seek(at)
                    program.write((source / original).read_bytes())


def strays_of(results):
    """What the parts of golden_cuda_test say together: strays and positions."""
    found = [re.search(r"^(\d+) positions; (\d+) beyond", result["log"], re.M) for result in results if result["job"].startswith("golden_cuda_test")]
    return sum(int(one[2]) for one in found if one), sum(int(one[1]) for one in found if one)


def lines_worth_showing(text):
    wanted = re.compile(r"Failure|instead of|which is|Expected|actual|stray:|positions;|answers,|allocations|chi-square|reference's|"
                        r"relative L2|tok/s|experts are|exit \d|TOO FAR|Error|error|Traceback|texts are")
    return [line[:300] for line in text.splitlines() if wanted.search(line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu-tests"))
    parser.add_argument("--source", type=pathlib.Path, default=PROJECT)
    parser.add_argument("--shared", type=pathlib.Path)
    parser.add_argument("--with", dest="more", default="", help="sanitize, torch (all parts) or torch:PART, separated by commas")
    parser.add_argument("--only", default="", help="a regular expression: jobs to run")
    arguments = parser.parse_args()
    restore_copies(arguments.programs, arguments.source)
    packed = arguments.programs / "shared"
    shared = (arguments.shared or (packed if packed.is_dir() else arguments.source.parent / "shared")).resolve()
    environment = {**os.environ, "INFERNO_REQUIRE_GPU": "1", "INFERNO_SOURCE": str(arguments.source.resolve()),
                   "INFERNO_SHARED": str(shared)}
    logs = arguments.out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    inferno = find(arguments.programs, "inferno")
    side_by_side, alone = test_jobs(arguments.programs)
    side_by_side.append(Job("generate", [sys.executable, HERE / "generate_test.py", inferno, shared], 240))
    more = arguments.more.split(",") if arguments.more else []
    if "sanitize" in more:
        alone.append(Job("sanitize", ["sh", HERE / "sanitize.sh", arguments.programs, logs / "sanitize"], 400))
    torch = [part.partition(":")[2] for part in more if part.startswith("torch")]
    if torch:
        script = HERE / "compare_torch.py" if (HERE / "compare_torch.py").exists() else PROJECT / "tools/compare_torch.py"
        parts = ["--parts", ",".join(torch)] if all(torch) else []
        alone.append(Job("torch", [sys.executable, script, "cuda", inferno, "--json", arguments.out / "torch.json", *parts], 400))
    chosen = re.compile(arguments.only)
    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda job: job.run(logs, environment), [job for job in side_by_side if chosen.search(job.name)]))
    results += [job.run(logs, environment) for job in alone if chosen.search(job.name)]
    strays, positions = strays_of(results)
    for result in results:
        shown = lines_worth_showing(result.pop("log"))
        result["lines"] = shown
    summary = {"seconds": round(time.time() - begin, 1), "passed": sum(result["passed"] for result in results),
               "failed": [name for result in results for name in result["failed"]],
               "broken": [result["job"] for result in results if result["exit"] != 0], "positions": positions, "strays": strays}
    if strays > MOST_STRAYS * positions:
        summary["broken"].append("strays")
    (arguments.out / "gpu-tests.json").write_text(json.dumps({"summary": summary, "jobs": results}, indent=1))
    for result in results:
        if result["exit"] != 0 or result["job"] in ("generate", "sanitize", "torch"):
            print(f"--- {result['job']}", *result["lines"][:40], sep="\n")
    print(f"{strays} of {positions} golden positions follow a near tie of a router and exceed the tolerance")
    print(f"{summary['passed']} passed, {len(summary['failed'])} failed, broken: {' '.join(summary['broken']) or 'none'}; {summary['seconds']} s")
    for name in summary["failed"]:
        print("FAILED", name)
    sys.exit(1 if summary["failed"] or summary["broken"] else 0)


if __name__ == "__main__":
    main()
