"""inferno play, driven through a pseudo-terminal as a person would, and through pipes: play_test.py INFERNO"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402
from terminal import Terminal  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
STATS = r"(\d+) tokens?, [\d.-]+ tokens/s, first token after [\d.]+ m?s; prompt: (\d+) tokens?, (\d+) cached"
UP, DOWN, LEFT, RIGHT = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C"
# The tiny random model writes broken UTF-8, which comes back as U+FFFD; a letter that is forced on it comes back as it was.
LETTER = str(json.loads((models.LLAMA / "tokenizer.json").read_text())["model"]["vocab"]["a"])
LETTERS = ("--temperature", "0", "--logit-bias", f"{LETTER}=100")
SHORT = ("--temperature", "0", "--max-tokens", "4", "--ignore-eos")


class Scene(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.chat = models.chat_model(self.path / "models/chatty")
        self.terminals = []

    def tearDown(self):
        for terminal in self.terminals:
            terminal.close()
        self.folder.cleanup()

    def environment(self, **more):
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}
        return {**kept, "HOME": str(self.path), "TERM": "xterm", "XDG_STATE_HOME": str(self.path / "state"), **more}

    def play(self, *arguments, columns=200, rows=50, **more):
        terminal = Terminal([PROGRAM, "play", *map(str, arguments), "--device", "cpu"], self.environment(**more), columns, rows,
                            cwd=self.path)
        self.terminals.append(terminal)
        return terminal

    def ready(self, *arguments, **more):
        terminal = self.play(*arguments, **more)
        terminal.wait_for(r"^>>> $")
        return terminal

    def answered(self, terminal, entry):
        """Sends an entry; the three numbers of the line below the answer."""
        before = len(re.findall(STATS, terminal.screen.text()))
        terminal.send(entry)
        found = terminal.wait_for(rf"(?:{STATS}[\s\S]*){{{before + 1}}}^>>> $")
        return [int(number) for number in re.findall(STATS, found[0])[-1]]

    def piped(self, text, *arguments, code=0, preexec_fn=None, **more):
        done = subprocess.run([PROGRAM, "play", *map(str, arguments), "--device", "cpu"], input=text.encode(), timeout=120,
                              capture_output=True, env=self.environment(**more), cwd=self.path, preexec_fn=preexec_fn)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done


class Editing(Scene):
    def saved_questions(self, terminal):
        terminal.send("/save talk.json\r")
        terminal.wait_for(r"wrote \d+ turns? to talk.json")
        messages = json.loads((self.path / "talk.json").read_text())["messages"]
        return [message["content"] for message in messages if message["role"] == "user"]

    def test_a_line_is_what_the_keys_made_of_it(self):
        terminal = self.ready(self.chat, *SHORT)
        for keys in ("helo" + LEFT + "l\r",                          # insert in the middle
                     "world\x01hello \r",                            # Ctrl-A
                     "one two three\x17\x17four\r",                  # Ctrl-W twice
                     "gone\x15kept\r",                               # Ctrl-U
                     "kept gone\x01" + RIGHT * 4 + "\x0b\r",         # Ctrl-K
                     "日本x\x7f語" + LEFT * 2 + "!\x05?\r",           # wide characters, Ctrl-E
                     "cafe\u0301\x7fé\r"):                           # a combining mark goes with its letter
            self.answered(terminal, keys)
        self.assertEqual(self.saved_questions(terminal),
                         ["hello", "hello world", "one four", "kept", "kept", "日!本語?", "café"])

    def test_several_lines_come_in_quotes_or_by_paste(self):
        terminal = self.ready(self.chat, *SHORT)
        self.answered(terminal, '"""one\rtwo\r"""\r')
        terminal.send("\x1b[200~three\rfour\x1b[201~")
        terminal.wait_for(r">>> three\n\.\.\. four")
        self.answered(terminal, "\r")
        self.assertEqual(self.saved_questions(terminal), ["one\ntwo", "three\nfour"])

    def test_the_screen_shows_the_line_however_long_it_is(self):
        terminal = self.ready(self.chat, *SHORT, columns=20)
        terminal.send("abcdefghijklmnopqrstuvwxyz")
        terminal.wait_for(r">>> abcdefghijklmnop\nqrstuvwxyz$")
        terminal.send("\x01\x0b")
        terminal.wait_for(r">>> $")
        self.assertNotIn("qrstuvwxyz", terminal.screen.text())

    def test_control_l_clears_the_screen_and_keeps_the_line(self):
        terminal = self.ready(self.chat, *SHORT)
        terminal.send("half\x0c")
        terminal.wait_for(r"\A>>> half$")


class HistoryFile(Scene):
    def test_the_arrows_bring_back_earlier_entries_also_of_earlier_sessions(self):
        terminal = self.ready(self.chat, *SHORT)
        self.answered(terminal, "first\r")
        self.answered(terminal, "second\r")
        self.answered(terminal, UP + UP + "!\r")
        terminal.send("\x04")
        self.assertEqual(terminal.ended(), 0)
        self.assertEqual((self.path / "state/inferno/history").read_text(), "first\nsecond\nfirst!\n")
        self.assertEqual((self.path / "state/inferno/history").stat().st_mode & 0o777, 0o600)
        again = self.ready(self.chat, *SHORT)
        again.send("draft" + UP + UP)
        again.wait_for(r"^>>> second$")
        again.send(DOWN + DOWN)
        again.wait_for(r"^>>> draft$")


class Interrupting(Scene):

    def test_control_c_stops_the_answer_and_the_conversation_goes_on(self):
        terminal = self.ready(models.chat_model(self.path / "endless", models.ENDLESS), *LETTERS)
        terminal.send("tell me everything\r")
        terminal.wait_for(r"everything\n.{20,}")
        terminal.send("\x03")
        terminal.wait_for(STATS + r"; context: [\d,]+ of [\d,]+; stopped\n>>> $")
        terminal.send("/set max_tokens 3\r")
        written, _, cached = self.answered(terminal, "go on\r")
        self.assertEqual(written, 3)
        self.assertGreater(cached, 0)  # what was made before the interrupt is part of the conversation

    def test_control_c_at_the_prompt_drops_the_line_and_at_an_empty_one_explains(self):
        terminal = self.ready(self.chat, *SHORT)
        terminal.send("never mind\x03")
        terminal.wait_for(r"never mind\^C\n>>> $")
        self.assertNotIn("to exit", terminal.screen.text())
        terminal.send("\x03")
        terminal.wait_for(r"to exit, type /exit or press Ctrl-D\n>>> $")
        terminal.send("/exit\r")
        self.assertEqual(terminal.ended(), 0)

    def test_what_is_typed_during_an_answer_waits_for_the_prompt(self):
        terminal = self.ready(self.chat, "--temperature", "0", "--ignore-eos", "--max-tokens", "30")
        terminal.send("one\rtwo")
        terminal.wait_for(STATS + r".*\n>>> two$")

    def test_the_terminal_is_always_restored(self):
        for number, end in enumerate((b"\x04", signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV)):
            terminal = self.play(self.chat, *SHORT)
            terminal.wait_for(r"^>>> $")
            self.assertFalse(terminal.settings()[3] & termios.ICANON)
            terminal.send(end) if isinstance(end, bytes) else terminal.signal(end)
            status = terminal.ended()
            self.assertEqual(status, 0 if number == 0 else -end)
            self.assertTrue(terminal.settings()[3] & termios.ICANON)
            self.assertTrue(terminal.settings()[3] & termios.ECHO)
            self.assertTrue(terminal.raw.rstrip().endswith(b"\x1b[?2004l") or b"\x1b[?2004l" in terminal.raw[-40:])


class Talking(Scene):
    def test_only_new_tokens_of_a_conversation_are_read(self):
        terminal = self.ready(self.chat, *LETTERS, "--max-tokens", "100")
        _, first, cached = self.answered(terminal, "Tell me a long story about a dog and a cat.\r")
        self.assertEqual(cached, 0)
        _, second, cached = self.answered(terminal, "And then?\r")
        self.assertGreater(second, first + 100)
        # All but the last token of the answer, in whole blocks: "aaa…" would be cut into other tokens when the
        # conversation is rendered anew.
        self.assertGreater(cached, first + 99 - 32)
        terminal.send("/stats\r")
        terminal.wait_for(rf"answers   2\nprompts   {first + second} tokens: {cached} cached")

    def test_commands(self):
        terminal = self.ready(self.chat, *SHORT)
        self.answered(terminal, "one\r")
        self.answered(terminal, "two\r")
        terminal.send("/undo\r")
        terminal.wait_for("undone, 1 turn left")
        terminal.send("/save a.json\r")
        terminal.wait_for("wrote 1 turn to")
        terminal.send("/clear\r")
        terminal.wait_for("started a new conversation")
        terminal.send("/open a.json\r")
        terminal.wait_for("opened 1 turn; the next")
        self.answered(terminal, "/regen\r")
        terminal.send("/system Be brief.\r")
        terminal.wait_for("system prompt set; started a new conversation")
        terminal.send("/set temperature 0.5\r")
        terminal.wait_for("temperature is 0.5")
        terminal.send("/set top_p 7\r")
        terminal.wait_for("error: top_p: expected a number from 1e-06 to 1, found 7\nnext:  /set top_p default resets it")
        terminal.send("/show\r")
        shown = terminal.wait_for(r"system    Be brief\.\nturns     0[\s\S]*temperature +0\.5[\s\S]*think +not set")
        self.assertIn("chat_template.jinja", terminal.screen.text())
        self.assertTrue(shown)
        terminal.send("/nonsense\r")
        terminal.wait_for("error: /nonsense: not a command")
        terminal.send("/help\r")
        terminal.wait_for(r"/regen +generate another answer")
        terminal.send("/open nothing.json\r")
        terminal.wait_for(r"error: nothing\.json: no such file\nnext:  /list shows the conversations")
        terminal.send("/bye\r")
        self.assertEqual(terminal.ended(), 0)

    def test_another_model_can_be_loaded_and_a_bad_one_leaves_the_old(self):
        (self.path / "models/broken").mkdir()
        (self.path / "models/broken/config.json").write_text("{}")
        (self.path / "models/broken/tokenizer.json").write_text("{}")
        models.completion_model(self.path / "models/plain")
        terminal = self.ready("chatty", *SHORT, INFERNO_MODELS=str(self.path / "models"))
        terminal.send("/load plain\r")
        terminal.wait_for(r"it continues your text[\s\S]*>>> $")
        self.answered(terminal, "Once\r")
        terminal.send("/load models/broken\r")
        terminal.wait_for(r"still using plain[\s\S]*error:[\s\S]*>>> $")
        self.answered(terminal, "Twice\r")
        weights = next((self.path / "models/plain").glob("*.safetensors"))
        terminal.send(f"/load {weights}\r")
        terminal.wait_for(r"safetensors[\s\S]*it continues your text[\s\S]*>>> $")
        self.answered(terminal, "Thrice\r")

    def test_a_text_too_long_is_an_error_with_both_numbers_and_nothing_is_lost(self):
        terminal = self.ready(self.chat, *SHORT, "--context", "128")
        self.answered(terminal, "short\r")
        terminal.send("\x1b[200~" + "a b c d e f g " * 40 + "\x1b[201~\r")
        terminal.wait_for(r"error: a prompt of \d{3,} tokens .* context of 128")
        self.answered(terminal, "short again\r")

    def test_a_full_context_drops_the_oldest_turns_and_says_so(self):
        terminal = self.ready(self.chat, *LETTERS, "--max-tokens", "40", "--context", "256", "--system", "Be brief.")
        for number in range(3):
            self.answered(terminal, f"message number {number}\r")
        terminal.wait_for(r"the conversation takes \d+ of 256 tokens of the context; when it is full, the oldest messages are dropped")
        terminal.send("another message\r")
        terminal.wait_for(r"context full: dropped the oldest 2 exchanges; /clear starts over[\s\S]*" + STATS + r"; context: \d+ of 256.*\n>>> $")
        terminal.send("/context\r")
        terminal.wait_for(r"context   \d+ of 256 tokens in use \(\d+ %\)\nturns     4, of which the model sees 2\n")
        terminal.send("/save a.json\r")
        terminal.wait_for("wrote 4 turns")
        self.assertEqual(len(json.loads((self.path / "a.json").read_text())["messages"]), 8)

    def test_a_full_context_can_be_an_error_that_names_the_way_out(self):
        said = self.piped("one two three four\n" * 5, self.chat, *LETTERS, "--max-tokens", "60", "--context", "256", "--on-full", "stop", code=2)
        self.assertRegex(said.stderr.decode(), r"error: the context is full: the conversation has \d+ tokens, the context 256\n"
                                               r"next:  /clear starts over, /undo removes the last exchange")

    def test_small_things(self):
        terminal = self.ready(self.chat, *SHORT)
        terminal.send("ab\x1bdc")  # Alt-D
        terminal.wait_for(r"^>>> abc$")
        terminal.send("\x15/system \"\"\"Be\rbrief.\"\"\"\r")
        terminal.wait_for("system prompt set")
        terminal.send("/system\r")
        terminal.wait_for(r"^Be\nbrief\.$")
        terminal.send("/save ~/talk.json\r")
        terminal.wait_for(r"wrote 0 turns to ~/talk\.json")
        self.assertTrue((self.path / "talk.json").exists())
        terminal.send("/save /\r")
        terminal.wait_for("error: /: cannot write the file: Is a directory\nnext:  choose another file, or check the folder")
        terminal.send("/set reasoning off\r")
        terminal.wait_for("reasoning is hidden")
        terminal.send("/set\r")
        terminal.wait_for(r"  reasoning +hidden\n  stats +shown\n")
        self.assertNotIn("logprobs", terminal.screen.text())

    def test_a_command_that_takes_no_arguments_refuses_them(self):
        terminal = self.ready(self.chat, *SHORT)
        self.answered(terminal, "one\r")
        self.answered(terminal, "two\r")
        for word in ("help", "?", "exit", "bye", "quit", "clear", "show", "regen", "undo", "stats", "context", "list", "copy"):
            terminal.send(f"\x0c/{word} 2 more\r")
            terminal.wait_for(rf'error: /{re.escape(word)}: takes no arguments, found "2 more"\nnext:  /{re.escape(word)} alone; a space before the slash '
                              r"makes it a message\n>>> $")
        terminal.send("\x0c/set nothink off\r")
        terminal.wait_for(r"error: /set nothink: takes no value\nnext:  /set think off\n>>> $")
        terminal.send("/context\r")
        terminal.wait_for(r"turns     2, of which the model sees 2\n")
        self.assertIn("/clear: takes no arguments", self.piped("/clear all\n", self.chat, *SHORT, code=2).stderr.decode())

    def test_conversations_are_kept_and_continued(self):
        terminal = self.ready(self.chat, *LETTERS, "--max-tokens", "5")
        self.answered(terminal, "the first question\r")
        self.answered(terminal, "the second question\r")
        terminal.send("/clear\r")
        terminal.wait_for("started a new")
        self.answered(terminal, "another talk\r")
        terminal.send("/copy\r")
        terminal.wait_for("copied 5 B to the clipboard")
        self.assertIn(b"\x1b]52;c;YWFhYWE=\x07", terminal.raw)
        terminal.send("/save talk.md\r")
        terminal.wait_for("wrote 1 turn to talk.md")
        self.assertRegex((self.path / "talk.md").read_text(), r"## You\n\nanother talk\n\n## .*\n\naaaaa\n")
        terminal.send("/bye\r")
        self.assertEqual(terminal.ended(), 0)
        files = list((self.path / "state/inferno/conversations").iterdir())
        self.assertEqual([file.stat().st_mode & 0o777 for file in files], [0o600, 0o600])
        again = self.ready(self.chat, *LETTERS, "--max-tokens", "5", "--continue")
        self.assertIn("you: another talk\naaaaa\n", again.screen.text())
        again.send("/list\r")
        date = r"20\d\d-\d\d-\d\d \d\d:\d\d"
        again.wait_for(rf"   1  another talk  \({date}, .*, 1 turn\)\n   2  the first question  \({date}, .*, 2 turns\)\n")
        again.send("/open 2\r")
        again.wait_for(r"you: the second question\naaaaa\n>>> $")
        again.send("/open 3\r")
        again.wait_for("error: /open 3: expected 1 to 2")
        self.answered(again, "one more\r")
        self.assertEqual(len(list((self.path / "state/inferno/conversations").iterdir())), 2)

    def test_the_context_in_use_follows_the_conversation(self):
        def in_use(terminal):
            terminal.send("\x0c")
            terminal.wait_for(r"\A>>> $")
            terminal.send("/context\r")
            return int(terminal.wait_for(r"\A>>> /context\ncontext   ([\d,]+) of 4,096 tokens in use")[1].replace(",", ""))

        terminal = self.ready(self.chat, *LETTERS, "--max-tokens", "20")
        self.answered(terminal, "the first question\r")
        first = in_use(terminal)
        self.answered(terminal, "the second question\r")
        second = in_use(terminal)
        self.assertGreater(second, first + 20)
        terminal.send("/save talk.json\r")
        terminal.wait_for("wrote 2 turns")
        terminal.send("/undo\r")
        terminal.wait_for("undone, 1 turn left")
        self.assertAlmostEqual(in_use(terminal), first, delta=first // 4)  # letters are cut into other tokens
        terminal.send("/open talk.json\r")
        terminal.wait_for("opened 2 turns")
        self.assertGreater(in_use(terminal), first)
        terminal.send("/clear\r")
        terminal.wait_for("started a new")
        self.assertEqual(in_use(terminal), 0)
        terminal.send("/bye\r")
        self.assertEqual(terminal.ended(), 0)
        again = self.ready(self.chat, *LETTERS, "--max-tokens", "20", "--continue")
        self.assertGreater(in_use(again), 10)

    def test_save_replaces_conversations_only(self):
        notes = self.path / "notes.txt"
        notes.write_text("milk\n")
        terminal = self.ready(self.chat, *SHORT)
        terminal.send("/save notes.txt\r")
        terminal.wait_for(r"error: notes\.txt: the file exists and is not a conversation\n"
                          r"next:  choose another name, or replace it with /save! notes\.txt")
        self.assertEqual(notes.read_text(), "milk\n")
        for _ in range(2):
            terminal.send("\x0c")
            terminal.wait_for(r"\A>>> $")
            terminal.send("/save talk.json\r")
            terminal.wait_for(r"\A.*\nwrote 0 turns to talk\.json")
        terminal.send("/save! notes.txt\r")
        terminal.wait_for(r"wrote 0 turns to notes\.txt")
        self.assertIn("messages", json.loads(notes.read_text()))

    def test_save_asks_before_it_replaces_what_an_editor_changed(self):
        talk = self.path / "talk.json"
        terminal = self.ready(self.chat, *SHORT)
        terminal.send("/save talk.json\r")
        terminal.wait_for(r"wrote 0 turns")
        changed = talk.read_text().replace('"system": ""', '"system": "mine"')
        talk.write_text(changed)
        terminal.send("/save talk.json\r")
        terminal.wait_for(r"error: talk\.json: the file was changed since it was saved\n"
                          r"next:  choose another name, or replace it with /save! talk\.json")
        self.assertEqual(talk.read_text(), changed)
        terminal.send("/save! talk.json\r")
        terminal.wait_for(r"/save! talk\.json\nwrote 0 turns")
        terminal.send("\x0c/save talk.json\r")
        terminal.wait_for(r"\A.*\nwrote 0 turns")

    def test_save_to_a_full_disk_leaves_the_file_as_it_was(self):
        def without_space():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        talk = self.path / "talk.json"
        self.piped("hi\n/save talk.json\n", self.chat, *SHORT)
        before = talk.read_text()
        done = self.piped("/save talk.json\n", self.chat, *SHORT, code=6, preexec_fn=without_space)
        self.assertIn("talk.json: cannot write the file: File too large", done.stderr.decode())
        self.assertEqual(talk.read_text(), before)
        self.assertEqual([file.name for file in self.path.iterdir() if "partial" in file.name], [])

    def test_no_colour_means_no_colour(self):
        terminal = self.ready(self.chat, *SHORT, NO_COLOR="1")
        self.answered(terminal, "x\r")
        self.assertNotRegex(terminal.raw.decode(), r"\x1b\[[0-9;]*m")

    def test_the_model_cannot_control_the_terminal(self):
        # The tiny model knows every byte as a token; 0x1b is forced on it.
        tokens = json.loads((models.LLAMA / "tokenizer.json").read_text())["model"]["vocab"]
        escape = tokens["ě"]  # GPT-2's name for byte 0x1b
        terminal = self.ready(self.chat, *SHORT, "--logit-bias", f"{escape}=100")
        self.answered(terminal, "x\r")
        self.assertIn(r"\x1b\x1b\x1b\x1b", terminal.screen.text())


class FullContext(Scene):
    def test_drops_enough_for_the_next_turns_to_use_the_cache(self):
        terminal = self.ready(self.chat, *LETTERS, "--max-tokens", "8", "--context", "512")
        for turn in range(40):
            self.answered(terminal, f"message {turn:02}\r")
            if found := re.search(r"context full: dropped the oldest (\d+) exchanges", terminal.screen.text()):
                break
        self.assertGreaterEqual(int(found[1]), 3)
        _, prompt, cached = self.answered(terminal, "and the next\r")
        self.assertGreater(cached, prompt * 3 // 4)
        self.assertEqual(terminal.screen.text().count("context full"), 1)


class Choosing(Scene):
    def setUp(self):
        super().setUp()
        models.completion_model(self.path / "models/plain")
        snapshot = self.path / "hub/models--tiny--chat/snapshots/abc"
        models.chat_model(snapshot)
        (self.path / "hub/models--tiny--chat/refs").mkdir()
        (self.path / "hub/models--tiny--chat/refs/main").write_text("abc")
        self.places = {"INFERNO_MODELS": str(self.path / "models"), "HF_HUB_CACHE": str(self.path / "hub")}

    def test_a_numbered_list_takes_a_number_or_a_name(self):
        for answer, name in (("2", "plain"), ("tiny/chat", "tiny/chat")):
            terminal = self.play(*SHORT, **self.places)
            terminal.wait_for(r"1  chatty .*\n +2  plain .*\n +3  tiny/chat .*\n +4  builtin .*\nnumber or name \[1\]: $")
            terminal.send("pl\t")
            terminal.wait_for(r"number or name \[1\]: plain$")
            terminal.send("\x159\r")
            terminal.wait_for("expected a number from 1 to 4")
            terminal.send(answer + "\r")
            terminal.wait_for(rf"^{name} \(llama\), context of 4,096 tokens[\s\S]*>>> $")

    def test_enter_takes_the_first_or_the_last_one_used(self):
        terminal = self.play(*SHORT, **self.places)
        terminal.wait_for(r"number or name \[1\]: $")
        terminal.send("\r")
        terminal.wait_for(r"^chatty \(llama\)[\s\S]*>>> $")
        self.answered(self.ready("tiny/chat", *SHORT, **self.places), "hi\r")
        terminal = self.play(*SHORT, **self.places)
        terminal.wait_for(r"number or name \[3\]: $")
        terminal.send("\r")
        terminal.wait_for(r"^tiny/chat \(llama\)[\s\S]*>>> $")

    def test_control_d_leaves_the_list(self):
        terminal = self.play(**self.places)
        terminal.wait_for(r"number or name \[1\]: $")
        terminal.send("\x04")
        self.assertEqual(terminal.ended(), 0)

    def test_control_c_at_the_list_ends_it_with_130(self):
        terminal = self.play(**self.places)
        terminal.wait_for(r"number or name \[1\]: $")
        terminal.send("\x03")
        self.assertEqual(terminal.ended(), 130)

    def test_the_only_model_starts_at_once(self):
        terminal = self.play(*SHORT)
        terminal.wait_for(r"^builtin \(\w+\)[\s\S]*>>> $")

    def test_a_pipe_is_not_asked_and_gets_the_built_in_model(self):
        done = self.piped("hi\n", *SHORT, **self.places)
        self.assertIn("builtin (gpt_oss)", done.stderr.decode())

    def test_the_built_in_model_is_called_a_toy_once(self):
        said = self.piped("hi\nhi\n/clear\nhi\n", *SHORT, **self.places).stderr.decode()
        self.assertEqual(said.count("a toy for trying the program, often wrong; inferno doctor names models that fit\n"), 1)
        self.assertNotIn("toy", self.piped("hi\n", "plain", *SHORT, **self.places).stderr.decode())

    def test_continue_takes_the_model_of_the_last_conversation(self):
        terminal = self.ready("tiny/chat", *SHORT, **self.places)
        self.answered(terminal, "first\r")
        again = self.play("--continue", *SHORT, **self.places)
        again.wait_for(r"^tiny/chat \(llama\)[\s\S]*opened 1 turn[\s\S]*^you: first$[\s\S]*>>> $")
        self.answered(again, "second\r")
        done = self.piped("third\n", "--continue", *SHORT, **self.places)  # a pipe adds a turn and prints its answer alone
        self.assertRegex(done.stderr.decode(), r"tiny/chat \(llama\)[\s\S]*opened 2 turns")
        self.assertNotIn("no conversation is kept", done.stderr.decode())
        kept = [json.loads(file.read_text()) for file in (self.path / "state/inferno/conversations").iterdir()]
        self.assertEqual([[one["content"] for one in each["messages"] if one["role"] == "user"] for each in kept], [["first", "second", "third"]])
        self.assertEqual(done.stdout.decode().rstrip("\n"), kept[0]["messages"][-1]["content"])

    def test_continue_says_that_the_model_is_gone(self):
        terminal = self.ready("tiny/chat", *SHORT, **self.places)
        self.answered(terminal, "first\r")
        elsewhere = {**self.places, "HF_HUB_CACHE": str(self.path / "nothing")}
        said = self.piped("hi\n", "--continue", *SHORT, **elsewhere).stderr.decode()
        self.assertRegex(said, r"the last conversation was with tiny/chat, which cannot be used: tiny/chat: [\s\S]*builtin \(")

    def test_a_pipe_without_continue_keeps_nothing(self):
        self.piped("hi\n", self.chat, *SHORT)
        self.assertFalse((self.path / "state/inferno/conversations").exists())
        self.assertIn("no conversation is kept yet", self.piped("hi\n", self.chat, *SHORT, "--continue").stderr.decode())

    def test_load_without_a_name_shows_the_menu(self):
        terminal = self.ready("plain", *SHORT, **self.places)
        terminal.send("/load\r")
        terminal.wait_for(r"^models on this machine:\n +1  chatty .*\n +2  plain .*\n +3  tiny/chat .*\n +4  builtin .*\n"
                          r"/load NAME or /load NUMBER switches to one of them\n>>> $")
        terminal.send("/load 3\r")
        terminal.wait_for(r"^tiny/chat \(llama\), context of 4,096 tokens[\s\S]*>>> $")
        terminal.send("/load 5\r")
        terminal.wait_for(r"error: /load 5: expected a number from 1 to 4[\s\S]*>>> $")
        terminal.send("/load plain\r")
        terminal.wait_for(r"/load plain\n[\s\S]*^plain \(llama\)[\s\S]*>>> $")


class Settings(Scene):
    def test_a_think_option_that_the_template_ignores_is_reported(self):
        done = self.piped("hi\n", self.chat, *SHORT, "--no-think")
        self.assertIn("note: --no-think has no effect", done.stderr.decode())

    def test_an_unknown_effort_is_refused(self):
        self.assertIn("expected low, medium or high", self.piped("", self.chat, "--reasoning-effort", "huge", code=2).stderr.decode())


class OneAnswer(Scene):
    """`play MODEL PROMPT`, as `ollama run` has it."""

    def one(self, *arguments, text="", code=0, command="run"):
        done = subprocess.run([PROGRAM, command, *map(str, arguments), "--device", "cpu"], input=text.encode(), timeout=120,
                              capture_output=True, env=self.environment(), cwd=self.path)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def test_is_what_generate_answers(self):
        wanted = self.one("-m", self.chat, "hi", "--chat", *SHORT, command="generate").stdout
        for command in ("run", "chat", "play"):
            done = self.one(self.chat, "hi", *SHORT, command=command)
            self.assertEqual(done.stdout, wanted)
            self.assertNotIn("note:", done.stderr.decode())
        self.assertEqual(self.one(self.chat, "-", *SHORT, text="hi").stdout, wanted)
        brief = self.one("-m", self.chat, "hi", "--system", "Be brief.", *SHORT, command="generate").stdout
        self.assertEqual(self.one(self.chat, "hi", "--system", "Be brief.", *SHORT).stdout, brief)

    def test_is_refused_without_a_question(self):
        done = self.one(self.chat, "", *SHORT, text="a turn\n", code=2)
        self.assertEqual(done.stdout, b"")
        self.assertIn("error: the prompt is empty\nnext:  give a prompt of at least one character", done.stderr.decode())

    def test_needs_a_model_before_the_question(self):
        for command in ("run", "chat", "play"):
            done = self.one("What's Inferno?", code=2, command=command)
            self.assertIn("next:  inferno play builtin 'What'\\''s Inferno?'\n", done.stderr.decode())
        for name, code in (("my models/no such", 2), ("no such.gguf", 3), ("why " * 100, 2)):
            self.assertNotIn("inferno play builtin", self.one(name, code=code).stderr.decode())

    def test_has_standard_input_in_its_prompt(self):
        wanted = self.one("-m", self.chat, "Sum up\n\nmilk\n", *SHORT, command="generate").stdout
        self.assertEqual(self.one(self.chat, "Sum up", *SHORT, text="milk\n").stdout, wanted)

    def test_of_a_base_model_is_a_text(self):
        wanted = self.one("-m", models.LLAMA, "Once", *SHORT, command="generate").stdout
        self.assertEqual(self.one(models.LLAMA, "Once", *SHORT).stdout, wanted)

    def test_keeps_no_conversation_and_continues_none(self):
        self.one(self.chat, "hi", *SHORT)
        self.assertFalse((self.path / "state/inferno/conversations").exists())
        self.assertIn("quote a text with spaces", self.one(self.chat, "why", "is", "it", code=2).stderr.decode())

    def test_refuses_options_of_conversations(self):
        for options in (["--continue"], ["--plain"], ["--no-stats"], ["--on-full", "stop"], ["--show-reasoning"], ["--hide-reasoning"]):
            done = self.one(self.chat, "hi", *options, code=2)
            self.assertRegex(done.stderr.decode(), "PROMPT and .*cannot be used together|and PROMPT cannot be used together")
        # As defaults they are meant for conversations.
        (self.path / ".config/inferno").mkdir(parents=True)
        (self.path / ".config/inferno/config.toml").write_text('[play]\nplain = true\nno-stats = true\non-full = "stop"\n')
        wanted = self.one("-m", self.chat, "hi", "--chat", *SHORT, command="generate").stdout
        self.assertEqual(self.one(self.chat, "hi", *SHORT).stdout, wanted)


class Piped(Scene):
    def test_lines_are_turns_and_stdout_holds_the_answers_alone(self):
        done = self.piped('one\n/stats\n"""two\nlines"""\n', self.chat, *SHORT)
        self.assertEqual(len(re.findall(STATS, done.stderr.decode())), 2)
        self.assertIn("answers   1", done.stderr.decode())
        for word in (b"tokens/s", b">>>", b"\x1b"):
            self.assertNotIn(word, done.stdout)
        alone = self.piped("one\n", self.chat, *SHORT)
        self.assertTrue(done.stdout.startswith(alone.stdout))

    def test_a_failed_turn_is_in_the_exit_code_and_the_others_go_on(self):
        done = self.piped("a b c " * 100 + "\nshort\n", self.chat, *SHORT, "--context", "128", code=2)
        self.assertIn("context of 128", done.stderr.decode())
        self.assertEqual(len(re.findall(STATS, done.stderr.decode())), 1)

    def test_an_unknown_command_is_in_the_exit_code(self):
        self.assertIn("error: /foo: not a command\n", self.piped("/foo\nhi\n", self.chat, *SHORT, code=2).stderr.decode())

    def test_control_c_ends_it_with_130_wherever_it_is(self):
        endless = models.chat_model(self.path / "endless", models.ENDLESS)
        for entry in (b"", b"tell me everything\n"):
            process = subprocess.Popen([PROGRAM, "play", endless, *LETTERS, "--device", "cpu"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
            while b"context of" not in process.stderr.readline():
                pass
            process.stdin.write(entry)
            process.stdin.flush()
            if entry:
                os.read(process.stdout.fileno(), 1)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 130)
            process.communicate()

    def test_a_model_without_template_completes_text_and_says_so(self):
        done = self.piped("Once\n", models.LLAMA, *SHORT)
        self.assertIn("base model without a chat template: it continues your text. /clear starts over.", done.stderr.decode())
        generated = subprocess.run([PROGRAM, "generate", "Once", "-m", models.LLAMA, "--device", "cpu", *SHORT],
                                   capture_output=True, env=self.environment(), timeout=60)
        self.assertEqual(done.stdout, generated.stdout)


@unittest.skipIf(models.stories() is None, "no ../shared/reference")
class Stories(Scene):
    def test_are_the_references_word_for_word(self):
        prompt, story = models.stories()[0]
        done = self.piped(prompt + "\n", models.STORIES, "--temperature", "0")
        self.assertEqual(done.stdout.decode(), story + "\n")

    def test_appear_on_a_terminal(self):
        prompt, story = models.stories()[0]
        terminal = self.ready(models.STORIES, "--temperature", "0", columns=2000, NO_COLOR="1")
        self.answered(terminal, prompt + "\r")
        self.assertIn(f">>> {prompt}\n{story}\n", terminal.screen.text())


if __name__ == "__main__":
    unittest.main()
