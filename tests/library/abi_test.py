"""The binary interface against its stored description: abi_test.py, or abi_test.py --write to store a new one.

The types come from the header, compiled with debug information: the sources of the library include it, so they cannot differ.
Its enums have no names, so constants are stored on their own. Which functions the library exports is tested in header_test.py."""
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree

from toolbox import HEADER, ROOT, declared, run, tool

ABI = int(re.search(r"^#define INFERNO_ABI (\d+)$", HEADER.read_text(), re.M)[1])
STORED = ROOT / f"tests/library/inferno-{ABI}.abi"
CONSTANTS = STORED.with_suffix(".constants")
HELP = f"""The interface differs from {STORED.name} or {CONSTANTS.name}. If functions, constants or fields at the end of structs were added, store the new
description: tests/library/abi_test.py --write. Anything else breaks programs that are compiled already: raise INFERNO_ABI first."""


def describe(folder, header=HEADER.read_text()):
    """The description of a library that has the functions of the header."""
    (folder / "inferno.h").write_text(header)
    bodies = "\n".join(f"{result} {name}({parameters}) {{ __builtin_trap(); }}"
                       for name, (result, parameters) in declared(header).items())
    (folder / "stub.c").write_text(f'#include "inferno.h"\n{bodies}\n')
    run(tool("gcc"), "-std=c99", "-g", "-shared", "-fPIC", "-w", "-fdebug-prefix-map=" + str(folder) + "=.", "stub.c",
        "-o", "libinferno.so", cwd=folder)
    run(tool("abidw"), "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", "found.abi", "libinferno.so", cwd=folder)
    return folder / "found.abi"


def constants(folder, header=HEADER.read_text()):
    """{name: value} of the enumerators, as the compiler computes them."""
    enums = re.findall(r"\benum\s*\w*\s*\{(.*?)\}", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL), re.DOTALL)
    names = [entry.split("=")[0].strip() for body in enums for entry in body.split(",") if entry.strip()]
    prints = "\n".join(f'printf("{name} = %lld\\n", (long long){name});' for name in names)
    (folder / "inferno.h").write_text(header)
    (folder / "constants.c").write_text(f'#include <stdio.h>\n#include "inferno.h"\nint main(void) {{\n{prints}\nreturn 0;\n}}\n')
    run(tool("gcc"), "-std=c99", "constants.c", "-o", "constants", cwd=folder)
    return run(folder / "constants")


def values(lines):
    return dict(line.split(" = ") for line in lines.splitlines())


def difference(old, new):
    """What abidiff says; empty if there is no difference."""
    import subprocess
    done = subprocess.run([tool("abidiff"), old, new], capture_output=True, text=True, timeout=60)
    assert done.returncode & 3 == 0, done.stderr
    return done.stdout if done.returncode else ""


def layouts(description):
    """{struct: (bits, {field: offset})} of a description."""
    structs = xml.etree.ElementTree.parse(description).iter("class-decl")
    return {struct.get("name"): (int(struct.get("size-in-bits")), {member.find("var-decl").get("name"): int(member.get("layout-offset-in-bits"))
                                                                    for member in struct.iter("data-member")})
            for struct in structs if struct.get("size-in-bits")}


def inserted(old, new):
    """Fields that were added where a struct already had bytes. Older programs leave padding unset, and their `size` includes it."""
    before, after = layouts(old), layouts(new)
    return [f"{name}.{field} is inside the struct as it was, perhaps in padding" for name, (size, fields) in before.items()
            for field, offset in after.get(name, (0, {}))[1].items() if field not in fields and offset < size]


def grown(old, new):
    """Structs that have no `size` and are passed by value, so that a longer one is another one."""
    before, after = layouts(old), layouts(new)
    return [f"{name} has another size, and no field that says so" for name, (size, fields) in before.items()
            if "size" not in fields and after.get(name, (size,))[0] != size]


def altered(old, new):
    """Constants that have another value or are missing."""
    return [f"{name} was {value} and is {values(new).get(name, 'missing')}" for name, value in values(old).items() if values(new).get(name) != value]


def moved(report):
    """Whether something was removed, or changed where it was."""
    return re.search(r"[1-9]\d* Removed|offset changed|type of '|type changed|parameter \d+ of type '.*' (was|changed)|data member deletion"
                     r"|return type changed", report) is not None


def compare(folder, header=HEADER.read_text()):
    """(what differs from the stored interface, whether programs that are compiled already would be wrong)."""
    found, found_constants = describe(folder, header), constants(folder, header)
    report, stored = difference(STORED, found), CONSTANTS.read_text()
    breaks = inserted(STORED, found) + grown(STORED, found) + altered(stored, found_constants)
    added = [f"{name} was added" for name in values(found_constants) if name not in values(stored)]
    return "\n".join(part for part in (report, *breaks, *added) if part), bool(breaks) or moved(report)


def check_the_checker(folder):
    """A change of each kind is found, and judged."""
    text = HEADER.read_text()
    cases = {"appended": (r"(typedef struct inferno_load_options \{[^}]*)\}", r"\1  void* added;\n}", False),
             "moved": (r"int32_t threads;", "int64_t threads;", True),
             "padding": (r"int32_t call;", "int32_t call, added;", True),
             "changed": (r"INFERNO_OVERLOADED = 5", "INFERNO_OVERLOADED = 50", True),
             "removed": (r"  INFERNO_NETWORK = 7,\n", "", True),
             "renamed": (r"INFERNO_SKIP_SPECIAL", "INFERNO_LEAVE_SPECIAL", True),
             "handle": (r"(typedef struct inferno_model \{[^}]*)\}", r"\1  uint64_t added;\n}", True),
             "function removed": (r"INFERNO_API [^;]*\binferno_prefix_drop\([^;]*;", "", True),
             "parameter changed": (r"(\binferno_answer_cancel\()inferno_answer answer", r"\1int32_t answer", True),
             "result changed": (r"INFERNO_API int32_t inferno_abi", "INFERNO_API int64_t inferno_abi", True),
             "function added": (r"(INFERNO_API int32_t inferno_abi)", r"INFERNO_API int32_t inferno_added(int32_t value);\n\1", False),
             "extended": (r"INFERNO_TOO_SMALL = 11", "INFERNO_TOO_SMALL = 11, INFERNO_ADDED", False)}
    for name, (old, new, is_break) in cases.items():
        (folder / name).mkdir()
        header = re.sub(old, new, text)
        assert header != text, name
        report, breaks = compare(folder / name, header)
        assert report and breaks == is_break, f"{name}: {report}"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file in (STORED, CONSTANTS):
            if not file.exists() and "--write" not in sys.argv:
                sys.exit(f"{file.name} is missing: tests/library/abi_test.py --write")
        if "--write" in sys.argv and not STORED.exists():
            STORED.write_text(describe(folder).read_text())
        if "--write" in sys.argv and not CONSTANTS.exists():
            CONSTANTS.write_text(constants(folder))
        report, breaks = compare(folder)
        if report and (breaks or "--write" not in sys.argv):
            sys.exit(f"{report}\n{HELP}")
        if "--write" in sys.argv:
            STORED.write_text((folder / "found.abi").read_text())
            CONSTANTS.write_text(constants(folder))
            return
        check_the_checker(folder)


main()
