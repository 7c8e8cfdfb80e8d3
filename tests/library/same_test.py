"""The library gives the answers of `inferno generate --json`, to the byte: same_test.py INFERNO LIBRARY_FOLDER"""
import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p

from toolbox import BUILTIN, ROOT

sys.path.append(str(ROOT / "tests/server"))
import known_model

PROGRAM = sys.argv.pop(1)
LIBRARY = ctypes.CDLL(str(pathlib.Path(sys.argv.pop(1)) / "libinferno.so.0"))
MANY = 32


class Error(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("status", c_int32), ("what", ctypes.c_char * 1024), ("why", ctypes.c_char * 512),
                ("next", ctypes.c_char * 512)]


class LoadOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("threads", c_int32), ("context", c_int32), ("parallel", c_int32),
                ("deterministic", c_int32), ("max_waiting", c_int32), ("max_step_tokens", c_int32), ("cache_bytes", c_uint64),
                ("chat_template_file", c_char_p), ("home", c_char_p), ("hub_cache", c_char_p), ("cache", c_char_p),
                ("model_folders", c_char_p), ("progress", c_void_p), ("progress_context", c_void_p), ("log", c_void_p),
                ("log_context", c_void_p), ("cache_type", c_char_p), ("quantize", c_char_p)]


class Statistics(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("healthy", c_int32), ("running", c_int32), ("waiting", c_int32), ("blocks", c_int32), ("free_blocks", c_int32),
                ("block_tokens", c_int32), ("requests", c_uint64), ("steps", c_uint64), ("prompt_tokens", c_uint64), ("cached_tokens", c_uint64),
                ("generated_tokens", c_uint64), ("heartbeat_seconds", ctypes.c_double)]


class Part(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int32), ("status", c_int32), ("call", c_int32), ("length", c_size_t), ("id", ctypes.c_char * 128),
                ("text", ctypes.c_char * 1024)]


NONE, CONTENT, REASONING, TOOL_CALL, ARGUMENTS, WARNING, END = range(7)  # kinds of parts


def call(name, *arguments):
    """The error of a call; None if it succeeded."""
    error = Error(size=ctypes.sizeof(Error))
    status = getattr(LIBRARY, "inferno_" + name)(*arguments, byref(error))
    return error if status else None


def must(name, *arguments):
    error = call(name, *arguments)
    assert error is None, f"{name}: {error.what} {error.why} {error.next}"


def load(path=BUILTIN, **options):
    model = c_uint64()
    given = LoadOptions(size=ctypes.sizeof(LoadOptions), device=b"cpu", **options)
    must("model_load", str(path).encode(), byref(given), byref(model))
    return model


def begin(model, fields):
    request, answer = c_uint64(), c_uint64()
    must("request_from_json", json.dumps(fields).encode(), byref(request))
    must("ask", model, request, byref(answer))
    must("request_free", request)
    return answer


def result(answer):
    length = c_size_t()
    must("answer_wait", answer, c_int64(-1), None)
    must("answer_json", answer, None, c_size_t(0), byref(length))
    text = ctypes.create_string_buffer(length.value + 1)
    must("answer_json", answer, text, c_size_t(len(text)), None)
    must("answer_free", answer)
    return text.raw[:length.value]


def read_parts(answer):
    """[(kind, number of the call, id, text)] up to the end."""
    parts, part = [], Part(size=ctypes.sizeof(Part))
    while not parts or parts[-1][0] != END:
        must("answer_next", answer, c_int64(-1), byref(part))
        parts.append((part.kind, part.call, part.id, part.text[:part.length]))
    for kind in (CONTENT, REASONING):  # and what inferno_answer_text() has
        text = ctypes.create_string_buffer(4096)
        must("answer_text", answer, c_int32(kind), text, c_size_t(len(text)), None)
        assert text.value == b"".join(one[3] for one in parts if one[0] == kind), (text.value, parts)
    return parts


def hear_parts(model, fields):
    """The same, by a callback."""
    heard, request, answer = [], c_uint64(), c_uint64()

    @ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, POINTER(Part))
    def hear(_context, _answer, part):
        heard.append((part[0].kind, part[0].call, part[0].id, part[0].text[:part[0].length]))
        return 0

    must("request_from_json", json.dumps(fields).encode(), byref(request))
    must("ask_with_callback", model, request, hear, None, byref(answer))
    must("answer_wait", answer, c_int64(-1), None)
    must("request_free", request)
    must("answer_free", answer)
    return heard


def joined(parts):
    """Content and reasoning as texts, and [(name, arguments)] of the calls."""
    calls = {}
    for kind, number, id, text in parts:
        if kind == TOOL_CALL:
            assert id and number not in calls, parts
            calls[number] = [text.decode(), ""]
        if kind == ARGUMENTS:
            calls[number][1] += text.decode()
    texts = {kind: b"".join(one[3] for one in parts if one[0] == kind).decode() for kind in (CONTENT, REASONING)}
    return {**texts, "calls": [tuple(call) for _, call in sorted(calls.items())]}


def json_or_text(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("get_weather", "get_time")]


def bytes_without_times(line):
    """The line as it is written, without its timings, which end it."""
    text, found, _ = line.rpartition(b',"timings":')
    assert found, line
    return text


def generate(*arguments):
    raw = [] if "--chat" in arguments else ["--raw"]  # the library's prompts are continued, not answered
    return subprocess.run([PROGRAM, "generate", "--device", "cpu", "-m", str(BUILTIN), "--json", *raw, *arguments], capture_output=True,
                          check=True, timeout=120, stdin=subprocess.DEVNULL).stdout.rstrip(b"\n")


REQUESTS = [  # fields of the library, arguments of the command
    ({"prompt": "Once upon a time", "seed": 3, "max_tokens": 30}, ["Once upon a time", "--seed", "3", "--max-tokens", "30"]),
    ({"prompt": "The", "seed": 9, "max_tokens": 12, "logprobs": 3, "temperature": 1.5},
     ["The", "--seed", "9", "--max-tokens", "12", "--logprobs", "3", "--temperature", "1.5"]),
    ({"prompt": "Hello", "chat": True, "seed": 5, "max_tokens": 30, "stop": ["."]},
     ["Hello", "--chat", "--seed", "5", "--max-tokens", "30", "--stop", "."]),
    ({"prompt": "Pick one: ", "seed": 1, "choices": ["left", "right"]}, ["Pick one: ", "--seed", "1", "--choice", "left", "--choice", "right"]),
    ({"prompt": "Say ä", "seed": 2, "max_tokens": 5, "regex": "[0-9]{2}"}, ["Say ä", "--seed", "2", "--max-tokens", "5", "--regex", "[0-9]{2}"]),
]


def at_once():
    """MANY different requests: conversations and constraints among texts."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    requests = [
        ({"messages": messages, "seed": 1, "max_tokens": 24}, ["Hello", "--chat", "--system", "Be brief.", "--seed", "1", "--max-tokens", "24"]),
        ({"prompt": "Say ä", "seed": 2, "max_tokens": 24, "regex": "[a-z ]{9,12}[0-9]{2}"},
         ["Say ä", "--seed", "2", "--max-tokens", "24", "--regex", "[a-z ]{9,12}[0-9]{2}"]),
        ({"messages": messages[1:], "seed": 3, "max_tokens": 40, "json_object": True},
         ["Hello", "--chat", "--seed", "3", "--max-tokens", "40", "--json-object"]),
    ]
    for seed in range(MANY - len(requests)):
        requests.append(({"prompt": "Once upon a time", "seed": seed, "max_tokens": 24, "logprobs": 1},
                         ["Once upon a time", "--seed", str(seed), "--max-tokens", "24", "--logprobs", "1"]))
    return requests


class Same(unittest.TestCase):
    def test_alone(self):
        for fields, arguments in REQUESTS:
            model = load()  # anew, as the command does: nothing is cached
            self.assertEqual(bytes_without_times(result(begin(model, fields))), bytes_without_times(generate(*arguments)))
            must("model_unload", model)

    def answers_at_once(self, requests, **options):
        """The answers to requests that are asked at the same time and share steps, without their timings."""
        model = load(parallel=MANY, **options)
        answers = [begin(model, {**fields, "cache_prompt": False}) for fields, _ in requests]
        found = [bytes_without_times(result(answer)) for answer in answers]
        statistics = Statistics(size=ctypes.sizeof(Statistics))
        must("model_statistics", model, byref(statistics))
        must("model_unload", model)
        # One after another they would take a step for each token.
        self.assertEqual(statistics.requests, MANY)
        self.assertLess(statistics.steps, statistics.generated_tokens / 4)
        return found

    def test_many_at_once(self):
        for options, flags in (({}, []), ({"deterministic": 1}, ["--deterministic"])):
            requests = at_once()
            with self.subTest(flags):
                found = self.answers_at_once(requests, **options)
                self.assertEqual(len(set(found)), MANY)
                for answer, (_, arguments) in zip(found, requests):
                    self.assertEqual(answer, bytes_without_times(generate(*arguments, *flags)))

    def test_reasoning_and_calls(self):
        with tempfile.TemporaryDirectory() as folder:
            path = known_model.write(folder)
            for scene, (content, reasoning, calls) in known_model.ANSWERS.items():
                if scene == "mull":  # its prompt ends inside the reasoning
                    continue
                fields = {"messages": [{"role": "user", "content": scene}], "tools": TOOLS, "temperature": 0, "max_tokens": 200}
                with self.subTest(scene):
                    model = load(path)
                    answer = begin(model, fields)
                    parts = read_parts(answer)
                    whole = json.loads(result(answer))
                    heard = hear_parts(model, fields)
                    must("model_unload", model)
                    self.assertEqual(joined(parts), joined(heard))
                    found = joined(parts)
                    self.assertEqual(found[CONTENT], content)
                    self.assertEqual(found[REASONING].strip(), reasoning)
                    self.assertEqual([(name, json_or_text(arguments)) for name, arguments in found["calls"]], calls)
                    self.assertEqual([(call["function"]["name"], json_or_text(call["function"]["arguments"])) for call in whole.get("tool_calls") or []], calls)
                    self.assertEqual(parts[-1][0], END)

    def test_the_manual_lists_the_fields(self):
        table = re.search(r"## Fields\n(.*?)\n## ", (ROOT / "docs/library.md").read_text(), re.S)[1]
        names = [name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)]
        self.assertGreater(len(names), 30)
        request = c_uint64()
        must("request_new", byref(request))
        for name in names:
            # A value that no field takes: the complaint must be about the value, not about the name.
            error = call("request_set_json", request, name.encode(), b"{}")
            self.assertFalse(error and b"is not a field" in error.what, name)
        self.assertIn(b"is not a field", call("request_set_json", request, b"unknown", b"{}").what)
        must("request_free", request)

    def test_errors_have_the_words_of_the_command(self):
        # The command has the built-in model, the library finds it in this folder.
        options = LoadOptions(size=ctypes.sizeof(LoadOptions), device=b"cpu", home=b"", model_folders=str(BUILTIN.parent).encode())
        for name in ("/nowhere/model.gguf", "no-such/model"):
            error = call("model_load", name.encode(), byref(options), byref(c_uint64()))
            done = subprocess.run([PROGRAM, "generate", "-m", name, "x"], capture_output=True, text=True, timeout=60,
                                  env={"HOME": "/nonexistent", "HF_ENDPOINT": "http://127.0.0.1:1"}, stdin=subprocess.DEVNULL)
            words = [line.split(":", 1) for line in done.stderr.splitlines() if line.startswith(("error:", "why:", "next:"))]
            said = {key: value.strip() for key, value in words}
            self.assertEqual(said.get("error"), error.what.decode())
            self.assertEqual(said.get("why", ""), error.why.decode().split("\n")[0])
            self.assertEqual(said.get("next", ""), error.next.decode().split("\n")[0])


if __name__ == "__main__":
    unittest.main()
