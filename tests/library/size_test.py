"""The size of the shared library as it is installed and shipped, stripped: size_test.py BUILD_FOLDER"""
import pathlib
import sys
import tempfile

from toolbox import run, tool

MAX_BYTES = 12_000_000  # with the CPU backend alone and without the built-in model

with tempfile.TemporaryDirectory() as prefix:
    run(tool("cmake"), "--install", sys.argv[1], "--prefix", prefix, "--component", "library", "--strip")
    files = [file for file in pathlib.Path(prefix).rglob("libinferno.so*") if not file.is_symlink()]
    assert len(files) == 1, files
    size = files[0].stat().st_size
print(f"{size} bytes")
assert size <= MAX_BYTES, f"more than {MAX_BYTES}"
