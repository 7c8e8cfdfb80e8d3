"""The first look: the program without a command, its help, its messages, and streams that nobody reads: first_look_test.py INFERNO"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402
from terminal import Terminal  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
GREEDY = ("--temperature", "0", "--device", "cpu")


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}
    return {**kept, "HOME": "/nonexistent", "TERM": "xterm", **more}


class FirstLook(unittest.TestCase):
    """The program without a command, its version, and second names of commands."""

    def shown(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, env=environment(), timeout=60)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout.decode()

    def test_commands_are_grouped_and_the_next_step_is_named(self):
        for arguments in ((), ("help",), ("--help",), ("-h",)):
            text = self.shown(*arguments)
            self.assertRegex(text, r"(?s)\nTalk\n  play .*\nFind models\n  search .*\nServe\n.*\nMeasure\n.*\nTools\n.*\nExamples\n")
            self.assertIn("Start with: inferno play", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
        narrow = Terminal([PROGRAM], environment(), columns=50)
        self.addCleanup(narrow.close)
        narrow.wait_for(r"Options of a[\s\S]*COMMAND")
        self.assertLessEqual(max(map(len, narrow.screen.text().splitlines())), 50)

    def test_help_fits_the_screen_and_is_in_plain_words(self):
        names = re.findall(r"^  (\w+) ", self.shown().split("Examples")[0], re.MULTILINE)
        self.assertGreater(len(names), 18)
        for name in names:
            page = self.shown(name, "--help")
            self.assertLessEqual(max(map(len, page.splitlines())), 80, page)
            for raw in ("{false}", "TEXT ...", "INT", "=[", "Excludes:", "Positionals"):
                self.assertNotIn(raw, page, name)

    def test_unknown_commands_have_no_help(self):
        for words in (("paly",), ("help", "paly"), ("paly", "--help")):
            done = subprocess.run([PROGRAM, *words], capture_output=True, env=environment(), timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertEqual(done.stderr, b'error: unknown command "paly"\nwhy:   did you mean play?\nnext:  inferno help\n')

    def test_arguments_of_other_programs_lead_to_ours(self):
        for words, message in ((("generate", "-n", "abc", "hi"), r'error: -n, --max-tokens: expected .*"abc"\nnext:  inferno generate --help'),
                               (("generate", "hi", "-ngl", "99"), r"did you mean --device\?"),
                               (("generate", "hi", "--json-schema", "{}"), r"did you mean --schema\?"),
                               (("doctor", "--device", "foo"), r'--device: expected auto, cpu, cuda or cuda:N, found "foo"'),
                               (("bench", "--plot", "x.png"), r"--plot: expected the name of an \.svg file.*x\.png"),
                               (("generate", "--think=maybe", "hi"), r'--think: expected true or false, found "maybe"\nnext:  inferno generate --help'),
                               (("generate", "--quantize", "q9", "hi"), r'--quantize "q9": expected .*\nnext:  inferno generate --help'),
                               (("play", "builtin", "What", "is", "Inferno?"), r"unexpected arguments: is Inferno\?\nwhy:   PROMPT is one argument: quote")):
            done = subprocess.run([PROGRAM, *words], capture_output=True, env=environment(), timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr.decode(), message)
            self.assertLessEqual(len(done.stderr.splitlines()), 3)

    def test_errors_about_files_and_devices_name_the_next_step(self):
        for words, following in ((("generate", "-f", "nofile"), "check the path, which is relative to the current folder"),
                                 (("serve", "builtin", "--api-key-file", "/nofile"), "check the path"),
                                 (("generate", "-o", "/", "hi"), "choose another file, or check the folder and its permissions"),
                                 (("generate", "--device", "tpu", "hi"), "inferno doctor shows the devices of this machine"),
                                 (("generate",), "pass it as an argument, with -p TEXT, with -f FILE, or on standard input"),
                                 (("tokenize", models.ROOT / "README.md", "hi"), "pass a model's name or folder, a .gguf file or a tokenizer.json"),
                                 (("template", "builtin", "--messages", models.ROOT / "README.md"),
                                  'pass JSON with --messages, such as [{"role": "user", "content": "Hello"}]')):
            done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, env=environment(), timeout=60, stdin=subprocess.DEVNULL)
            self.assertNotEqual(done.returncode, 0)
            self.assertTrue(done.stderr.decode().endswith(f"\nnext:  {following}\n"), done.stderr)

    def test_no_message_is_longer_than_three_lines(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for number in range(12):
                models.completion_model(folder / f"models/model-{number}")
            (folder / "broken").mkdir()
            (folder / "broken/config.json").write_text('{"model_type": "llama", "hidden_size": 7}')
            lost = models.completion_model(folder / "lost")
            config = json.loads((lost / "config.json").read_text())
            (lost / "config.json").unlink()
            (lost / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 40}))
            (folder / "bad.gguf").write_bytes(b"GGUF" + bytes(range(64)))
            (folder / "long.toml").write_text("x = 1\n")
            (folder / "schema.json").write_text('{"type": ' + "[" * 300)
            cases = [("generate", "hi", "-m", one) for one in ("nothing", "qwen", "llama", "org/name:Q9", "model", "a/b/c", folder / "broken", lost,
                                                                folder / "bad.gguf", "/", "x" * 500, folder / "models")]
            cases += [("inspect", lost), ("plan", lost), ("bench", lost), ("serve", lost, "--port", "0"), ("verify", "nothing"), ("rm", "nothing"),
                      ("play", lost), ("play", "nothing"), ("generate", "--schema", folder / "schema.json", "hi"), ("generate", *("a " * 200).split()),
                      ("generate", "--top-p", "9" * 400, "hi"), ("generate", "--grammar", "/nonexistent", "hi"), ("convert", lost, "-o", "x.gguf"),
                      ("detokenize", "builtin", "x" * 400), ("tokenize", "builtin", "--unknown"), ("frobnicate",), ("perplexity", "builtin", "/nonexistent"),
                      ("logits", lost, "--tokens", "1", "-o", "x"), ("config", "--unknown"), ("doctor", "--device", "x" * 300)]
            places = {"INFERNO_MODELS": str(folder / "models"), "HF_ENDPOINT": "http://127.0.0.1:9", "INFERNO_HUB_TIME_SCALE": "0.01"}
            for words in cases:
                done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, env=environment(**places), timeout=120, stdin=subprocess.DEVNULL)
                text = done.stderr.decode()
                said = text[text.index("error: "):].splitlines()  # after notes about the device
                self.assertNotIn(done.returncode, (0, 1), text)
                self.assertLessEqual(len(said), 3, text)
                self.assertLessEqual(max(map(len, said)), 3 * 80 + 20, text)
            many = subprocess.run([PROGRAM, "generate", "-m", "modle", "hi"], capture_output=True, env=environment(**places), stdin=subprocess.DEVNULL)
            self.assertRegex(many.stderr.decode(), r"models here: (model-\d+, ){4}model-\d+ and 8 more \(inferno list\)\n")
            brief, full = (subprocess.run([PROGRAM, "generate", "-m", str(lost), "hi", *more], capture_output=True, env=environment(),
                                          stdin=subprocess.DEVNULL).stderr.decode() for more in ((), ("--verbose",)))
            self.assertIn("more characters", brief)
            self.assertNotIn("more characters", full)
            self.assertGreater(len(full), len(brief))

    def test_a_path_that_is_no_model_is_refused_as_such(self):
        for path in (models.ROOT / "README.md", models.LLAMA / "config.json", models.ROOT / "docs"):
            for words in (("generate", "-q", "-m", path, "hi"), ("play", path), ("serve", path, "--port", "0")):
                done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, env=environment(), timeout=60, stdin=subprocess.DEVNULL)
                self.assertIn(done.returncode, (3, 4), words)
                self.assertIn(f"error: {path}: expected a model directory", done.stderr.decode())

    def test_the_version_names_the_build_and_the_backends(self):
        for option in ("-V", "--version"):
            self.assertRegex(self.shown(option), r"^inferno \d+\.\d+\.\d+ \((commit [0-9a-f]+, )?\w+, .+\); backends: cpu")

    def test_other_names_mean_the_same_commands(self):
        for name, own in (("run", "play"), ("chat", "play"), ("pull", "download"), ("ls", "list"), ("show", "inspect")):
            # The name is part of the usage line.
            self.assertEqual(self.shown(name, "--help").replace(f"inferno {name}", f"inferno {own}"), self.shown(own, "--help"))
            self.assertEqual(self.shown("help", own), self.shown(own, "--help"))

    def test_notes_that_cannot_be_written_do_not_end_a_command(self):
        with tempfile.TemporaryDirectory() as folder:
            for arguments in (("generate", "Once", "-n", "2", "--verbose"), ("convert", "builtin", "-o", f"{folder}/x.gguf"), ("list",),
                              ("logits", "builtin", "--tokens", "1", "-o", f"{folder}/x.safetensors"), ("doctor", "--verbose"),
                              ("bench", "-p", "0", "-n", "1", "-r", "1"), ("perplexity", "builtin", f"{folder}/text", "--window", "16"),
                              ("verify",), ("play", "builtin", "-n", "2", "--verbose")):
                pathlib.Path(folder, "text").write_text("Once upon a time there was a text. " * 8)
                closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" 2>&- </dev/null', PROGRAM, *arguments, *(("--force",) if arguments[0] == "convert" else ())],
                                        stdout=subprocess.PIPE, env=environment(XDG_CACHE_HOME=folder), timeout=120)
                self.assertEqual(closed.returncode, 0, arguments)
                pathlib.Path(folder, "x.gguf").unlink(missing_ok=True)
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=full, stdin=subprocess.DEVNULL,
                                          env=environment(XDG_CACHE_HOME=folder), timeout=120)
                self.assertEqual(done.returncode, 0, arguments)

    def test_a_conversation_goes_on_without_notes(self):
        words = [PROGRAM, "play", "builtin", "-n", "4", *GREEDY]
        wanted = subprocess.run(words, input=b"Hello\n/nonsense\nAgain\n", capture_output=True, env=environment(), timeout=120)
        self.assertIn(b"not a command", wanted.stderr)
        for stderr in ("2>&-", "2>/dev/full"):
            done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {stderr}', *words], input=b"Hello\n/nonsense\nAgain\n", stdout=subprocess.PIPE,
                                  env=environment(), timeout=120)
            self.assertEqual((done.returncode, done.stdout), (wanted.returncode, wanted.stdout), stderr)

    def test_a_server_serves_without_a_log(self):
        for stderr in ("2>&-", "2>/dev/full"):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            server = subprocess.Popen(["sh", "-c", f'exec "$0" "$@" {stderr}', PROGRAM, "serve", "builtin", "--port", str(port), "--device", "cpu"],
                                      stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment())
            try:
                address, end = f"http://127.0.0.1:{port}/health", time.monotonic() + 60
                while True:
                    try:
                        self.assertEqual(urllib.request.urlopen(address, timeout=10).status, 200)
                        break
                    except OSError:
                        self.assertIsNone(server.poll(), stderr)
                        self.assertLess(time.monotonic(), end)
                        time.sleep(0.1)
                server.terminate()
                self.assertEqual(server.wait(30), 0, stderr)
            finally:
                server.kill()
                server.wait()

    def test_convert_tells_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "convert", models.LLAMA, "-o", f"{folder}/x.gguf"], capture_output=True, env=environment(), timeout=120)
            self.assertIn("\n100 %\n", "\n" + done.stderr.decode())

    def test_inspect_is_a_screenful_unless_tensors_are_wanted(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        noted = models.completion_model(pathlib.Path(folder.name) / "noted")
        config = json.loads((noted / "config.json").read_text())
        (noted / "config.json").unlink()
        (noted / "config.json").write_text(json.dumps({**config, **{f"colour_{number}": 1 for number in range(8)}}))
        for model in (*models.LLAMA.parent.iterdir(), *(models.ROOT / "tests/data/gguf").glob("*.gguf"), "builtin", noted):
            short, full = self.shown("inspect", model), self.shown("inspect", model, "--tensors")
            self.assertLess(len(short.splitlines()), 20, short)  # a terminal also gets a line about --tensors
            self.assertIn("total, full context", short)
            self.assertRegex(short, r"(?m)^\d+ tensors: (\w+ [\d.]+ [kM]?B(, )?)+$")
            self.assertNotRegex(short, r"embed|wte|token_embd")
            self.assertRegex(full, r"embed|wte|token_embd")
            self.assertRegex(full, "hidden_size|n_embd|embedding_length")
        self.assertIn("note: 7 more notes with --tensors\n", self.shown("inspect", noted))
        self.assertIn('"colour_7" ignored', self.shown("inspect", noted, "--tensors"))


if __name__ == "__main__":
    unittest.main()
