#!/usr/bin/env python3
"""./dev on unusual machines: packages missing, not root, no sudo, not Debian. Every program it would call is replaced by
a script that only prints that it was called."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ["bash", "dirname", "readlink", "cat", "env", "grep", "printf", "sort"]


class Dev(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        shutil.copy(REPOSITORY / "dev", self.root / "dev")
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.fake("id", "echo 0")
        self.fake("nproc", "echo 2")
        self.fake("dpkg-query", "echo installed")
        for called in ("apt-get", "cmake", "ctest", "ninja", "python3"):
            self.fake(called, f'echo "called: {called} $*" >&2')

    def tearDown(self):
        self.folder.cleanup()

    def fake(self, name, script):
        (self.bin / name).write_text(f"#!{shutil.which('bash')}\n{script}\n")
        (self.bin / name).chmod(0o755)

    def dev(self, *arguments, cwd=None):
        result = subprocess.run([self.root / "dev", *arguments], env={"PATH": str(self.bin), "HOME": os.devnull},
                                cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False, timeout=60)
        return result.returncode, result.stdout

    def test_nothing_missing_means_no_apt(self):
        code, out = self.dev("test", "-L", "unit")
        self.assertEqual(code, 0, out)
        self.assertNotIn("called: apt-get", out)
        self.assertIn("called: cmake --preset release", out)
        self.assertIn("called: ctest --preset release -j 2 -L unit", out)

    def test_the_program_is_installed_under_a_prefix(self):
        self.fake("install", 'echo "called: install $*" >&2')
        code, out = self.dev("install", "--prefix", "/opt/inferno")
        self.assertEqual(code, 0, out)
        self.assertIn("called: cmake --build --preset release --target inferno", out)
        self.assertIn("called: install -D -m 755 build/release/inferno /opt/inferno/bin/inferno\n", out)
        self.assertIn('next: export PATH="/opt/inferno/bin:$PATH"', out)
        code, out = self.dev("install", "--prefix", "out", cwd=self.bin)
        self.assertIn(f"called: install -D -m 755 build/release/inferno {self.bin}/out/bin/inferno\n", out)
        code, out = self.dev("install", "--prefix")
        self.assertEqual(code, 1, out)
        self.assertIn("expected a folder", out)

    def test_only_what_is_missing_is_installed(self):
        self.fake("dpkg-query", 'case "$*" in *libfmt-dev) exit 1 ;; *) echo installed ;; esac')
        code, out = self.dev("build")
        self.assertEqual(code, 0, out)
        self.assertIn("called: apt-get install -q -y --no-install-recommends libfmt-dev\n", out)

    def test_a_failing_apt_is_reported(self):
        self.fake("dpkg-query", "exit 1")
        self.fake("apt-get", "exit 100")
        code, out = self.dev("test")
        self.assertEqual(code, 1)
        self.assertIn("error: apt-get update failed", out)

    def test_sudo_is_used_when_not_root_and_asked_for_when_missing(self):
        self.fake("id", "echo 1000")
        self.fake("dpkg-query", "exit 1")
        code, out = self.dev("build")
        self.assertEqual(code, 1)
        self.assertIn("not root and no sudo; as root: apt-get install", out)
        self.fake("sudo", 'echo "called: sudo $*" >&2')
        code, out = self.dev("build")
        self.assertEqual(code, 0, out)
        self.assertIn("called: sudo apt-get update", out)

    def test_another_system_is_told_what_it_needs(self):
        (self.bin / "apt-get").unlink()
        code, out = self.dev("build")
        self.assertEqual(code, 0, out)
        self.assertIn("not Debian", out)
        self.assertIn("libpcre2-dev", out)
        (self.bin / "cmake").unlink()
        code, out = self.dev("build")
        self.assertEqual(code, 1)
        self.assertIn("error: cmake, ninja and python3 are required", out)

    def test_clang_is_installed_for_fuzzing_alone(self):
        self.fake("dpkg-query", 'case "$*" in *-19*) exit 1 ;; *) echo installed ;; esac')
        self.assertNotIn("clang-19", self.dev("build")[1])
        self.assertIn("install -q -y --no-install-recommends clang-19", self.dev("build", "fuzz")[1])

    def test_a_configuration_that_fails_stops_it(self):
        self.fake("cmake", 'echo "no compiler"; exit 1')
        code, out = self.dev("test")
        self.assertEqual(code, 1)
        self.assertIn("error: configuring preset release failed", out)
        self.assertNotIn("called: ctest", out)

    def test_each_step_of_a_test_run_is_announced_with_an_estimate(self):
        code, out = self.dev("test")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"step 1 of 2: building the program and all tests, about \d+ min on 2 cores, \d+ min with a warm")
        self.assertRegex(out, r"step 1 of 2: built in 0 min \d\d s")
        self.assertRegex(out, r"step 2 of 2: running all tests, about \d+ min")
        self.assertRegex(out, r"step 2 of 2: all passed in 0 min \d\d s")
        self.assertLess(out.index("step 1 of 2: built"), out.index("called: ctest"))

    def test_more_cores_mean_a_shorter_estimate(self):
        def estimate():
            return int(re.search(r"all tests, about (\d+) min", self.dev("test")[1])[1])
        two = estimate()
        self.fake("nproc", "echo 8")
        self.assertLess(estimate(), two)

    def test_a_second_build_is_not_called_a_first_one(self):
        (self.root / "build/release").mkdir(parents=True)
        program = self.root / "build/release/inferno"
        program.write_text(f"#!{shutil.which('bash')}\necho program: $*\n")
        program.chmod(0o755)
        code, out = self.dev("test", "-L", "unit")
        self.assertEqual(code, 0, out)
        self.assertIn("step 1 of 2: building what changed", out)
        self.assertIn("step 2 of 2: running the tests selected by -L unit", out)
        self.assertNotIn("first build", self.dev("run")[1])
        self.assertIn("program: play", self.dev("run")[1])

    def test_failing_tests_fail_the_command(self):
        self.fake("ctest", "exit 8")
        code, out = self.dev("test")
        self.assertEqual(code, 8, out)
        self.assertNotIn("all passed", out)

    def test_it_works_from_any_directory(self):
        (self.root / "elsewhere").mkdir()
        code, out = self.dev("build", "debug", cwd=self.root / "elsewhere")
        self.assertEqual(code, 0, out)
        self.assertIn("called: cmake --build --preset debug", out)

    def test_help_and_unknown_words(self):
        self.assertEqual(self.dev("help")[0], 0)
        self.assertEqual(self.dev()[0], 0)
        code, out = self.dev("wash")
        self.assertEqual(code, 1)
        self.assertIn("unknown command: wash", out)


if __name__ == "__main__":
    unittest.main()
