"""The headers as other programs see them: header_test.py LIBRARY_FOLDER"""
import pathlib
import re
import sys
import unittest

import toolbox
from toolbox import ROOT, run, tool

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror", "-fsyntax-only"]
GCC, CLANG = (tool("gcc"), tool("g++")), (tool("clang-19"), tool("clang++-19"))


class Headers(unittest.TestCase):
    def compile(self, compiler, standard, header, *more):
        language = "c++" if "++" in standard else "c"
        run(compiler, "-x", language, f"-std={standard}", *WARNINGS, *more, "-I", ROOT / "include", "-",
            input=f"#include <inferno/{header}>\n#include <inferno/{header}>\nint used(void);\nint used(void) {{ return INFERNO_ABI; }}\n")

    def test_the_c_header_is_c99_c11_cpp17_and_cpp20(self):
        for c, cpp in (GCC, CLANG):
            for standard in ("c99", "c11"):
                self.compile(c, standard, "inferno.h", "-Wstrict-prototypes", "-Wmissing-prototypes")
            for standard in ("c++17", "c++20"):
                self.compile(cpp, standard, "inferno.h", "-Wold-style-cast")

    def test_the_cpp_header_is_cpp20(self):
        for _, cpp in (GCC, CLANG):
            self.compile(cpp, "c++20", "inferno.hpp", "-Wold-style-cast")

    def test_the_library_exports_what_the_header_declares_and_nothing_else(self):
        symbols = run(tool("nm"), "-D", "--defined-only", FOLDER / "libinferno.so")
        exported = {line.split()[-1].split("@")[0] for line in symbols.splitlines()} - {"INFERNO_0"}
        self.assertEqual(exported, set(toolbox.declared()))

    def test_the_library_leaves_signals_and_the_environment_alone(self):
        imported = {line.split()[-1].split("@")[0] for line in run(tool("nm"), "-D", "--undefined-only", FOLDER / "libinferno.so").splitlines()}
        self.assertIn("memcpy", imported)
        self.assertFalse(imported & {"getenv", "secure_getenv", "setenv", "putenv", "environ", "signal", "sigaction", "puts", "printf", "perror",
                                     "putchar", "_ZSt4cout", "_ZSt4cerr", "exit"})

    def test_every_function_is_called_in_the_tests_and_rightly_and_wrongly_so(self):
        wrong = (ROOT / "src/library/misuse_test.cpp").read_text() + (ROOT / "src/library/misuse_scene.h").read_text()
        right = (ROOT / "src/library/library_test.cpp").read_text() + (ROOT / "src/library/library_scene.h").read_text() + \
            (ROOT / "src/library/callback_test.cpp").read_text()
        without_errors = {"inferno_version", "inferno_abi", "inferno_status_name"}
        for name in toolbox.declared():
            used = re.compile(rf"\b{name}\(")
            self.assertTrue(name in without_errors or used.search(wrong), f"{name} is never called wrongly")
            self.assertTrue(used.search(right) or used.search(wrong), f"{name} is never called")

    def test_every_function_is_called_with_each_wrong_argument(self):
        def calls(text, name):
            return len(re.findall(rf"\b{name}\(", text))

        misuse, sizes, scene = ((ROOT / f"src/library/{name}").read_text() for name in ("misuse_test.cpp", "sizes_test.cpp", "misuse_scene.h"))
        nulls = "".join(re.findall(r"^TEST\(Misuse, Null.*?^}", misuse, re.M | re.S))
        optional = {"options", "length", "count", "is_over", "context", "error"}
        for name, (_, parameters) in toolbox.declared().items():
            if "inferno_error" not in parameters:
                continue
            types = dict(re.match(r"\s*(.*?)(\w+)$", each).group(2, 1) for each in parameters.split(","))
            pointers = [each for each, kind in types.items() if ("*" in kind or "callback" in kind) and each not in optional]
            self.assertGreaterEqual(calls(nulls, name), len(pointers), f"{name}: {pointers} are NULL in no test")
            if any(re.search(r"inferno_(load_options|description|statistics|plan_result|part|usage)\*", kind) for kind in types.values()):
                self.assertGreaterEqual(calls(sizes, name), 1, f"{name}: no test with a wrong size")
            # These are all made with handles that are stale, freed or of unloaded models, and by two threads at once.
            self.assertGreaterEqual(calls(scene, name), 1, f"{name} is not in misuse_scene.h")

    def test_the_manual_names_every_function(self):
        manual = (ROOT / "docs/library.md").read_text()
        for name in toolbox.declared():
            self.assertIn(f"`{name}", manual)

    def test_the_program_of_the_manual_compiles(self):
        program = re.search(r"```c\n(.*?)```", (ROOT / "docs/library.md").read_text(), re.S)[1]
        run(GCC[0], "-x", "c", "-std=c99", *WARNINGS, "-I", ROOT / "include", "-", input=program)

    def test_the_library_needs_no_other_libraries_than_documented(self):
        needed = re.findall(r"NEEDED.*\[(.*?)\]", run(tool("readelf"), "-d", FOLDER / "libinferno.so"))
        manual = (ROOT / "docs/library.md").read_text()
        for library in needed:
            if not re.match(r"lib(c|m|stdc\+\+|gcc_s|asan|ubsan|tsan)\.so|ld-linux", library):
                self.assertIn(re.sub(r"\.so.*", "", library), manual)


class Examples(unittest.TestCase):
    def test_each_has_less_than_eighty_lines(self):
        for file in (ROOT / "examples").glob("*/*"):
            self.assertLess(len(file.read_text().splitlines()), 80, file.name)


if __name__ == "__main__":
    unittest.main()
