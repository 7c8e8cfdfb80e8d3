"""What the service's unit forbids, where there is no systemd: memory that is written and executed (MemoryDenyWriteExecute), new
privileges, and all capabilities.

  sandbox.py COMMAND ARGUMENTS...   runs the command under these rules
"""
import ctypes
import errno
import mmap
import os
import pathlib
import struct
import sys

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_MDWE, PR_CAP_AMBIENT = 24, 38, 22, 65, 47
CAPABILITY_VERSION = 0x20080522
EXECUTED, SHARED_EXECUTED = mmap.PROT_EXEC, 0o100000
# struct seccomp_data of x86-64: the number of the call, the architecture, and the lower half of the third argument.
NUMBER, ARCHITECTURE, THIRD = 0, 4, 32
X86_64 = 0xC000003E
MMAP, MPROTECT, SHMAT, PKEY_MPROTECT = 9, 10, 30, 329
LOAD, EQUAL, ANY_OF, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM

libc = ctypes.CDLL(None, use_errno=True)


def prctl(*arguments):
    return libc.prctl(*(ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:5])) == 0


def refuse_calls():
    """The filter that systemd uses where the kernel has no PR_SET_MDWE: mmap that is written and executed, and whatever makes memory
    executable later, fail."""
    both = mmap.PROT_WRITE | mmap.PROT_EXEC
    program = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 0, 13, X86_64), (LOAD, 0, 0, NUMBER),
               (EQUAL, 3, 0, MMAP), (EQUAL, 5, 0, MPROTECT), (EQUAL, 4, 0, PKEY_MPROTECT), (EQUAL, 5, 7, SHMAT),
               (LOAD, 0, 0, THIRD), (AND, 0, 0, both), (EQUAL, 5, 4, both),
               (LOAD, 0, 0, THIRD), (ANY_OF, 3, 2, EXECUTED),
               (LOAD, 0, 0, THIRD), (ANY_OF, 1, 0, SHARED_EXECUTED),
               (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    whole = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    return prctl(PR_SET_SECCOMP, 2, ctypes.addressof(whole))


def maps_executable_memory():
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    return libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0) not in (None, 2**64 - 1)


def enter():
    """Applies the rules to this process and returns how memory is guarded. A rule that cannot be applied is an error."""
    for capability in range(64):
        prctl(PR_CAPBSET_DROP, capability)  # fails without CAP_SETPCAP, and then there is nothing to drop
    prctl(PR_CAP_AMBIENT, 4)
    header, none = struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24)
    if libc.capset(header, none) != 0 or not prctl(PR_SET_NO_NEW_PRIVS, 1):
        raise OSError(ctypes.get_errno(), "capabilities and privileges cannot be given up")
    guard = "PR_SET_MDWE" if prctl(PR_SET_MDWE, 1) else "a filter of system calls" if refuse_calls() else None
    if guard is None or maps_executable_memory():
        raise OSError(ctypes.get_errno(), f"memory can still be written and executed (guard: {guard})")
    return guard


def capabilities(pid):
    """What a process may do and get: {"CapEff": 0, …, "NoNewPrivs": 1}."""
    wanted = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")
    lines = (line.split(":") for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: int(value, 16) for name, value in lines if name in wanted}


if __name__ == "__main__":
    print(f"sandbox: memory is guarded by {enter()}", file=sys.stderr, flush=True)
    os.execvp(sys.argv[1], sys.argv[1:])
