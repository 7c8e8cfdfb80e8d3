"""What the built-in model learns about the program: builtin_training_test.py INFERNO

When a command, an option, a slash command or a key changes, so must the text that the model is trained on."""
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/train"))
import chats  # noqa: E402
import program  # noqa: E402

INFERNO = os.path.abspath(sys.argv.pop(1))


class TrainingText(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory()
        cls.addClassCleanup(home.cleanup)
        os.environ["HOME"] = home.name
        cls.program = program.Program(INFERNO)

    def test_the_list_is_what_the_program_says(self):
        self.assertEqual(json.loads(program.LIST.read_text()), self.program.listed,
                         "run: python3 tools/train/program.py INFERNO > tools/train/data/program.json")

    def test_every_answer_names_only_what_the_program_has(self):
        facts = [chats.USE, chats.PROGRAM, chats.SMALL_TALK, chats.REFUSALS]
        taught = [answer for one in facts for answers, _ in one.pairs for answer in answers]
        self.assertGreater(len(taught), 150)
        self.assertEqual([(answer, unknown) for answer in taught if (unknown := self.program.unknown(answer))], [])

    def test_every_command_is_taught(self):
        taught = " ".join(answer for one in (chats.USE, chats.PROGRAM) for answers, _ in one.pairs for answer in answers)
        names = [f"inferno {name}" for name in self.program.listed["commands"]]
        names += [re.match(program.SLASH, words)[0] for words in self.program.listed["slash"]]
        self.assertEqual([name for name in names if f"`{name}" not in taught], [])

    def test_finds_names_that_do_not_exist(self):
        invented = "Run `inferno bake`, inferno cook, `inferno list --fits` or --turbo, type /jump or `/clean`, or press Ctrl-Q."
        self.assertEqual(self.program.unknown(invented), ["inferno bake", "inferno cook", "/jump", "/clean", "Ctrl-Q",
                                                          "--fits in inferno list --fits", "--turbo"])
        self.assertEqual(self.program.unknown("See http://127.0.0.1:8000/v1, `~/.cache/hub`, `inferno pull MODEL --jobs 4` and `/health`."), [])


if __name__ == "__main__":
    unittest.main()
