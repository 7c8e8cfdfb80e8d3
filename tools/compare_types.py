#!/usr/bin/env python3
"""What converting a model to each type costs: size, error of the logits, best token kept, perplexity.

    tools/compare_types.py PROGRAM MODEL TEXT [--window 256] [--tokens 20000]

Converts MODEL to every type of `inferno convert`, runs both over TEXT and prints the table of docs/convert.md.
"""
import argparse
import array
import json
import math
import pathlib
import shutil
import struct
import subprocess
import tempfile

TYPES = ("f32", "f16", "bf16", "q8_0", "q6_k", "q4_k", "q4_0")
MOST_LOGIT_ROWS = 200


def run(program, *words):
    return subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True).stdout


def read_logits(file):
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    shape = json.loads(data[8:8 + size])["logits"]["shape"]
    values = array.array("f")
    values.frombytes(data[8 + size:])
    return [values[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])]


def compare(original, copy):
    """Relative distance of all logits, and the share of rows with the same best token."""
    off = sum((a - b) ** 2 for x, y in zip(original, copy) for a, b in zip(x, y))
    everything = sum(a * a for row in original for a in row)
    same = sum(x.index(max(x)) == y.index(max(y)) for x, y in zip(original, copy))
    return math.sqrt(off / everything), same / len(original)


class Measure:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        text = pathlib.Path(options.text).read_bytes()[:20000].decode("utf-8", "ignore")
        ids = json.loads(subprocess.run([options.program, "tokenize", options.model, "--json"], input=text, check=True,
                                        capture_output=True, text=True).stdout)["ids"]
        self.ids = ",".join(map(str, ids[:min(MOST_LOGIT_ROWS, options.window)]))

    def logits(self, model):
        file = self.folder / "logits"
        run(self.options.program, "logits", model, "--tokens", self.ids, "-o", file)
        return read_logits(file)

    def perplexity(self, model):
        o = self.options
        return json.loads(run(o.program, "perplexity", model, o.text, "--window", o.window, "--tokens", o.tokens,
                              "--json"))["perplexity"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "model", "text"):
        parser.add_argument(name)
    parser.add_argument("--window", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=20000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        # A folder with the file and the original's tokenizer is a model, even if GGUF cannot represent the tokenizer.
        folder = pathlib.Path(name)
        for file in pathlib.Path(options.model).glob("*.json"):
            if file.name.startswith(("tokenizer", "special_tokens", "generation")):
                shutil.copy(file, folder)
        measure = Measure(options, folder)
        original, before = measure.logits(options.model), measure.perplexity(options.model)
        print("| type | file | stored as | logit error | same best token | perplexity |\n|---|--:|---|--:|--:|--:|")
        print(f"| original | | | | | {before:.3f} |")
        for kind in TYPES:
            report = json.loads(run(options.program, "convert", options.model, "-o", folder / "model.gguf", "--type",
                                    kind, "--no-vocabulary", "--force", "--json"))
            error, same = compare(original, measure.logits(folder))
            stored = ", ".join(f"{one['tensors']} {name}" for name, one in report["types"].items())
            print(f"| {kind} | {report['bytes'] / 1024:.0f} KiB | {stored} | {error:.1e} | {same:.1%} | "
                  f"{measure.perplexity(folder):.3f} |")


if __name__ == "__main__":
    main()
