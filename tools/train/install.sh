#!/usr/bin/env bash
# Installs a trained model: its weights, the results that tests expect, and the transcript.   install.sh OUT
# OUT is the folder that run.sh wrote (model/ or model.tar, builtin_greedy.json, transcript.json). The figures in docs/builtin-model.md are written by hand.
set -euo pipefail
out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
if [ -f "$out/model.tar" ]; then
  tar xf "$out/model.tar" -C "$root/models/builtin" --strip-components 1
else
  cp "$out"/model/* "$root/models/builtin/"
fi
cp "$out/builtin_greedy.json" "$root/tests/data/"
# What doctor --self-test expects: the answer to the question with the widest margins.
python3 - "$out/builtin_greedy.json" "$root/models/builtin/self_test.json" <<'PYTHON'
import json
import sys
prompts = json.load(open(sys.argv[1]))["prompts"]
best = max(prompts, key=lambda prompt: prompt["min_margin"])
json.dump({key: best[key] for key in ("prompt", "ids", "greedy")}, open(sys.argv[2], "w"))
PYTHON
python3 -B "$root/tools/train/report.py" "$out/transcript.json" >"$root/docs/builtin-transcript.md"
chmod 644 "$root"/models/builtin/* "$root/tests/data/builtin_greedy.json"
