#!/usr/bin/env python3
"""Compares our interpreter with others on generated templates and conversations.

usage: differential.py jinja2|node BATCH_PROGRAM [--seed N] [--templates N] [--conversations N] [--shared FOLDER]

jinja2: Python's own, the measure: generated templates, and the public ones with wild conversations.
node:   @huggingface/jinja, which takes liberties, so only the public templates with tame conversations, where
        both render and the clock is not asked.
Exit 0 when all agree, 1 with the differences, 77 when the other implementation is not installed.
"""
import argparse
import glob
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import generate

# Refused on purpose although Python renders them: memory addresses, integers beyond 64 bits.
OURS_ONLY = ["cannot be printed", "beyond 64 bits", "exceeds"]
# Differences of @huggingface/jinja from Python: its strip('\\n') strips all whitespace, and its clock is the machine's.
NODE_DEVIATES = re.compile(r"strip\(['\"]|strftime_now")


def ask(command, requests):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(command, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def agrees_with_python(ours, theirs):
    if "error" in ours:
        return "error" in theirs or any(word in ours["error"] for word in OURS_ONLY)
    return ours["text"] == theirs.get("text")


def agrees_with_node(ours, theirs):
    return "error" in ours or "error" in theirs or ours["text"] == theirs["text"]


def public_templates(shared):
    for path in sorted(glob.glob(os.path.join(shared, "reference/chat/*.jinja"))):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path), file.read()


def python_requests(options):
    requests = [{"template": template, "variables": generate.VARIABLES}
                for template in generate.templates(options.seed, options.templates)]
    for index, (name, source) in enumerate(public_templates(options.shared)):
        for variables in generate.conversations(options.seed * 1000 + index, options.conversations):
            requests.append({"template": source, "variables": variables, "name": name})
    return requests


def node_requests(options):
    requests = []
    for index, (name, source) in enumerate(public_templates(options.shared)):
        if NODE_DEVIATES.search(source):
            continue
        for variables in generate.conversations(options.seed * 1000 + index, options.conversations, generate.tame_conversation):
            requests.append({"template": source, "variables": variables, "name": name})
    return requests


def ask_python(requests):
    try:
        import jinja_oracle
    except ImportError:
        return None
    return [jinja_oracle.render(request["template"], request["variables"]) for request in requests]


def ask_node(requests):
    module = "node_modules/@huggingface/jinja"
    if not any((folder / module).is_dir() for folder in HERE.parents):
        return None
    return ask(["node", str(HERE / "hf_jinja.mjs")], requests)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("other", choices=["jinja2", "node"])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", type=int, default=600)
    parser.add_argument("--conversations", type=int, default=6)
    parser.add_argument("--shared", default="")
    options = parser.parse_args()
    options.shared = os.environ.get("INFERNO_SHARED", options.shared)
    python = options.other == "jinja2"
    requests = python_requests(options) if python else node_requests(options)
    answers = ask_python(requests) if python else ask_node(requests)
    if answers is None:
        print(f"skipped: {options.other} is not installed")
        return 77
    agrees = agrees_with_python if python else agrees_with_node
    different = 0
    for request, ours, theirs in zip(requests, ask([options.program], requests), answers):
        if agrees(ours, theirs):
            continue
        different += 1
        if different <= 20:
            print(request.get("name") or repr(request["template"]))
            if "name" in request:
                print("  with  ", json.dumps(request["variables"], ensure_ascii=False)[:2000])
            print("  theirs", repr(theirs)[:1000])
            print("  ours  ", repr({k: v for k, v in ours.items() if k != "spans"})[:1000])
    rendered = sum("text" in answer for answer in answers)
    print(f"{len(requests)} cases, {rendered} rendered by {options.other}, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
