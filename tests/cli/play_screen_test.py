"""inferno play on real screens: resizing, word wrap, completion, search, an editor and files: play_screen_test.py INFERNO"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402
from terminal import Terminal  # noqa: E402
from tmux import TmuxScreen  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
LETTER = str(json.loads((models.LLAMA / "tokenizer.json").read_text())["model"]["vocab"]["a"])
SHORT = ("--temperature", "0", "--max-tokens", "4", "--logit-bias", f"{LETTER}=100", "--device", "cpu")
STORY = ("builtin", "--temperature", "0", "--max-tokens", "60", "--no-stats", "--device", "cpu")
CONTROL_R, CONTROL_G, ESCAPE = "\x12", "\x07", "\x1b"


class Scene(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.chat = models.chat_model(self.path / "models/chatty")

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}
        return {**kept, "HOME": str(self.path), "TERM": "xterm-256color", "LANG": "C.UTF-8", "TMPDIR": str(self.path / "tmp"),
                "INFERNO_MODELS": str(self.path / "models"), **more}

    def play(self, *arguments, columns=120, **more):
        (self.path / "tmp").mkdir(exist_ok=True)
        terminal = Terminal([PROGRAM, "play", *map(str, arguments)], self.environment(**more), columns, 50, cwd=self.path)
        self.addCleanup(terminal.close)
        terminal.wait_for(r"^>>> $", 60)
        return terminal

    def questions(self, terminal):
        terminal.send("/save talk.json\r")
        terminal.wait_for(r"wrote \d+ turns? to talk.json")
        messages = json.loads((self.path / "talk.json").read_text())["messages"]
        return [message["content"] for message in messages if message["role"] == "user"]


@unittest.skipUnless(shutil.which("tmux") or os.environ.get("CI"), "tmux is not installed")
class Resizing(Scene):
    def rows_of_entry(self, text, columns):
        whole = ">>> " + text
        return [whole[at:at + columns] for at in range(0, len(whole), columns)]

    def assert_entry(self, screen, text, columns):
        """The entry in its rows, and nothing of it anywhere else."""
        expected = self.rows_of_entry(text, columns)
        def found():
            rows = screen.rows_shown()
            return rows[-len(expected):] == expected and "\n".join(rows).count("word000") == 1
        screen.until(found, f"at {columns} columns only\n" + "\n".join(expected) + "\n")

    def test_an_entry_is_redrawn_without_ghosts(self):
        screen = TmuxScreen(self.path, 80, self.environment())
        self.addCleanup(screen.close)
        screen.type(f"clear; {PROGRAM} play {self.chat} {' '.join(SHORT)}")
        screen.key("Enter")
        screen.shows(r"^>>> *$")
        # A screen without free rows, as after some minutes of use.
        for command in ("/help", "/set"):
            screen.type(command)
            screen.key("Enter")
            screen.shows(r"(?s)" + command + r"\n.*^>>> *$")
        text = "".join(f"word{number:03}." for number in range(31))
        screen.type(text)
        for columns in (80, 50, 80, 31, 120, 80):
            screen.resize(columns)
            self.assert_entry(screen, text, columns)
        screen.key("Home")
        screen.key("x")
        self.assert_entry(screen, "x" + text, 80)
        screen.resize(50)
        self.assert_entry(screen, "x" + text, 50)


class Wrapping(Scene):
    def story(self, *options, columns):
        terminal = self.play(*STORY, *options, columns=columns, NO_COLOR="1")
        terminal.send("Tell me a story.\r")
        terminal.wait_for(r"story\.\n(?s:.+)\n>>> $", 60)
        shown = terminal.screen.text()
        return shown[shown.index("story.\n") + len("story.\n"):shown.rindex("\n>>> ")]

    def piped(self):
        return subprocess.run([PROGRAM, "play", *STORY], input=b"Tell me a story.\n", capture_output=True, timeout=120, env=self.environment(),
                              check=True).stdout.decode().rstrip("\n")

    def test_lines_break_between_words_on_a_terminal_and_nowhere_in_a_pipe(self):
        piped = self.piped()
        self.assertGreater(max(map(len, piped.split("\n"))), 60)
        shown = self.story(columns=40)
        self.assertLessEqual(max(map(len, shown.split("\n"))), 40)
        self.assertEqual(shown.split(), piped.split())
        self.assertEqual(self.story("--plain", columns=40), piped)

    def test_help_and_notes_break_between_words(self):
        terminal = self.play(self.chat, *SHORT, columns=50)
        terminal.send("/help\r")
        terminal.wait_for(r"Ctrl-D\n +exit")
        for line in terminal.screen.text().split("\n"):
            self.assertLessEqual(len(line), 50)
        self.assertIn("\n      set the system prompt and start a new\n      conversation; without TEXT: show it\n", terminal.screen.text())


class Completing(Scene):
    def test_tab_completes_commands_files_and_models_and_twice_lists(self):
        for name in ("tale.md", "talk.json", "with space"):
            (self.path / name).write_text("{}")
        models.completion_model(self.path / "models/plain")
        terminal = self.play(self.chat, *SHORT)
        terminal.send("/o\t")
        terminal.wait_for(r"^>>> /open $")
        terminal.send("ta\t")
        terminal.wait_for(r"^>>> /open tal$")
        terminal.send("\t")
        terminal.wait_for(r"^tale\.md +talk\.json\n>>> /open tal$")
        terminal.send("k\t")
        terminal.wait_for(r"^>>> /open talk\.json$")
        terminal.send("\x15/save ta\t\t!")  # which would be replaced
        terminal.wait_for(r"^>>> /save ta!$")
        terminal.send("\x15/load ch\t")
        terminal.wait_for(r"^>>> /load chatty$")
        terminal.send("\x15/load \t\t")
        terminal.wait_for(r"^builtin +chatty +plain\n>>> /load $")
        terminal.send("\x15see @wi\t")
        terminal.wait_for(r'^>>> see @"with space" $')
        terminal.send("\x15a\tb")
        terminal.wait_for(r"^>>> a    b$")  # a tab in a text is a tab


class Searching(Scene):
    def test_control_r_searches_the_history(self):
        terminal = self.play(self.chat, *SHORT)
        for number, entry in enumerate(("tell a story", "what is a cat?", "tell me more")):
            terminal.send(entry + "\r")
            terminal.wait_for(rf"(?:tokens/s[\s\S]*){{{number + 1}}}^>>> $")
        terminal.send("draft" + CONTROL_R)
        terminal.wait_for(r"^\(reverse-i-search\)`': draft$")
        terminal.send("tell")
        terminal.wait_for(r"^\(reverse-i-search\)`tell': tell me more$")
        terminal.send(CONTROL_R)
        terminal.wait_for(r"^\(reverse-i-search\)`tell': tell a story$")
        terminal.send("x")
        terminal.wait_for(r"^\(failed reverse-i-search\)`tellx': tell a story$")
        terminal.send(CONTROL_G)
        terminal.wait_for(r"^>>> draft$")
        terminal.send(CONTROL_R + "cat" + ESCAPE)
        terminal.wait_for(r"^>>> what is a cat\?$")
        terminal.send("\x05!" + CONTROL_R + "tell a")
        terminal.wait_for(r"^\(reverse-i-search\)`tell a': tell a story$")
        terminal.send("\r")
        terminal.wait_for(r"(?:tokens/s[\s\S]*){4}^>>> $")
        self.assertEqual(self.questions(terminal)[-1], "tell a story")


class Editing(Scene):
    def editor(self, script):
        path = self.path / "editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def test_edit_sends_what_the_editor_saved(self):
        editor = self.editor('stat -c "%a %n" "$1" > seen; cat "$1" >> seen; printf "two\\nlines\\n" > "$1"')
        terminal = self.play(self.chat, *SHORT, EDITOR="/nonsense", VISUAL=editor)
        terminal.send("/edit a beginning\r")
        terminal.wait_for(r"^two\nlines\n[\s\S]*tokens/s[\s\S]*^>>> $")
        self.assertEqual(self.questions(terminal), ["two\nlines"])
        self.assertRegex((self.path / "seen").read_text(), r"\A600 .*/tmp/inferno-message-.*\na beginning\n\Z")
        self.assertEqual(list((self.path / "tmp").iterdir()), [])

    def test_edit_says_why_nothing_was_sent(self):
        terminal = self.play(self.chat, *SHORT)
        terminal.send("/edit\r")
        terminal.wait_for(r"error: /edit: neither VISUAL nor EDITOR names an editor\nnext:  export EDITOR=nano")
        terminal = self.play(self.chat, *SHORT, EDITOR=self.editor("exit 3"))
        terminal.send("/edit\r")
        terminal.wait_for(r"the editor ended with exit code 3\nnext:  the message was not sent[\s\S]*>>> $")
        terminal = self.play(self.chat, *SHORT, EDITOR="true")
        terminal.send("/edit\r")
        terminal.wait_for(r"the message is empty; nothing was sent\n>>> $")
        self.assertEqual(self.questions(terminal), [])


class Attaching(Scene):
    def test_a_file_becomes_part_of_the_message(self):
        (self.path / "my notes.txt").write_text("one\ntwo\n")
        (self.path / "picture.png").write_bytes(b"\x89PNG\0\0")
        terminal = self.play(self.chat, *SHORT)
        terminal.send('Sum up @"my notes.txt" for a@b.org\r')
        terminal.wait_for(r"^attached my notes\.txt: 2 lines, 8 bytes\n[\s\S]*tokens/s[\s\S]*^>>> $")
        terminal.send("look at @picture.png\r")
        terminal.wait_for(r"error: @picture\.png: not a text file\nwhy:   it is not UTF-8\nnext:  \\@picture\.png sends it as text")
        terminal.send("look at @nothing.txt\r")
        terminal.wait_for(r"error: @nothing\.txt: no such file")
        terminal.send("\\@nothing.txt\r")
        terminal.wait_for(r"(?:tokens/s[\s\S]*){2}^>>> $")
        self.assertEqual(self.questions(terminal), ["Sum up my notes.txt for a@b.org\n\nmy notes.txt:\n```\none\ntwo\n```", "@nothing.txt"])

    def test_a_pipe_delivers_texts_only(self):
        (self.path / "notes.txt").write_text("secret")
        done = subprocess.run([PROGRAM, "play", str(self.chat), *SHORT], input=b"@notes.txt\n/save talk.json\n", capture_output=True,
                              timeout=120, env=self.environment(), cwd=self.path, check=True)
        self.assertNotIn(b"attached", done.stderr)
        self.assertEqual(json.loads((self.path / "talk.json").read_text())["messages"][0]["content"], "@notes.txt")


if __name__ == "__main__":
    unittest.main()
