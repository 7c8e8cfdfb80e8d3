"""Constrained answers of the built-in model at temperature 1, from outside: constrained_test.py INFERNO"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer"}, "who": {"enum": ["ann", "bob"]}},
          "required": ["ok", "n"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "unit": {"enum": ["c", "f"]}},
    "required": ["city"], "additionalProperties": False}}}
NOW = {"type": "function", "function": {"name": "now", "strict": True, "parameters": {
    "type": "object", "properties": {}, "additionalProperties": False}}}
NOT_ENFORCED = {"type": "object", "unevaluatedItems": False}


def generate(*arguments, stdin="", code=0):
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS")}
    done = subprocess.run([PROGRAM, "generate", "--device", "cpu", *map(str, arguments)], input=stdin.encode(), capture_output=True,
                          timeout=300, env={**kept, "HOME": "/nonexistent"})
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
    return done


def batch(lines, *arguments, code=0):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return [json.loads(line) for line in generate("--batch", "-", *arguments, stdin=text, code=code).stdout.splitlines()]


def line(seed, **fields):
    return {"id": seed, "prompt": "Tell me.", "seed": seed, "temperature": 1.0, "max_tokens": 400, **fields}


def fits(text):
    value = json.loads(text)
    return (set(value) <= {"ok", "n", "who"} and type(value["ok"]) is bool and type(value["n"]) is int
            and value.get("who", "ann") in ("ann", "bob"))


def fits_call(call):
    arguments = json.loads(call["arguments"])
    if call["name"] == "now":
        return arguments == {}
    return (call["name"] == "get_weather" and isinstance(arguments["city"], str) and len(arguments["city"]) <= 8
            and arguments.get("unit", "c") in ("c", "f") and set(arguments) <= {"city", "unit"})


class Text(unittest.TestCase):
    def test_fits_its_schema_expression_grammar_or_choices(self):
        kinds = {"schema": SCHEMA, "regex": "[a-z]{2,5}-[0-9]{3}", "grammar": 'root ::= "say " [a-c]{1,4}', "choices": ["red", "green"],
                 "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}}}
        lines = [line(seed, **{kind: value}) for seed in range(12) for kind, value in kinds.items()]
        checks = {"schema": fits, "response_format": fits, "regex": lambda text: re.fullmatch(kinds["regex"], text),
                  "grammar": lambda text: re.fullmatch("say [a-c]{1,4}", text), "choices": lambda text: text in ("red", "green")}
        for asked, answer in zip(lines, batch(lines)):
            kind = next(key for key in kinds if key in asked)
            self.assertEqual(answer["finish_reason"], "stop")
            self.assertTrue(checks[kind](answer["text"]), (kind, answer["text"]))

    def test_is_the_same_batched_and_alone(self):
        lines = [line(seed, json_object=True, max_tokens=60) for seed in range(8)]
        lines += [line(seed, schema=SCHEMA, chat=True) for seed in range(8)]
        together = batch(lines, "--parallel", "8", "--deterministic")
        alone = batch(lines, "--parallel", "1", "--deterministic")
        self.assertEqual([answer["text"] for answer in together], [answer["text"] for answer in alone])

    def test_comes_from_the_options_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "schema.json"
            path.write_text(json.dumps(SCHEMA))
            self.assertTrue(fits(generate("hi", "--schema", path, "-s", "1").stdout))
            self.assertTrue(fits(generate("hi", "--chat", "--schema", path, "-s", "1").stdout))
            path.write_text('root ::= "a" | "b"')
            self.assertIn(generate("hi", "--grammar", path, "-s", "1").stdout, (b"a\n", b"b\n"))
            path.write_text(json.dumps(NOT_ENFORCED))
            self.assertIn(b"/schema/unevaluatedItems", generate("hi", "--schema", path, code=4).stderr)
            path.write_text('{"type"')
            generate("hi", "--schema", path, code=2)
        self.assertRegex(generate("hi", "--regex", "[0-9]{4}", "-s", "1").stdout, rb"^[0-9]{4}\n$")
        self.assertIn(generate("hi", "--choice", "red", "--choice", "green", "-s", "1").stdout, (b"red\n", b"green\n"))
        self.assertIsInstance(json.loads(generate("hi", "--json-object", "-s", "3", "--temp", "0").stdout), dict)
        generate("hi", "--regex", "a", "--json-object", code=2)
        generate("hi", "--regex", "(a", code=2)


    def test_has_no_blanks_if_asked(self):
        lines = [line(seed, json_object=True, max_tokens=60, whitespace="compact") for seed in range(8)]
        lines += [line(seed, schema=SCHEMA) for seed in range(8)]
        answers = batch(lines, "--whitespace", "compact")
        self.assertIn("error", batch([line(1, schema=SCHEMA, whitespace="none")], code=1)[0])
        for answer in answers:
            outside = re.sub(r'"([^"\\]|\\.)*"?', "", answer["text"])
            self.assertNotRegex(outside, r"\s", answer["text"])


class Constrain(unittest.TestCase):
    def test_prints_a_line_for_what_is_refused_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "schema.json"
            for schema, code, kind, pointer in (({"type": "objekt"}, 2, "invalid", "/type"), (NOT_ENFORCED, 4, "unsupported", "/unevaluatedItems")):
                path.write_text(json.dumps(schema))
                done = subprocess.run([PROGRAM, "constrain", "--schema", path], capture_output=True, timeout=60)
                self.assertEqual(done.returncode, code)
                refused = json.loads(done.stdout)
                self.assertFalse(refused["compiled"])
                self.assertEqual((refused["refused"]["kind"], refused["refused"]["pointer"]), (kind, pointer))
                self.assertIn(refused["refused"]["message"], done.stderr.decode())

    def test_names_a_limit_for_the_text_that_meets_it(self):
        """Each letter is read in two ways that differ in what must follow much later."""
        case = {"id": 1, "grammar": 'root ::= s\ns ::= "a" s "b" | "a" s "c" | "x"', "texts": ["axb", "a" * 100]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cases.jsonl"
            path.write_text(json.dumps(case) + "\n")
            done = subprocess.run([PROGRAM, "constrain", "--cases", path], capture_output=True, timeout=60, check=True)
        answer = json.loads(done.stdout)
        self.assertTrue(answer["compiled"])
        first, second = answer["results"]
        self.assertEqual(first["status"], "accepted")
        self.assertEqual(second["status"], "limit")
        self.assertIn("limit", second["message"])
        self.assertLess(second["at"], 100)


class Lines(unittest.TestCase):
    def test_that_cannot_be_enforced_fail_alone(self):
        lines = [line(1, schema=NOT_ENFORCED), line(2, schema=SCHEMA), line(3, regex="a", schema=SCHEMA), line(4, schema={"type": "objekt"})]
        first, second, third, fourth = batch(lines, code=1)
        self.assertIn("/schema/unevaluatedItems", first["error"])
        self.assertTrue(fits(second["text"]))
        self.assertIn("already constrained", third["error"])
        self.assertIn("/schema/type", fourth["error"])


class Harmony(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = models.harmony_model(cls.folder.name + "/model")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def replies(self, count, **fields):
        lines = [line(seed, prompt="What now?", chat=True, **fields) for seed in range(count)]
        return batch(lines, "-m", self.model)

    def check_form(self, replies):
        for reply in replies:
            self.assertNotIn("warnings", reply)
            self.assertIn(reply["finish_reason"], ("stop", "tool_calls", "length"))

    def test_replies_keep_to_their_form(self):
        self.check_form(self.replies(60))

    def test_replies_fit_a_schema(self):
        replies = self.replies(30, schema=SCHEMA)
        self.check_form(replies)
        for reply in replies:
            self.assertTrue(reply["finish_reason"] == "length" or fits(reply["text"]), reply["text"])

    def test_calls_are_of_offered_functions_and_fit_their_schemas(self):
        for choice in ("auto", "required", "now", "none"):
            replies = self.replies(20, tools=[WEATHER, NOW], tool_choice=choice)
            self.check_form(replies)
            for reply in replies:
                calls = [call["function"] for call in reply.get("tool_calls", [])]
                if reply["finish_reason"] == "length":
                    continue
                self.assertTrue(all(fits_call(call) for call in calls), calls)
                if choice in ("required", "now"):
                    self.assertEqual(len(calls), 1)
                if choice == "now":
                    self.assertEqual(calls[0]["name"], "now")
                if choice == "none":
                    self.assertEqual(calls, [])

    def test_a_schema_that_is_not_strict_becomes_a_note(self):
        loose = {"type": "function", "function": {"name": "log", "parameters": NOT_ENFORCED}}
        reply = self.replies(1, tools=[loose], tool_choice="required")[0]
        self.assertIn("may be any JSON object", reply["warnings"][0])
        if reply["finish_reason"] != "length":
            self.assertIsInstance(json.loads(reply["tool_calls"][0]["function"]["arguments"]), dict)
        strict = {"type": "function", "function": {"name": "log", "strict": True, "parameters": NOT_ENFORCED}}
        answer = batch([line(1, chat=True, tools=[strict])], "-m", self.model, code=1)[0]
        self.assertIn("/tools/0/function/parameters/unevaluatedItems", answer["error"])

    def test_tools_that_no_prompt_would_have_are_refused(self):
        """The built-in model's own template shows none, and a text that is completed has none."""
        not_shown = "tools: the chat template of this model does not show tools to it, so it could never call one"
        file = pathlib.Path(self.folder.name) / "tools.json"
        file.write_text(json.dumps([NOW]))
        for choice in ("auto", "required"):
            refused = generate("hi", "--chat", "--tools", file, "--tool-choice", choice, code=2)
            self.assertIn(not_shown, refused.stderr.decode())
        self.assertIn("tools: expected a conversation", generate("hi", "--raw", "--tools", file, code=2).stderr.decode())
        first, second, third = batch([line(1, chat=True, tools=[NOW]), line(2, chat=False, tools=[NOW]), line(3, chat=True, tools=[], max_tokens=4)], code=1)
        self.assertEqual(first["error"], f"line 1: {not_shown}")
        self.assertIn("tools: expected a conversation", second["error"])
        self.assertIn("text", third)


if __name__ == "__main__":
    unittest.main()
