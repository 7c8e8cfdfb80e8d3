"""The size of a stripped library with the CPU backend and without the built-in model: size_test.py LIBRARY"""
import pathlib
import sys
import tempfile

from toolbox import run, tool

MAX_BYTES = 12_000_000

with tempfile.NamedTemporaryFile() as file:
    run(tool("strip"), "-o", file.name, sys.argv[1])
    size = pathlib.Path(file.name).stat().st_size
print(f"{size} bytes")
assert size <= MAX_BYTES, f"more than {MAX_BYTES}"
