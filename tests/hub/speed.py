#!/usr/bin/env python3
"""The speed of downloading one large file, compared with curl on the same machine: speed.py INFERNO [GIGABYTES [ROUNDS]]

Both fetch over loopback into a folder in memory; curl checks nothing, inferno hashes every byte. The hub is a process of its own.
"""
import hashlib
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from hub import quick_folder

HERE = pathlib.Path(__file__).resolve().parent


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    size = int(float(sys.argv[2] if len(sys.argv) > 2 else 2) * 1e9)
    rounds = int(sys.argv[3] if len(sys.argv) > 3 else 5)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hub-speed-", dir=quick_folder()))
    try:
        measure(program, folder, size, rounds)
    finally:
        shutil.rmtree(folder)


def measure(program, folder, size, rounds):
    model = folder / "hub/org/large"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    piece = hashlib.shake_128(b"speed").digest(1 << 24)
    with open(model / "model.safetensors", "wb") as file:
        for _ in range(0, size, len(piece)):
            file.write(piece)
    size = (model / "model.safetensors").stat().st_size
    hub = subprocess.Popen([sys.executable, "-B", HERE / "hub.py", folder / "hub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        url = hub.stdout.readline().strip()
        curl, ours = [], []
        for _ in range(rounds):
            curl.append(size / timed(["curl", "-sfL", "-o", folder / "copy", f"{url}/org/large/resolve/main/model.safetensors"]) / 1e9)
            (folder / "copy").unlink()
            ours.append(size / timed([program, "download", "org/large", "--yes"], HF_ENDPOINT=url, HF_HOME=str(folder / "hf"), HOME=str(folder)) / 1e9)
            shutil.rmtree(folder / "hf")
    finally:
        hub.stdin.close()
        hub.wait()
    begin = time.perf_counter()
    for _ in range(64):
        hashlib.sha256(piece)
    hashing = 64 * len(piece) / (time.perf_counter() - begin) / 1e9
    shown = [f"{name:9} {statistics.median(speeds):.2f} GB/s  ({', '.join(f'{one:.2f}' for one in speeds)})" for name, speeds in
             (("curl", curl), ("inferno", ours))]
    print(f"one file of {size / 1e9:.2f} GB, {rounds} rounds, median of the whole command:", *shown, f"SHA-256 alone {hashing:.2f} GB/s", sep="\n")


def timed(command, **environment):
    begin = time.perf_counter()
    subprocess.run(command, check=True, env={"PATH": "/usr/local/bin:/usr/bin:/bin", **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
