#!/usr/bin/env python3
"""The mean of stored models, such as the beginning and the end of a fine-tuning, rounded again.  average.py OUT MODEL_FOLDER..."""
import pathlib
import sys

import export
from model import Shape


def main():
    out, *folders = map(pathlib.Path, sys.argv[1:])
    states = [export.load(folder).state_dict() for folder in folders]
    mean = {name: sum(state[name] for state in states) / len(states) for name in states[0]}
    export.write(mean, Shape(), folders[0] / "tokenizer.json", out)


if __name__ == "__main__":
    main()
