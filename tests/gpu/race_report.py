#!/usr/bin/env python3
"""What racecheck found, less what it cannot know: race_report.py PROGRAM LOG...

racecheck takes a bulk copy (cp.async.bulk, UBLKCP in machine code) for a write of the thread that starts it. That copies wait until
all readers of a stage are done, it sees only where every reader arrives at the barrier itself; here one lane arrives for its
warp, behind __syncwarp. So hazards between a bulk copy and reads in the same kernel are counted and named, and nothing more; the
other way round, that readers wait for the copy, the hardware counts in bytes. Every other hazard is an error. Which instruction
stands at an address, cuobjdump says. Ends with 1 when a hazard is left over.
"""
import collections
import re
import subprocess
import sys

FIRST = re.compile(r"(Error|Warning): (?:Potential )?(?:Race|hazard)[^:]* (Read|Write) access at (.+)\+0x([0-9a-f]+)", re.I)
SECOND = re.compile(r"and (Read|Write) access at (.+)\+0x([0-9a-f]+)")
COPIES = ("UBLKCP", "UTMALDG")


def hazards_of(text):
    """(kernel, offset of the write, kernel of the read) of every pair; None for a line that is not understood"""
    found, first = [], None
    for line in text.splitlines():
        line = line.strip("= ").strip()
        start, then = FIRST.search(line), SECOND.search(line)
        if start:
            first = (start[2].lower(), start[3], int(start[4], 16))
        elif then and first:
            second = (then[1].lower(), then[2], int(then[3], 16))
            kinds = {first[0], second[0]}
            if kinds == {"read", "write"}:
                write, read = (first, second) if first[0] == "write" else (second, first)
                found.append((write[1], write[2], read[1]))
            else:
                found.append((first[1], None, second[1]))
    return found


def bare(kernel):
    return re.sub(r"<.*|\(.*", "", re.sub(r"^void ", "", kernel)).split("::")[-1]


def copies_in(program):
    """By function, the offsets of instructions that copy in bulk."""
    found, function = collections.defaultdict(set), None
    dump = subprocess.Popen(["cuobjdump", "-sass", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in dump.stdout:
        named = re.search(r"Function : (\S+)", line)
        if named:
            function = named[1]
            continue
        code = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", line)
        if code and code[2].startswith(COPIES):
            found[function].add(int(code[1], 16))
    if dump.wait() != 0:
        sys.exit(f"race_report: cuobjdump ended with {dump.returncode}")
    return found


def main():
    program, logs = sys.argv[1], sys.argv[2:]
    hazards = set()
    for log in logs:
        with open(log, errors="replace") as file:
            text = file.read()
        if "[  FAILED  ]" in text:
            sys.exit(f"race_report: {log}: a test failed")
        own = hazards_of(text)
        summary = re.search(r"RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) error", text)
        if summary is None or (int(summary[1]) > 0 and not own):
            sys.exit(f"race_report: {log} is not understood")
        hazards.update(own)
    copies = copies_in(program) if hazards else {}
    left = 0
    for kernel, write, reader in sorted(hazards, key=str):
        name = bare(kernel)
        is_copy = write is not None and kernel == reader and any(name in function and write in offsets for function, offsets in copies.items())
        if not is_copy:
            left += 1
            print(f"race_report: {kernel}+{'?' if write is None else hex(write)} is no bulk copy; read in {reader}")
    kernels = sorted({bare(kernel) for kernel, _, _ in hazards})
    print(f"race_report: {len(hazards) - left} hazards of bulk copies whose order racecheck cannot see ({' '.join(kernels) or 'none'}), {left} others")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
