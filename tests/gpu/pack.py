#!/usr/bin/env python3
"""Everything run_all.py needs on another machine, in one file: pack.py BUILD OUT.tar.xz [--shared FOLDER]

Stripped test programs, the scripts, and of the reference folder what golden tests read, less what tests/data already has. There:
    mkdir g && python3 -c "import tarfile; tarfile.open('OUT.tar.xz').extractall('g')" && python3 g/run_all.py g --source PROJECT

With --racecheck BUILD, the folder of that preset, also what sanitize.sh gives to racecheck. What prove.py needs is less: pack.py BUILD OUT.tar.xz --for-proofs [--programs inferno,ops_cuda_test,parity_cuda_test], then
    python3 g/prove.py g --source PROJECT
"""
import argparse
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
PROGRAMS = ["inferno", "ops_cuda_test", "golden_cuda_test", "golden_cuda_f32_test", "parity_cuda_test", "parity_cuda_f32_test",
            "engine_cuda_test", "engine_cuda_f32_test"]
SCRIPTS = [HERE / name for name in ("run_all.py", "prove.py", "generate_test.py", "sanitize.sh")] + [
    PROJECT / "tools" / name for name in ("compare_torch.py", "random_model.py", "torch_reference.py", "gpu_bytes.py",
                                          "make_shape_checkpoint.py")] + [PROJECT / "bench/run_h200.py"]


def stripped(build, name):
    found = [path for path in build.rglob(name) if path.is_file() and path.stat().st_mode & 0o100]
    if not found:
        sys.exit(f"{build}: no {name}")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / name
        subprocess.run(["strip", "-o", out, found[0]], check=True)
        return out.read_bytes()


def without_builtin(program):
    """The program less the model in it, which the project also has: where what was taken out must go back."""
    holes = []
    for path in sorted((PROJECT / "models" / "builtin").iterdir()):
        data = path.read_bytes()
        at = program.find(data) if len(data) > 100_000 else -1
        if at >= 0:
            program = program[:at] + bytes(len(data)) + program[at + len(data):]
            holes.append([at, str(path.relative_to(PROJECT))])
    return program, holes


def add(archive, name, data, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--shared", type=pathlib.Path, default=PROJECT.parent / "shared")
    parser.add_argument("--programs")
    parser.add_argument("--racecheck", type=pathlib.Path, help="where the preset racecheck was built")
    parser.add_argument("--for-proofs", action="store_true", help="no reference models; a tokenizer")
    arguments = parser.parse_args()
    programs = arguments.programs or ("inferno" if arguments.for_proofs else ",".join(PROGRAMS))
    known = {}
    for path in (PROJECT / "tests" / "data").rglob("*"):
        if path.is_file():
            known[hashlib.sha256(path.read_bytes()).hexdigest()] = str(path.relative_to(PROJECT))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    links, holes = {}, {}
    with tarfile.open(arguments.out, "w:xz", preset=9) as archive:
        for name in programs.split(","):
            program, holes[name] = without_builtin(stripped(arguments.build, name))
            add(archive, name, program, 0o755)
            if arguments.racecheck and name in ("ops_cuda_test", "parity_cuda_test"):
                add(archive, f"racecheck/{name}", stripped(arguments.racecheck, name), 0o755)
        for path in SCRIPTS:
            add(archive, path.name, path.read_bytes())
        reference = arguments.shared / "reference"
        if arguments.for_proofs:
            for path in sorted((reference / "tokenizers/gpt-oss").iterdir()):
                add(archive, f"tokenizer/{path.name}", path.read_bytes())
        for folder in () if arguments.for_proofs else ("models", "gguf", "real", "quantized"):
            for path in sorted((reference / folder).rglob("*")):
                if not path.is_file():
                    continue
                data, name = path.read_bytes(), f"shared/{path.relative_to(arguments.shared)}"
                same = known.get(hashlib.sha256(data).hexdigest())
                if same:
                    links[name] = same
                else:
                    add(archive, name, data)
        add(archive, "copies.json", json.dumps({"files": links, "holes": holes}).encode())
    print(f"{arguments.out}: {arguments.out.stat().st_size / 2**20:.1f} MiB, {len(links)} files are taken from tests/data")


main()
