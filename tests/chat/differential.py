#!/usr/bin/env python3
"""Compares our interpreter with Python's Jinja2 on generated templates and conversations.

usage: differential.py BATCH_PROGRAM [--seed N] [--templates N] [--conversations N] [--shared FOLDER]
Exit 0 when all agree, 1 with the differences, 77 when jinja2 is not installed.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import jinja_oracle
except ImportError:
    print("skipped: python3-jinja2 is not installed")
    sys.exit(77)
import generate

# Where we refuse on purpose although Python answers: memory addresses, integers beyond 64 bits.
OURS_ONLY = ["cannot be printed", "beyond 64 bits", "exceeds"]


def ask_ours(program, requests):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def agree(ours, theirs):
    if "error" in ours:
        return "error" in theirs or any(word in ours["error"] for word in OURS_ONLY)
    return ours["text"] == theirs.get("text")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", type=int, default=600)
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--shared", default="")
    options = parser.parse_args()
    requests = [{"template": template, "variables": generate.VARIABLES}
                for template in generate.templates(options.seed, options.templates)]
    for index, path in enumerate(sorted(glob.glob(os.path.join(options.shared, "reference/chat/*.jinja")))):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        requests += [{"template": source, "variables": variables, "name": os.path.basename(path)}
                     for variables in generate.conversations(options.seed * 1000 + index, options.conversations)]
    answers = ask_ours(options.program, requests)
    different = 0
    rendered = 0
    for request, ours in zip(requests, answers, strict=True):
        theirs = jinja_oracle.render(request["template"], request["variables"])
        rendered += "text" in theirs
        if agree(ours, theirs):
            continue
        different += 1
        if different <= 20:
            print(request.get("name") or repr(request["template"]))
            if "name" in request:
                print("  with  ", json.dumps(request["variables"], ensure_ascii=False)[:2000])
            print("  jinja2", repr(theirs)[:1000])
            print("  ours  ", repr({k: v for k, v in ours.items() if k != "spans"})[:1000])
    print(f"{len(requests)} cases, {rendered} rendered, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
