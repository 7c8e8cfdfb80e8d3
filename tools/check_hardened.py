#!/usr/bin/env python3
"""Fails when a program lacks the protections of cmake/compile_options.cmake: position independence, read-only
relocations, no executable stack, stack canaries, checked library calls.

Run by ctest on the release build and by .ci/run on the portable one:  check_hardened.py PROGRAM
"""
import re
import subprocess
import sys

# What readelf must show (its section, a pattern, what it means).
REQUIRED = [
    ("-h", r"Type:\s+DYN", "position independent (PIE)"),
    ("-l", r"GNU_RELRO", "relocations read-only after start (RELRO)"),
    ("-d", r"BIND_NOW|FLAGS_1.*NOW", "all symbols bound at start (BIND_NOW)"),
    ("-l", r"GNU_STACK[^\n]*\n[^\n]*RW\s", "stack not executable"),
    ("-sW", r"__stack_chk_fail", "stack canaries"),
    ("-sW", r"__(memcpy|snprintf|vsnprintf|read|pread|pread64|fprintf|longjmp|memmove|memset|strcpy|fread)_chk",
     "checked library calls (_FORTIFY_SOURCE)"),
    ("-sW", r"__glibcxx_assert_fail", "checked containers (_GLIBCXX_ASSERTIONS)"),
]


def problems_in(shown):
    """`shown` maps each readelf option to what it printed."""
    for option, pattern, meaning in REQUIRED:
        if not re.search(pattern, shown[option]):
            yield f"not found: {meaning}"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_hardened.py PROGRAM")
    program = sys.argv[1]
    shown = {option: subprocess.run(["readelf", option, program], check=True, capture_output=True, text=True).stdout
             for option in {option for option, _, _ in REQUIRED}}
    problems = list(problems_in(shown))
    for problem in problems:
        print(f"{program}: {problem}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
