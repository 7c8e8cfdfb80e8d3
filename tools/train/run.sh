#!/usr/bin/env bash
# The whole recipe: data, training, export, evaluation.   run.sh CORPUS OUT [options of train.py]
set -euo pipefail
cd "$(dirname "$0")"
corpus=$1 out=$2
inferno=${INFERNO:-$PWD/../../build/release/inferno}
shift 2
work=${WORK:-$out/work}
mkdir -p "$out" "$work"
export TOKENIZERS_PARALLELISM=true PYTHONUNBUFFERED=1
python3 train.py --corpus "$corpus" --work "$work" "$@" 2>&1 | tee "$out/train.log"
python3 export.py "$work" "$out/model" 2>&1 | tee -a "$out/train.log"
python3 evaluate.py "$inferno" "$out/model" "$out" 2>&1 | tee -a "$out/train.log"
