#!/usr/bin/env python3
"""`inferno generate --device cuda` writes what the reference wrote: generate_test.py INFERNO [SHARED]

The built-in model's answers and TinyStories-656K's stories, greedy. If the two most likely tokens are closer than the
rounding error, a story may diverge: then the text before that point must be the same, and the two must have been that close."""
import json
import os
import pathlib
import subprocess
import sys

PROGRAM = sys.argv[1]
SOURCE = pathlib.Path(os.environ.get("INFERNO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
SHARED = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else SOURCE.parent / "shared"
TIE = 0.25  # between log probabilities, as in tests/support/cuda_model_backend.cpp


def generate(model, prompt, tokens, *options):
    done = subprocess.run([PROGRAM, "generate", "-m", str(model), "-p", prompt, "-n", str(tokens), "--temperature", "0", "--json",
                           "--raw", "--logprobs", "2", "--device", "cuda", *options], capture_output=True, timeout=120)
    if done.returncode == 7 and b"cannot be used" in done.stderr and "INFERNO_REQUIRE_GPU" not in os.environ:
        print("there is no usable GPU: see `inferno doctor`")
        sys.exit(77)
    assert done.returncode == 0, done.stderr.decode()
    assert b"NVIDIA" in done.stderr, f"not on the GPU: {done.stderr.decode()}"
    return json.loads(done.stdout)


def ids_of(answer):
    return [entry["id"] for entry in answer["logprobs"]["content"]]


def expect(name, answer, greedy):
    found = ids_of(answer)
    if found == greedy[:len(found)] and (len(found) == len(greedy) or answer["finish_reason"] == "stop"):
        return f"{name}: the reference's {len(found)} tokens"
    at = next(i for i, (a, b) in enumerate(zip(found, greedy)) if a != b)
    two = answer["logprobs"]["content"][at]["top_logprobs"]
    assert {entry["id"] for entry in two} == {found[at], greedy[at]}, f"{name}: token {at} is neither of the two best"
    gap = abs(two[0]["logprob"] - two[1]["logprob"])
    assert gap < TIE, f"{name}: token {at} differs although the best is {gap} ahead"
    return f"{name}: the reference's for {at} tokens, then a tie of {gap:.3f}"


def main():
    stories = SHARED / "reference" / "real" / "TinyStories-656K"
    same, total = 0, 0
    for row in json.loads((SOURCE / "tests" / "data" / "builtin_greedy.json").read_text())["prompts"]:
        answer = generate(SOURCE / "models" / "builtin", row["prompt"], len(row["greedy"]), "--chat")
        said = expect(f"built-in, {row['prompt']!r}", answer, row["greedy"])
        print(said)
        same, total = same + ("then" not in said), total + 1
    if stories.is_dir():
        for case in json.loads((stories / "golden.json").read_text())["cases"]:
            answer = generate(stories, case["prompt"], len(case["greedy_ids"]))
            said = expect(f"TinyStories, {case['prompt']!r}", answer, case["greedy_ids"])
            print(said)
            same, total = same + ("then" not in said), total + 1
    print(f"{same} of {total} texts are the reference's to the last token; the others go another way at a tie")


main()
