#!/usr/bin/env python3
"""Fails when an object compiled for AVX2, AVX-512 or an extension of NEON defines anything that other code could end up using.

The linker keeps one copy of each inline function. Were it the one from such an object, the program would
die with SIGILL on a machine without those instructions. So these objects may define their table of kernels
and nothing else that is visible. Run by ctest as `isa_objects`, with nm and the objects of the backend.
"""
import re, subprocess, sys

nm, objects = sys.argv[1], [path for path in sys.argv[2:] if "/simd/" in path]
problems = [] if objects else ["no object of simd/ was given: the check would pass by seeing nothing"]
for path in objects:
    listing = subprocess.run([nm, "--defined-only", "--demangle", path], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        kind, name = re.match(r"[0-9a-f]*\s*(\S) (.*)", line).groups()
        if kind in "WVuvw" or (kind.isupper() and not re.fullmatch(r"inferno::cpu::kernels_\w+", name)):
            problems.append(f"{path}: {name} is visible outside ({kind})")
print("\n".join(problems) or f"{len(objects)} objects define only their kernels")
sys.exit(bool(problems))
