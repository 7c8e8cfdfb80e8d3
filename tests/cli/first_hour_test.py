"""The first hour of a new user, in tmux at 80 and 50 columns: first_hour_test.py INFERNO [--rewrite]

Each step types something, waits for what must come and compares the whole screen with the one in screens/COLUMNS.txt; --rewrite
rewrites these files. The model, the hub and its faults are local."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hub")]
import models  # noqa: E402
from faults import Fault  # noqa: E402
from hub import Hub  # noqa: E402
from scene import model_files  # noqa: E402
from screens import StoredScreens, cut, masked, without_answers, wrapped  # noqa: E402
from tmux import TmuxScreen  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
REWRITES = "--rewrite" in sys.argv
sys.argv = [argument for argument in sys.argv if argument != "--rewrite"]
PLAIN_STORY = ("--temperature", "0", "-n", "40", "--no-stats", "--device", "cpu")
LETTER = str(json.loads((models.LLAMA / "tokenizer.json").read_text())["model"]["vocab"]["a"])


@unittest.skipUnless(shutil.which("tmux") or os.environ.get("CI"), "tmux is not installed")
class FirstHour(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="first-hour-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        models.chat_model(self.folder / "models/chatty")
        models.chat_model(self.folder / "models/endless", models.ENDLESS)
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.hub.add("org/model").commit(model_files(8))
        foreign = model_files(1)
        foreign["config.json"] = foreign["config.json"].replace(b'"llama"', b'"gemma3"')
        self.hub.add("org/gemma").commit(foreign)
        self.hub.add("openai-community/gpt2").commit(model_files(1))  # what the alias gpt2 means
        (self.folder / "bin").mkdir()
        (self.folder / "bin/inferno").symlink_to(PROGRAM)
        self.environment = self.make_environment()

    def make_environment(self):
        kept = {key: value for key, value in os.environ.items() if key in ("LD_LIBRARY_PATH", "ASAN_OPTIONS")}
        return {**kept, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "TERM": "xterm-256color",
                "LANG": "C.UTF-8", "INFERNO_MODELS": str(self.folder / "models"), "HF_ENDPOINT": self.hub.url,
                "EDITOR": f"sh {self.folder}/editor"}

    def output(self, *arguments, text=None):
        """What a command writes without a terminal."""
        return subprocess.run([PROGRAM, *arguments], input=text, env=self.environment, capture_output=True, text=True, timeout=300,
                              check=True, cwd=self.folder).stdout

    def rows_end_with(self, screen, rows):
        """The last rows of the screen are exactly these."""
        screen.until(lambda: screen.rows_shown()[-len(rows):] == rows, "\n".join(rows) + "\n")

    def open(self, columns):
        screen = TmuxScreen(self.folder, columns, self.environment)
        self.addCleanup(screen.close)
        screen.type(f"cd {self.folder}")
        screen.key("Enter")
        return screen

    def command(self, screen, line, pattern, code=0, answers=False, is_stored=True):
        """Runs a command in the shell; the pattern and the exit code must come."""
        self.start(screen, f"{line}; echo code=$?")
        found = screen.shows(pattern)
        screen.shows(rf"^code={code}$")
        if is_stored:
            self.compare(screen, line, "" if answers else None)
        return found

    @staticmethod
    def start(screen, line):
        screen.clear_history()
        screen.type(f"clear; {line}")
        screen.key("Enter")

    def entry(self, screen, line, pattern, answers=None, is_exact=False):
        """Sends an entry in play on an empty screen; the pattern must come, and a new prompt. An answer follows the row `answers`, or
        the entry if that is True; `is_exact`: the model is known to write as many tokens."""
        screen.key("C-l")
        screen.until(lambda: screen.visible() == ">>>", "an empty screen")
        screen.clear_history()
        screen.type(line)
        screen.key("Enter")
        screen.shows(pattern)
        screen.shows(r"^>>> *$")
        self.compare(screen, line, cut(">>> " + line, self.columns)[-1] if answers is True else answers, is_exact)

    def compare(self, screen, name, beginning=None, is_exact=False):
        """With the stored screen of this name, apart from the answer that follows the row `beginning`."""
        def look():
            text = masked(screen.text(), self.columns, is_exact)
            return text if beginning is None else without_answers(text, beginning)
        self.screens.compare(name, look)

    def look_around(self, screen):
        self.command(screen, "inferno", r"Start with: inferno play")
        self.command(screen, "inferno -V", r"^inferno \d+\.\d+\.\d+ \(", is_stored=False)
        self.command(screen, "inferno paly", r'unknown command "paly"\n(.*\n)?.*did you mean play\?', 2)
        self.command(screen, "inferno help play", r"--on-full")
        self.command(screen, "inferno ls --sort size", r"builtin")
        self.command(screen, "inferno generate -q -n 3 hi", r"^code=0", answers=True)
        self.command(screen, "echo a text | inferno generate -q -n 3 'Summarize:'", r"^code=0", answers=True)
        self.command(screen, "inferno generate Once upon", r"unexpected argument: upon", 2)
        self.command(screen, "inferno rm builtin", r"part of the program", 2)
        self.command(screen, "inferno generate -q -m llama hi", r"choose one of these: llama3", 3)

    def talk(self, screen):
        self.play(screen, "inferno run builtin --temperature 0 -n 40")
        self.entry(screen, "Tell me a story.", r"context: \d+ of\s+2,048", answers=True)
        self.entry(screen, "/nonsense", r"error: /nonsense: not a command")
        self.entry(screen, "/clear all of it", r"error: /clear: takes no arguments")
        self.entry(screen, "/save ~/talk.json", r"wrote 1 turn to ~/talk\.json")
        self.entry(screen, "/save ~/bin/inferno", r"the file exists and is not a conversation")
        self.entry(screen, "/clear", r"started a new conversation")
        self.entry(screen, "/open ~/talk.json", r"opened 1 turn")
        self.entry(screen, "And then?", r"(?s)And then\?.*context: \d+", answers=True)
        self.entry(screen, "/undo", r"undone, 1 turn left")
        self.entry(screen, "/regen", r"(?s)/regen.*context: \d+", answers=True)
        self.entry(screen, "/context", r"turns     1, of which the model sees 1")
        self.entry(screen, "/show", r"path      part of the program")
        self.entry(screen, "/set reasoning off", r"reasoning is hidden")
        screen.type("abc")
        screen.key("M-d")
        screen.shows(r"^>>> abc$")
        screen.key("C-c")
        screen.shows(r"abc\^C\n>>> *$")
        screen.key("C-c")
        screen.shows(r"to exit, type /exit")
        self.compare(screen, "Ctrl-C with a line, and without one")
        screen.tmux("set-buffer", "a long paste " * 60)
        screen.tmux("paste-buffer", "-p")
        screen.shows(r"paste a long paste")
        self.compare(screen, "a long paste")
        screen.key("C-u")
        screen.shows(r"^>>> *$")
        self.leave(screen, "/bye")

    def play(self, screen, line):
        """Starts a conversation."""
        self.start(screen, line)
        screen.shows(r"^>>> *$")
        self.compare(screen, line)

    def leave(self, screen, line="/exit"):
        screen.type(line)
        screen.key("Enter")
        screen.shows(r"^\$$")

    def write_and_edit(self, screen):
        columns = self.columns
        (self.folder / "notes.txt").write_text("milk\nbread\n")
        (self.folder / "editor").write_text('printf "edited message\\n" > "$1"\n')
        story = self.output("play", "builtin", *PLAIN_STORY, text="Tell me a story.\n")
        self.play(screen, f"inferno play builtin {' '.join(PLAIN_STORY)}")
        self.entry(screen, "/clear", r"started a new conversation")
        screen.type("Tell me a story.")
        screen.key("Enter")
        self.rows_end_with(screen, [">>> Tell me a story.", *wrapped(story.rstrip("\n"), columns), ">>>"])  # words are whole
        draft = "".join(f"part{number:02}." for number in range(24))
        screen.type(draft)
        for width in (columns, 130 - columns, columns):  # 80, 50, 80
            screen.resize(width)
            self.rows_end_with(screen, cut(">>> " + draft, width))
            screen.until(lambda: screen.captured().count("part00") == 1, "one draft")
        screen.key("C-u", "C-l")
        screen.shows(r"^>>> *$")
        screen.type("/o")
        screen.key("Tab")
        screen.type("no")
        screen.key("Tab")
        screen.shows(r"^>>> /open notes\.txt$")
        screen.key("C-u")
        screen.type("/c")
        screen.key("Tab", "Tab")
        self.rows_end_with(screen, [">>> /c", "/clear    /context  /copy", ">>> /c"])
        screen.clear_history()
        self.compare(screen, "Tab completes, twice lists")
        screen.key("C-u", "C-r")
        screen.type("story")
        self.rows_end_with(screen, ["(reverse-i-search)`story': Tell me a story."])
        screen.key("C-g")
        screen.shows(r"^>>> *$")
        attached = r"attached notes\.txt: 2 lines, 11 bytes"
        self.entry(screen, "Sum up @notes.txt", attached, answers="attached notes.txt: 2 lines, 11 bytes")
        self.entry(screen, "/edit", r"^edited message$", answers="edited message")
        self.entry(screen, "look at @nothing.txt", r"error: @nothing\.txt: no such file")
        self.leave(screen, "/bye")

    def fill_the_context(self, screen):
        self.play(screen, f"inferno chat chatty --temperature 0 -n 40 -c 256 --device cpu --logit-bias {LETTER}=100")
        for number in range(1, 4):
            self.entry(screen, f"message {number}", rf"(?s)message {number}.*; context: \d+ of\s+256", is_exact=True)
        screen.shows(r"the conversation takes")
        self.entry(screen, "message 4", r"(?s)context full: dropped the oldest.*; context: \d+ of\s+256", is_exact=True)
        screen.key("C-d")
        screen.shows(r"^\$$")

    def interrupt(self, screen):
        """Ctrl-C stops an answer that would not end; what was written stays, and the conversation goes on."""
        self.play(screen, f"inferno play endless --temperature 0 --device cpu --logit-bias {LETTER}=100")
        screen.type("go on")
        screen.key("Enter")
        screen.shows(r"^aaa")
        screen.key("C-c")
        screen.shows(r"; stopped$")
        screen.shows(r"^>>> *$")
        self.compare(screen, "Ctrl-C during an answer", ">>> go on")
        self.entry(screen, "/context", r"turns     1, of which the model sees 1")
        self.leave(screen)

    def download(self, screen):
        self.command(screen, "inferno search org --fits", r"org/model")
        self.assertNotIn("org/gemma", screen.text())
        self.command(screen, "inferno download org/gemma </dev/null", r'"gemma3" is not', 4)
        self.hub.faults.append(Fault(at="hub", path="/tree/", status=429, headers={"Retry-After": "1"}, times=1))
        slow = Fault(rate=3e6)
        self.hub.faults.append(slow)
        self.start(screen, "inferno pull org/model; echo code=$?")
        screen.shows(r"waiting 1 s, try 2 of 8:\s127\.0\.0\.1:\d+: asks")
        screen.shows(r"(safetensors|\.\.\.).* [1-9]\d? %")
        progress = [line for line in screen.tmux("capture-pane", "-p").splitlines() if " % " in line]
        self.assertTrue(progress and all(re.search(r" \d+ % .* ([kM]?B|s|left|writing)$", line.rstrip()) for line in progress), progress)
        screen.type("typed")  # must leave nothing on the screen
        screen.key("Enter")
        screen.key("C-c")
        stopped = screen.shows(r"stopped at (\d+) %; run the same command to resume")
        self.assertGreater(int(stopped[1]), 0)
        screen.shows("^code=130$")
        self.compare(screen, "Ctrl-C during a download")
        self.hub.faults.remove(slow)
        self.command(screen, "inferno generate -m org/model hi </dev/null", r"org/model: incomplete", 3)
        self.command(screen, "inferno pull org/model", r"(?s)already downloaded.*now: inferno play org/model")
        self.command(screen, "inferno generate -q -n 2 --device cpu -m org/model hi", r"^code=0", answers=True)

    def other_sources(self, screen):
        self.command(screen, "inferno pull gpt2", r"(?s)now: inferno play")  # an alias
        self.command(screen, "inferno generate -q -n 2 --device cpu -m gpt2 hi", r"^code=0", answers=True)
        self.put_into_ollama()
        self.command(screen, "inferno ls", r"tiny:latest")
        self.command(screen, "inferno generate -q -n 2 --device cpu -m tiny hi", r"^code=0", answers=True)  # without its tag
        self.play(screen, "inferno play tiny -n 4 --temperature 0 --device cpu")
        self.entry(screen, "hello", r"context: \d+ of", answers=True)
        screen.key("C-d")
        screen.shows(r"^\$$")
        self.command(screen, "printf '/foo\\n' | inferno play builtin", r"not a command", 2)
        self.command(screen, "inferno rm org/model --yes", r"^code=0")

    def configure(self, screen):
        """A file of settings: one for every command, one for a model, and a name of the user's own."""
        file = self.folder / ".config/inferno/config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'device = "cpu"\nmax-tokens = 5\nlogit-bias = "{LETTER}=100"\n\n[model.chatty]\nmax-tokens = 3\n\n'
                        '[aliases]\nmine = "openai-community/gpt2"\n')
        self.command(screen, "inferno config", r"\[aliases\] mine")
        self.command(screen, "inferno generate -q --raw -m mine hi", r"^aaaaa$")           # the alias, and the value for every command
        self.play(screen, "inferno play chatty")
        self.entry(screen, "hello", r"^aaa$", is_exact=True)                               # the model's own value
        self.leave(screen)
        self.command(screen, "inferno generate -q --raw -n 2 -m chatty hi", r"^aa$")       # a flag comes before both
        file.write_text("max-token = 5\n")
        self.command(screen, "inferno generate -q hi", r"did you mean", 2)

    def put_into_ollama(self):
        """A GGUF file as `ollama pull tiny` leaves it."""
        self.output("convert", str(models.LLAMA), "-o", str(self.folder / "tiny.gguf"), "--type", "q8_0")
        digest = hashlib.sha256((self.folder / "tiny.gguf").read_bytes()).hexdigest()
        store = self.folder / ".ollama/models"
        (store / "blobs").mkdir(parents=True)
        (self.folder / "tiny.gguf").rename(store / f"blobs/sha256-{digest}")
        manifest = store / "manifests/registry.ollama.ai/library/tiny/latest"
        manifest.parent.mkdir(parents=True)
        layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}",
                 "size": (store / f"blobs/sha256-{digest}").stat().st_size}
        manifest.write_text(json.dumps({"layers": [layer]}))

    def run_at(self, columns):
        self.columns, self.screens = columns, StoredScreens(HERE / f"screens/{columns}.txt", REWRITES)
        screen = self.open(columns)
        self.look_around(screen)
        self.talk(screen)
        self.write_and_edit(screen)
        self.fill_the_context(screen)
        self.interrupt(screen)
        self.download(screen)
        self.other_sources(screen)
        self.configure(screen)
        self.screens.finish()

    def test_at_80_columns(self):
        self.run_at(80)

    def test_at_50_columns(self):
        self.run_at(50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
