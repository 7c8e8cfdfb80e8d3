#!/usr/bin/env python3
"""Shows that check_docs, check_conformance, check_portable, check_hardened and record can fail. Run by ctest as
`tools_checker`."""
import pathlib
import tempfile
import unittest

import check_conformance
import check_docs
import check_hardened
import check_portable
import record


class CheckDocs(unittest.TestCase):
    def problems(self, readme, program="echo ran $*; exit 3", commands=None, files=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "README.md").write_text(readme)
            for name, text in {**(files or {}), **({} if commands is None else {"docs/commands.md": commands})}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            for name, text in {"dev": "echo '  test   all of them'", "inferno": program}.items():
                (root / name).write_text(f"#!/bin/sh\n{text}\n")
                (root / name).chmod(0o755)
            return list(check_docs.problems_in(root, root / "inferno"))

    def test_a_command_that_fails_is_reported(self):
        self.assertIn("exit code 3", self.problems("```console\n$ inferno x\n```\n")[0])
        self.assertEqual(self.problems("```console\n$ inferno x  # exit 3\n```\n"), [])

    def test_only_console_blocks_are_run(self):
        self.assertEqual(self.problems("```sh\n$ inferno x\n```\n$ inferno x\n"), [])

    def test_output_that_is_not_printed_is_reported(self):
        self.assertEqual(self.problems("```console\n$ inferno x  # exit 3\nran x\n```\n"), [])
        self.assertEqual(self.problems("```console\n$ inferno x y  # exit 3\nran … y\n```\n"), [])
        self.assertIn("lacks the line", self.problems("```console\n$ inferno x  # exit 3\nran y\n```\n")[0])

    def test_output_must_come_in_order(self):
        text = "```console\n$ inferno x\nb\na\n```\n"
        self.assertIn("lacks the line", self.problems(text, program="echo a; echo b")[0])
        self.assertEqual(self.problems(text, program="echo b; echo c; echo a"), [])

    def test_every_command_and_option_is_documented(self):
        program = "if [ $# -gt 1 ]; then echo ' -h,--help --json'; else printf 'Subcommands:\\n  look  Looks\\n'; fi"
        self.assertEqual(self.problems("", program, "## inferno x\n\n## inferno look\n`--json`\n"), [])
        self.assertIn("look: --json", self.problems("", program, "\n## inferno look\n`--jsonl`\n")[0])
        self.assertIn("look is missing", self.problems("", program, "`--json`")[-1])

    def test_dev_commands_and_links_must_exist(self):
        self.assertIn("no command wash", self.problems("```console\n$ ./dev wash\n```\n")[0])
        self.assertEqual(self.problems("```console\n$ ./dev test -L unit\n```\n"), [])
        self.assertIn("docs/x.md", self.problems("[x](docs/x.md#part)\n")[0])
        self.assertEqual(self.problems("[x](https://example.org/x) [y](README.md)\n"), [])
        self.assertEqual(self.problems("```cpp\n[](int a) { }\n```\nand `[](int b)`\n"), [])

    def test_anchors_must_be_headings(self):
        there = {"docs/x.md": "# The `--jobs` option, twice\n## Part\n```\n# no heading\n```\n## Part\n"}
        good = "[a](docs/x.md#the---jobs-option-twice) [b](docs/x.md#part-1) [c](#here)\n## Here\n"
        self.assertEqual(self.problems(good, files=there), [])
        for bad in ("[a](docs/x.md#other)", "[a](docs/x.md#no-heading)", "[a](docs/x.md#part-2)", "[a](#here)"):
            self.assertIn("no such heading", self.problems(bad, files=there)[0])

    def test_an_excerpt_must_be_in_its_file(self):
        there = {"src/a.cpp": "int a;\nint b;\nint c;\n"}
        self.assertEqual(self.problems("```cpp src/a.cpp\nint b;\nint c;\n```\n", files=there), [])
        self.assertEqual(self.problems("```cpp src/a.cpp\nint a;\n…\nint c;\n```\n", files=there), [])
        self.assertIn("does not have", self.problems("```cpp src/a.cpp\nint a;\nint c;\n```\n", files=there)[0])
        self.assertIn("does not have", self.problems("```cpp src/a.cpp\nint c;\n…\nint a;\n```\n", files=there)[0])
        self.assertIn("no such file", self.problems("```cpp src/z.cpp\nint a;\n```\n", files=there)[0])

    def test_files_in_backticks_must_exist(self):
        there = {"src/base/error.h": "", "tests/data/x.json": "", "docs/lab/old.md": "`src/gone.h`\n"}
        good = "`src/base/error.h` `base/error.h` `error.h` `err*.h` `src/base` `tests/data/` `config.json` `a.b` `tests/data/NAME`\n"
        self.assertEqual(self.problems(good, files=there), [])
        for bad in ("src/base/gone.h", "gone.h", "tests/gone", "base/gone.h", "other/error.h", "gone_*.cu"):
            self.assertIn(bad, self.problems(f"see `{bad}`\n", files=there)[0])

    def test_replaced_phrases_must_not_come_back(self):
        there = {"src/a.cpp": 'say("found are: builtin");\n', "docs/lab/old.md": "found are: x\n", "src/b.cpp": "// not so many that\n"}
        self.assertEqual(self.problems("", files=there), ['src/a.cpp:1: "found are:", better: models here:'])
        self.assertIn("license", self.problems("a Licence\n")[0])

    def test_long_lines_of_prose_are_reported_and_tables_are_not(self):
        self.assertIn("170 characters", self.problems("x" * 170 + "\n")[0])
        self.assertEqual(self.problems("| " + "x" * 170 + " |\n```\n" + "x" * 170 + "\n```\n"), [])

    def test_the_tour_must_show_the_layers_of_the_tree(self):
        table = {"base": set(), "text": {"base"}, "cli": None}
        tour = ("```layers\ncli\ntext base\n```\n| `src/base` | nothing | x |\n| `src/text` | base | x |\n"
                "| `src/cli` | everything | x |\n")
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for layer in table:
                (root / "src" / layer).mkdir(parents=True)
            problems = lambda text: list(check_docs.layer_problems(root, text, table))
            self.assertEqual(problems(tour), [])
            self.assertIn("does not show text", problems(tour.replace("text base", "base"))[0])
            self.assertIn("no row for src/text", problems(tour.replace("src/text", "src/texts"))[0])
            self.assertIn("src/texts, which is not there", problems(tour.replace("src/text", "src/texts"))[1])
            self.assertIn("may include base, the table says nothing", problems(tour.replace("| base |", "| nothing |"))[0])
            self.assertIn("may include everything", problems(tour.replace("| everything |", "| base, text |"))[0])

    def test_the_path_to_the_first_token_must_stay_short(self):
        heading = "## From main to the first token\n"
        name = lambda numbers: " ".join(f"`src/a{number}.cpp`" for number in numbers)
        self.assertEqual(list(check_docs.path_problems(heading + name(range(45)) + "\n## Other\n`src/b.cpp`\n")), [])
        self.assertIn("46 files", list(check_docs.path_problems(heading + name(range(46))))[0])
        self.assertIn("0 files", list(check_docs.path_problems("## Other\n" + name(range(3))))[0])


class CheckConformance(unittest.TestCase):
    def problems(self, cases, models=("qwen2",), files=("llama-Q4_K_M",), harmony=()):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for model in models:
                (root / "reference/models" / model).mkdir(parents=True)
            (root / "reference/gguf").mkdir(parents=True, exist_ok=True)
            for file in files:
                (root / "reference/gguf" / f"{file}.gguf").touch()
            (root / "reference/harmony").mkdir(parents=True, exist_ok=True)
            for text in harmony:
                (root / "reference/harmony" / f"{text}.txt").touch()
            (root / "tests.xml").write_text(f"<testsuite>{cases}</testsuite>")
            return list(check_conformance.problems_in(root / "tests.xml", root))

    @staticmethod
    def case(name, inside=""):
        return f'<testcase name="{name}" status="{"notrun" if "skipped" in inside else "run"}">{inside}</testcase>'

    passed = ('<testcase name="Reference/Golden.Agrees/qwen2" status="run"/>'
              '<testcase name="Reference/Golden.Agrees/llama_Q4_K_M" status="run"/>')
    skip = "<skipped/><system-out>{}</system-out>"

    def test_all_named_and_passed_is_good(self):
        self.assertEqual(self.problems(self.passed), [])

    def test_a_model_without_a_test_is_reported(self):
        self.assertIn("qwen3: no passed test", self.problems(self.passed, models=("qwen2", "qwen3"))[0])

    def test_a_harmony_text_without_a_test_is_reported_unless_it_is_an_exception(self):
        texts = ("test_no_tools", "test_browser_tool_only", "test_keep_analysis_between_finals")
        self.assertEqual([problem.split(":")[0] for problem in self.problems(self.passed, harmony=texts)], ["test_no_tools"])
        named = self.case("Reference/HarmonyRendering.Writes/test_no_tools")
        self.assertEqual(self.problems(self.passed + named, harmony=texts), [])

    def test_a_failed_test_does_not_count(self):
        self.assertEqual(len(self.problems(self.case("A/G.A/qwen2", "<failure/>"), files=())), 1)

    def test_a_skip_for_missing_data_is_reported_and_others_are_not(self):
        missing = self.case("Real.Perplexity", self.skip.format("no ../shared/reference"))
        self.assertIn("Real.Perplexity: skipped", self.problems(self.passed + missing)[0])
        self.assertEqual(self.problems(self.passed + self.case("Cuda.Runs", self.skip.format("no GPU"))), [])

    def test_no_shared_data_is_reported(self):
        self.assertIn("not there", next(check_conformance.problems_in("none.xml", pathlib.Path("/nonexistent"))))


class CheckPrograms(unittest.TestCase):
    def test_a_foreign_library_or_a_newer_glibc_is_reported(self):
        needs, symbols = "  NEEDED               libc.so.6\n", "f GLIBC_2.17\ng GLIBC_2.34\n"
        self.assertEqual(list(check_portable.problems_in(needs, symbols)), [])
        self.assertEqual(len(list(check_portable.problems_in(needs + "  NEEDED  libfmt.so.9\n", symbols))), 1)
        self.assertEqual(len(list(check_portable.problems_in(needs, symbols + "h GLIBC_2.38\n"))), 1)
        self.assertEqual(len(list(check_portable.problems_in(needs, ""))), 1)

    def test_a_program_without_protection_is_reported(self):
        nothing = {"-h": "", "-l": "", "-d": "", "-sW": ""}
        self.assertEqual(len(list(check_hardened.problems_in(nothing))), len(check_hardened.REQUIRED))


class Recordings(unittest.TestCase):
    FRAMES = [record.Frame(0, ["$ inferno play"], True), record.Frame(1, ["$ inferno play", "loading m … 3 %", ">>> hi", "Once upon"]),
              record.Frame(2, ["$ inferno play", ">>> hi", "Once upon a time", "3 tokens, 2.5 ms"], True)]

    def differences(self, *lines, at, now=FRAMES):
        kept = [*self.FRAMES]
        kept[at] = record.Frame(kept[at].at, lines, kept[at].is_step)
        return record.differences(record.screens(record.as_svg(kept, "t")), record.screens(record.as_svg(now, "t")))

    def test_every_frame_is_compared(self):
        self.assertEqual(self.differences("$ inferno play", at=0), [])
        self.assertEqual(self.differences("$ inferno play", ">>> hi", "Once upon a time", "41 tokens, 0.31", "s", at=2), [])
        self.assertEqual(self.differences("$ inferno play", ">>> hi", "On", at=1), [])
        self.assertEqual(len(self.differences("$ inferno chat", at=0)), 1)
        self.assertEqual(len(self.differences("$ inferno play", ">>> hi", "Twice", at=1)), 1)
        self.assertEqual(len(self.differences("$ inferno play", ">>> hi", "Once upon a time", at=2)), 1)
        self.assertEqual(len(self.differences("$ inferno play", at=0, now=[*self.FRAMES, record.Frame(3, ["$"], True)])), 1)

    def test_a_figure_of_readme_that_was_not_measured_is_reported(self):
        results = [{"shape": "llama-3.1-8b", "weights": "bf16", "batch": 1, "depth": 0, "tokens": 2048, "tokens_per_second": 1499.6,
                    "command": "inferno bench"}]
        row = "| Llama-3.1-8B, bf16, prompt of 2,048 tokens | 1,{} | 9 |\n"
        table = "| | Inferno | llama.cpp |\n|---|--:|--:|\n"
        self.assertEqual(record.stale_rows(table + row.format("500"), results), [])
        self.assertEqual(len(record.stale_rows(table + row.format("501"), results)), 1)
        self.assertEqual(len(record.stale_rows(table, results)), 1)


if __name__ == "__main__":
    unittest.main()
