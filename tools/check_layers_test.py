#!/usr/bin/env python3
"""Shows that check_layers.py can fail: one small tree for each rule. Run by ctest as `layers_checker`."""
import pathlib
import tempfile
import unittest

import check_layers


def findings(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return list(check_layers.problems_in(root))


def function_of(lines):
    return "int f(int a = 0) {\n" + "  a += 1;\n" * (lines - 2) + "}\n"


class CheckLayers(unittest.TestCase):
    def refuses(self, name, text, words):
        found = findings({name: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def accepts(self, name, text):
        self.assertEqual(findings({name: text}), [])

    def test_a_layer_does_not_look_upward(self):
        self.refuses("src/tensor/a.cpp", '#include "model/weights.h"\n', "tensor may not include model")
        self.accepts("src/model/a.cpp", '#include "tensor/matrix.h"\n')
        self.accepts("src/cli/a.cpp", '#include "model/weights.h"\n')

    def test_a_folder_that_is_no_layer_is_noticed(self):
        self.refuses("src/util/a.cpp", "int a;\n", "util is not a layer")

    def test_a_library_stays_where_it_belongs(self):
        self.refuses("src/model/a.cpp", "#include <nlohmann/json.hpp>\n", "nlohmann-json does not belong here")
        self.refuses("src/backend/cpu/a.cpp", "#include <cuda_runtime.h>\n", "CUDA does not belong here")
        self.refuses("src/server/a.cpp", "#include <boost/beast.hpp>\n", "Boost does not belong here")
        self.refuses("src/base/a.cpp", "#include <gtest/gtest.h>\n", "GoogleTest does not belong here")
        self.refuses("src/base/a.cpp", "#include <eigen3/Eigen/Dense>\n", "does not know")
        self.accepts("src/backend/cuda/a.cpp", "#include <cuda_runtime.h>\n")
        self.accepts("src/server/http.cpp", "#include <boost/beast.hpp>\n")
        self.accepts("src/base/a_test.cpp", "#include <gtest/gtest.h>\n")
        self.accepts("src/base/scene.h", "// A scene.\n#pragma once\n#include <gtest/gtest.h>\n")
        self.refuses("src/base/obscene.h", "// A.\n#pragma once\n#include <gtest/gtest.h>\n", "GoogleTest")
        self.accepts("src/base/a.cpp", "#include <sys/stat.h>\n#include <vector>\n#include <fmt/format.h>\n")

    def test_a_file_has_at_most_600_lines(self):
        for folder in ("src/base", "tests/golden", "bench"):
            self.refuses(f"{folder}/a.cpp", "int a;\n" * 601, "601 lines")
            self.accepts(f"{folder}/a.cpp", "int a;\n" * 600)

    def test_modules_do_not_include_each_other(self):
        header = "// A header.\n#pragma once\n"
        a_and_b = {
            "src/base/a.h": header + '#include "base/b.h"\n',
            "src/base/b.h": header,
            "src/base/b.cpp": '#include "base/b.h"\n#include "base/c.h"\n',
            "src/base/c.h": header,
        }
        self.assertEqual(findings(a_and_b), [])
        # The cycle passes through a header and another module's source, so that no compiler would see it.
        found = findings(a_and_b | {"src/base/c.cpp": '#include "base/a.h"\n'})
        self.assertEqual(found, ["src: these modules include each other: src/base/a, src/base/b, src/base/c"])

    def test_a_function_has_at_most_60_lines(self):
        self.refuses("src/base/a.cpp", function_of(61), "f has 61 lines")
        self.accepts("src/base/a.cpp", function_of(60) * 2)

    def test_functions_are_found_wherever_they_stand(self):
        long = "  int b;\n" * 60
        for name, text in {
            "g": "namespace a {\nclass B : public C {\n  void g() const override {\n" + long + "  }\n};\n}\n",
            "TEST": "TEST(Walk, Far) {\n" + long + "}\n",
            "B": "B::B(int c) : c_{c}, d_{1} {\n" + long + "}\n",
            "operator": "bool operator==(const A& a, const A& b) {\n" + long + "}\n",
            "h": "template <class T = int>\nauto h(T t) -> decltype(t) {\n" + long + "}\n",
        }.items():
            found = findings({"src/base/a.cpp": text})
            self.assertEqual(len(found), 1, (name, found))
            self.assertIn("the limit is 60", found[0])

    def test_a_table_is_not_a_function(self):
        self.accepts("src/base/a.cpp", "constexpr int table[] = {\n" + "  f(1),\n" * 80 + "};\n")

    def test_braces_in_text_are_text(self):
        self.accepts("src/base/a.cpp", 'void f() { g("{"); h(\'{\'); }  // {\n' + "int a;\n" * 70)
        self.accepts("src/base/a.cpp", 'const char* a = R"({{{)";\n/* { */ int n = 1\'000;\n' + "int a;\n" * 70)

    def test_an_excused_function_may_have_100_lines_and_no_more(self):
        check_layers.EXCUSED_FUNCTIONS[("src/base/a.cpp", "f")] = "this test"
        try:
            self.accepts("src/base/a.cpp", function_of(100))
            self.refuses("src/base/a.cpp", function_of(101), "the limit is 100")
        finally:
            del check_layers.EXCUSED_FUNCTIONS[("src/base/a.cpp", "f")]

    def test_macros_and_loose_ends_are_refused(self):
        self.refuses("src/base/a.cpp", "#define A 1\n", "macros")
        self.refuses("tests/a.cpp", "#  define A(x) x\n", "macros")
        self.refuses("src/base/a.cpp", "// TO" + "DO: later\n", "unfinished")

    def test_test_data_stays_small(self):
        self.refuses("tests/data/a.gguf", "x" * 4_000_001, "the limit is 4000000")
        many = {f"tests/data/{name}.gguf": "x" * 3_500_000 for name in "abc"}
        self.assertEqual(findings(many), ["tests/data: 10500000 bytes, the limit is 10000000"])

    def test_the_environment_has_one_reader(self):
        self.refuses("src/base/a.cpp", 'auto a = std::getenv("A");\n', "environment")
        self.accepts("src/cli/environment.cpp", 'auto a = std::getenv("A");\n')
        self.accepts("tests/a.cpp", 'auto a = std::getenv("A");\n')

    def test_a_header_is_guarded_and_introduced(self):
        self.refuses("src/base/a.h", "#pragma once\n", "begins by saying")
        self.refuses("src/base/a.h", "// What a is.\n", "#pragma once")
        self.accepts("src/base/a.h", "// What a is.\n#pragma once\n")


if __name__ == "__main__":
    unittest.main()
