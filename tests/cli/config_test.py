#!/usr/bin/env python3
"""The configuration file as a user meets it: which value wins, what is refused and where.

Usage: config_test.py PROGRAM
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
KEPT = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}


class Config(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.file = self.home / ".config/inferno/config.toml"

    def write(self, text, path=None, mode=0o644):
        path = path or self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    def run_program(self, *arguments, code=0, **variables):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                              cwd=self.home, env={**KEPT, "HOME": str(self.home), "HF_HUB_OFFLINE": "1", **variables})
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}{done.stderr}")
        done.stderr = re.sub(r"(why|next): +", r"\1: ", done.stderr)
        return done

    def settings(self, *arguments, **variables):
        out = json.loads(self.run_program("config", "--json", *arguments, **variables).stdout)
        return {one.get("table", "") + one["setting"]: (one["value"], one["origin"]) for one in out["settings"]}

    def generate(self, *arguments, **variables):
        done = self.run_program("generate", "--json", "--raw", "Once", *arguments, **variables)
        return json.loads(done.stdout)

    # Which value counts.

    def test_a_flag_beats_the_environment_which_beats_the_file(self):
        self.write("max-tokens = 3\nseed = 11\n")
        self.assertEqual(self.generate()["completion_tokens"], 3)
        self.assertEqual(self.generate(INFERNO_ARG_MAX_TOKENS="2")["completion_tokens"], 2)
        self.assertEqual(self.generate("-n", "1", INFERNO_ARG_MAX_TOKENS="2")["completion_tokens"], 1)
        self.assertEqual(self.generate(INFERNO_CONFIG="", INFERNO_ARG_MAX_TOKENS="2")["completion_tokens"], 2)

    def test_a_model_beats_a_command_which_beats_the_top(self):
        self.write('max-tokens = 4\n[model."builtin"]\nmax-tokens = 2\n[generate]\nmax-tokens = 3\n')
        self.assertEqual(self.generate()["completion_tokens"], 3)
        self.assertEqual(self.generate("-m", "builtin")["completion_tokens"], 2)

    def test_verbose_says_where_each_value_comes_from(self):
        self.write("max-tokens = 3\ntemperature = 0.5\n")
        err = self.run_program("generate", "Once", "--verbose", "-n", "1", INFERNO_ARG_SEED="5").stderr
        self.assertIn("  -n 1  (flag)\n", err)
        self.assertIn("  --seed 5  (INFERNO_ARG_SEED)\n", err)
        self.assertIn(f"  --temperature 0.5  ({self.file}:2)\n", err)
        self.assertNotIn("--max-tokens", err)

    def test_defaults_leave_the_prompt_alone(self):
        self.write("stop = ['xyzzy', '-y']\nmax-tokens = 2\n")
        self.assertEqual(self.generate()["completion_tokens"], 2)
        self.assertEqual(self.run_program("generate", "-n1", "-q", "--raw", "--", "-n").returncode, 0)

    def test_an_option_that_excludes_a_default_wins(self):
        self.write("[generate]\nstream = true\nmax-tokens = 1\n")
        self.assertEqual(self.generate()["completion_tokens"], 1)

    def test_other_files(self):
        other = self.write("max-tokens = 2\n", self.home / "other.toml")
        self.write("max-tokens = 3\n")
        self.assertEqual(self.generate(INFERNO_CONFIG=str(other))["completion_tokens"], 2)
        self.write("max-tokens = 4\n", self.home / "xdg/inferno/config.toml")
        self.assertEqual(self.generate(XDG_CONFIG_HOME=str(self.home / "xdg"))["completion_tokens"], 4)
        err = self.run_program("list", code=3, INFERNO_CONFIG=str(self.home / "nothing")).stderr
        self.assertIn("nothing: cannot read the configuration", err)
        self.run_program("list", XDG_CONFIG_HOME=str(self.home / "empty"))

    def test_names_of_models(self):
        self.write('[aliases]\nmine = "some-org/some-model:Q4_K_M"\nqwen3 = "other-org/other"\n')
        self.assertIn("some-org/some-model", self.run_program("download", "mine", code=5).stderr)
        err = self.run_program("download", "qwen3", code=5, HF_HUB_OFFLINE="", HF_ENDPOINT="http://127.0.0.1:1",
                               INFERNO_HUB_TIME_SCALE="0.001").stderr
        self.assertIn("qwen3 is other-org/other", err)

    # inferno config

    def test_config_shows_the_file_and_its_values(self):
        self.write('temperature = 0.7\n[serve]\nport = 8080\n[model."qwen3:8b"]\nthink = false\n[aliases]\nmine = "a/b"\n')
        out = self.run_program("config").stdout
        self.assertIn(f"file: {self.file}\n", out)
        self.assertRegex(out, rf"(?m)^\[serve\] port +8080 +{self.file}:3$")
        self.assertRegex(out, r'(?m)^\[model."qwen3:8b"\] think +false +')
        self.assertRegex(out, r"(?m)^\[aliases\] mine +a/b +")
        self.assertIn("no errors", self.run_program("config", "--check").stdout)
        self.assertIn("does not exist", self.run_program("config", XDG_CONFIG_HOME="/nonexistent").stdout)
        self.assertIn("file: none", self.run_program("config", INFERNO_CONFIG="").stdout)

    def test_config_shows_what_a_command_line_would_use(self):
        self.write('temperature = 0.7\n[serve]\nport = 8080\n[model."qwen3"]\ntemperature = 0.6\n')
        shown = self.settings("serve", "qwen3:8b", "--host", "::1", INFERNO_ARG_TOP_K="5", INFERNO_API_KEY="secret")
        self.assertEqual(shown["--temperature"], ("0.6", f"{self.file}:5"))
        self.assertEqual(shown["--port"], ("8080", f"{self.file}:3"))
        self.assertEqual(shown["--host"], ("::1", "flag"))
        self.assertEqual(shown["--top-k"], ("5", "INFERNO_ARG_TOP_K"))
        self.assertEqual(shown["--api-key"], ("(not shown)", "INFERNO_API_KEY"))
        self.assertEqual(shown["--parallel"][1] if "--parallel" in shown else shown["--np"][1], "default")
        self.assertIn("did you mean serve?", self.run_program("config", "srve", code=2).stderr)

    # What is refused.

    def refused(self, text, *wanted, command=("config",), code=2):
        self.write(text)
        err = self.run_program(*command, code=code).stderr
        for words in wanted:
            self.assertIn(words, err)
        return err

    def test_errors_name_file_line_and_column(self):
        for command in (("config",), ("config", "--check"), ("list",), ("generate", "Once")):
            self.refused("a = 1\n", f"error: {self.file}:1:1: unknown option", command=command)
        self.refused("\n[serve]\nprt = 1", f"{self.file}:3:1: unknown option \"prt\"", "why: did you mean port?", "next: inferno help serve")
        self.refused("temperature = \n", f"{self.file}:1:15: expected a value")
        self.refused("temperature = 'hot'\n", f"{self.file}:1:15: ", "temperature")
        self.refused("[serve]\nport = 99999999\n", f"{self.file}:2:8: ", "port")
        self.refused("[bench]\noutput = 'table'\n", f"{self.file}:2:10: --output: expected md, json or csv")
        self.refused("[serve]\nhost = true\n", "expected a number or a text in quotes")
        self.refused("model = 'a'\n[model.a]\ntemperature = 1\n", "defined twice")
        self.refused("[aliases]\nmine = 'no such thing'\n", f"{self.file}:2:8: ")
        self.refused("[serve]\napi-key = 'secret'\n", "does not belong in this file")
        self.refused(b"x = '\x1b[31m\xff'", f"{self.file}:1:6: control character")
        self.refused("#" * (1 << 20) + "\n", "larger than 1 MiB")
        err = self.run_program("list", code=2, INFERNO_CONFIG="", INFERNO_ARG_SORT="colour").stderr
        self.assertIn("INFERNO_ARG_SORT: ", err)

    def test_an_error_elsewhere_in_the_file_does_not_stop_help_and_completion(self):
        self.write("nonsense\n")
        for command in (("--help",), ("--version",), ("help", "serve"), ("serve", "--help"), ("completion", "bash")):
            self.run_program(*command)
        self.write("[serve]\nport = 99999999\n")  # a value of another command
        self.run_program("list")

    def test_a_file_that_others_can_write_to_is_refused(self):
        for mode in (0o666, 0o664, 0o646):
            self.write("temperature = 0.5\n", mode=mode)
            err = self.run_program("list", code=6).stderr
            self.assertIn("other users can write to the configuration", err)
            self.assertIn(f"next: chmod go-w {self.file}", err)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a file away")
    def test_a_file_of_another_user_is_refused_unless_it_was_chosen(self):
        self.write("temperature = 0.5\n")
        os.chown(self.file, 65534, 65534)
        self.assertIn("belongs to another user", self.run_program("list", code=6).stderr)
        self.run_program("list", INFERNO_CONFIG=str(self.file))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
