#!/usr/bin/env python3
"""Fails if a program needs more than glibc 2.34 and libgcc at run time: another library, or a newer symbol.

Run by .ci/run on the portable build:  check_portable.py PROGRAM
"""
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 34)  # RHEL 9, Amazon Linux 2023; Ubuntu 22.04 has 2.35
ALLOWED = re.compile(r"^(libc|libm|libgcc_s|libpthread|libdl|librt|ld-linux-x86-64)\.so\.\d+$")


def needed_libraries(dynamic_section):
    return re.findall(r"^\s+NEEDED\s+(\S+)", dynamic_section, re.MULTILINE)


def glibc_versions(symbols):
    return {tuple(int(part) for part in version.split(".")) for version in re.findall(r"GLIBC_([0-9.]+[0-9])", symbols)}


def problems_in(dynamic_section, symbols):
    for library in needed_libraries(dynamic_section):
        if not ALLOWED.match(library):
            yield f"needs {library}, which another machine may not have"
    versions = glibc_versions(symbols)
    if not versions:
        yield "no glibc symbols found: not a dynamically linked program?"
    for version in sorted(versions):
        if version > NEWEST_GLIBC:
            yield f"needs glibc {'.'.join(map(str, version))}, the limit is {'.'.join(map(str, NEWEST_GLIBC))}"


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_portable.py PROGRAM")
    program = sys.argv[1]
    symbols = output_of("objdump", "-T", program)
    problems = list(problems_in(output_of("objdump", "-p", program), symbols))
    for problem in problems:
        print(f"{program}: {problem}")
    if not problems:
        newest = ".".join(map(str, max(glibc_versions(symbols))))
        print(f"{program}: runs on systems with glibc {newest} or newer")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
