"""Flags that change what a server answers, and what else no other test asks from outside: flags_test.py INFERNO"""
import json
import os
import pathlib
import re
import subprocess
import unittest

import known_model
import scene
from scene import FOLDER, ROOT, Scene, Server, chat, known

KEY = "sk-of-this-test"
SHARED = pathlib.Path(os.environ.get("INFERNO_SHARED", ROOT.parent / "shared"))


class Timings(unittest.TestCase):
    def test_are_left_out_everywhere(self):
        with Server("--no-timings", model=known()) as server:
            for path, body in (("/v1/chat/completions", chat("hi")), ("/v1/completions", {"prompt": "hi", "max_tokens": 2}), ("/v1/responses", {"input": "hi"}),
                               ("/v1/messages", {"max_tokens": 20, **chat("hi")})):
                whole = server.post(path, body).json()
                self.assertNotIn("timings", whole, path)
                self.assertNotIn("inferno", whole, path)
                for event in server.stream(path, body).json():
                    text = json.dumps(event)
                    self.assertNotIn('"timings"', text, path)
                    self.assertNotIn('"inferno"', text, path)


class MetricsFlags(unittest.TestCase):
    def test_need_the_key_unless_public(self):
        with Server(key=KEY, model=known(), env={"INFERNO_API_KEY": KEY}) as server:
            self.assertEqual(server.get("/metrics", Authorization="").status, 401)
            self.assertEqual(server.get("/metrics").status, 200)
        with Server("--public-metrics", key=KEY, model=known(), env={"INFERNO_API_KEY": KEY}) as server:
            self.assertEqual(server.get("/metrics", Authorization="").status, 200)
            self.assertEqual(server.get("/v1/models", Authorization="").status, 401)

    def test_can_be_switched_off(self):
        with Server("--no-metrics", model=known()) as server:
            self.assertEqual(server.get("/metrics").status, 404)
            self.assertEqual(server.chat("hi").status, 200)


class Reasoning(unittest.TestCase):
    def test_is_where_the_flag_says(self):
        content, reasoning, _ = known_model.ANSWERS["think"]
        for format, fields in (("both", {"reasoning", "reasoning_content"}), ("reasoning", {"reasoning"}),
                               ("reasoning_content", {"reasoning_content"}), ("deepseek", {"reasoning_content"}), ("none", set())):
            with self.subTest(format=format), Server("--reasoning-format", format, model=known()) as server:
                message = server.chat("think").json()["choices"][0]["message"]
                deltas = [event["choices"][0]["delta"] for event in server.stream("/v1/chat/completions", chat("think")).json() if event.get("choices")]
                for name in ("reasoning", "reasoning_content"):
                    self.assertEqual(message.get(name), reasoning if name in fields else None)
                    streamed = "".join(delta.get(name) or "" for delta in deltas)
                    self.assertEqual(streamed, reasoning if name in fields else "")
                streamed = "".join(delta.get("content") or "" for delta in deltas)
                self.assertEqual(message["content"], streamed)
                if format == "none":
                    self.assertIn(reasoning, message["content"])
                    self.assertIn(content, message["content"])
                else:
                    self.assertEqual(message["content"], content)


class Defaults(unittest.TestCase):
    """Sampling and template: those of a request are above those of the server."""

    def test_of_sampling_are_those_of_the_flags(self):
        flags = ("--temperature", "0.9", "--top-p", "0.95", "--seed", "7", "--max-tokens", "3", "--stop", "zzz")
        with Server(*flags, model=known()) as server:
            parameters = server.get("/props").json()["default_generation_settings"]["params"]
            self.assertEqual((round(parameters["temperature"], 3), round(parameters["top_p"], 3), parameters["max_tokens"]), (0.9, 0.95, 3))
            first = server.chat("long").json()
            self.assertEqual((first["usage"]["completion_tokens"], first["choices"][0]["finish_reason"], first["inferno"]["seed"]), (3, "length", 7))
            own = server.chat("long", max_tokens=5, seed=8).json()
            self.assertEqual((own["usage"]["completion_tokens"], own["inferno"]["seed"]), (5, 8))

    def test_of_the_template_are_those_of_the_flag(self):
        template = FOLDER / "tone.jinja"
        template.write_text("{{ tone }}|{{ size }}|{% for message in messages %}{{ message.content }}{% endfor %}")
        flags = ("--chat-template-file", template, "--chat-template-kwargs", '{"tone": "kind", "size": 1}')
        with Server(*flags, model=known()) as server:
            self.assertEqual(server.post("/apply-template", chat("hi")).json()["prompt"], "kind|1|hi")
            own = server.post("/apply-template", chat("hi", chat_template_kwargs={"tone": "curt"})).json()["prompt"]
            self.assertEqual(own, "curt|1|hi")


class OfOtherPrograms(unittest.TestCase):
    """Command lines of llama-server and vLLM: each of their flags works, is named as without effect, or is refused with what to use instead."""

    def refusal(self, *arguments):
        """What `inferno serve` prints before it ends, because the last flag is none; the one before may be a value."""
        done = subprocess.run([scene.PROGRAM, "serve", *arguments, "--no-such-flag", "--no-such-flag"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10,
                              env=scene.environment())
        self.assertEqual(done.returncode, 2, arguments)
        return done.stderr.decode()

    def test_are_all_known(self):
        lines = (ROOT / "tests/data/flags_of_other_programs.txt").read_text().splitlines()
        names = [name for line in lines if not line.startswith("#") for name in line.split()]
        self.assertGreater(len(names), 650)
        help_page = subprocess.run([scene.PROGRAM, "serve", "--help"], capture_output=True, check=True).stdout.decode()
        table = re.sub(r'"\s+"', "", (ROOT / "src/cli/commands/shared/flags_of_others.cpp").read_text())  # as the compiler joins strings
        here = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w.-]*", help_page + " ".join(re.findall(r'"[^"]*"', table))))
        self.assertEqual([name for name in names if not {name, "-" + name} & here], [])
        for name in names[::30]:  # a process for each
            with self.subTest(name=name):
                self.assertNotRegex(self.refusal(name), r"unknown option (?!--no-such-flag)")

    def test_are_not_read_as_others(self):
        for flags, words in ((("-ag",), "runs no tools"), (("-rea", "off"), "--reasoning-effort"), (("-hfd", "x"), "speculative"),
                             (("-xyz",), "unknown option -xyz"), (("-foo=1",), "unknown option -foo"),
                             (("--grammar", "root"), "response_format"), (("--uds", "x"), "--host"), (("--mirostat", "2"), "not available"),
                             (("--generation-config", "vllm"), "sampling flags"), (("--enable-force-include-usage",), "include_usage"),
                             (("--structured-outputs-config", "{}"), "disable_any_whitespace"), (("--kv-cache-memory-bytes", "8Q"), "expected a size")):
            with self.subTest(flags=flags):
                self.assertIn(words, self.refusal(*flags))
        self.assertIn("-cram has no effect", self.refusal("-cram", "100"))
        for flag in ("--compilation-config.level=3", "-cc.level=3", "-O.level=3"):
            self.assertIn("has no effect", self.refusal(flag))
        for flag in ("-rea", "--mirostat", "--port"):
            done = subprocess.run([scene.PROGRAM, "serve", flag], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr.splitlines()[0]), (2, f"error: {flag}: no value given"))
        self.assertIn("unknown option --no-such-flag", self.refusal("-n5", "-c4096", "-t", "2", "-yn", "5"))

    def test_work_where_they_can(self):
        flags = ("--predict", "3", "--kv-cache-memory-bytes", "20M", "--max_num_seqs", "2", "-cram", "100", "--mirostat", "0", "--no-repack",
                 "--generation-config", "auto", "-O3", "--enable-expert-parallel", "-y", "-s7")
        with Server(*flags, model=known()) as server:
            self.assertEqual(server.chat("long").json()["usage"]["completion_tokens"], 3)
            self.assertEqual(server.get("/props").json()["total_slots"], 2)
            self.assertLessEqual(server.metrics()["inferno_kv_cache_bytes"], 20 << 20)
            for flag in ("-cram", "--mirostat", "--no-repack", "--generation-config", "-O3", "--enable-expert-parallel"):
                self.assertIn(f"note: {flag} has no effect", server.printed())


class LoadReports(Scene):
    def test_come_with_answers_that_ask_for_them(self):
        for path, body in (("/v1/chat/completions", chat("hi")), ("/v1/completions", {"prompt": "hi", "max_tokens": 2}), ("/v1/responses", {"input": "hi"}),
                           ("/v1/messages", {"max_tokens": 9, **chat("hi")})):
            for stream in (False, True):
                for format, pattern in (("TEXT", r"TEXT named_metrics\.kv_cache_usage_perc=[0-9.]+"), ("JSON", r'JSON \{"named_metrics": \{')):
                    answer = self.server.post(path, {**body, "stream": stream}, **{"endpoint-load-metrics-format": format})
                    self.assertRegex(answer.headers["endpoint-load-metrics"], pattern)
                    if format == "JSON":
                        report = json.loads(answer.headers["endpoint-load-metrics"].removeprefix("JSON "))["named_metrics"]
                        self.assertTrue(0 <= report["kv_cache_usage_perc"] <= 1)
                self.assertNotIn("endpoint-load-metrics", self.server.post(path, {**body, "stream": stream}).headers)


class FilesOfDeploy(unittest.TestCase):
    """The names of metrics in them are compared with /metrics by src/server/monitoring/metrics_test.cpp."""

    def expressions(self, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from [inner] if key == "expr" else self.expressions(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from self.expressions(inner)

    def test_parse(self):
        dashboard = list(self.expressions(json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())))
        self.assertGreater(len(dashboard), 20)
        # Without a reader of YAML: a rule is a line "- alert:", and its expression follows "expr:".
        rules = (ROOT / "deploy/alerts.yml").read_text()
        alerts = re.findall(r"- alert: \w+\n +expr: (?:>-\n)?((?:.|\n)*?)\n +(?:for|labels):", rules)
        self.assertEqual(len(alerts), rules.count("- alert:"))
        for expression in [*dashboard, *alerts]:
            self.assertRegex(expression, r"\b(vllm:|inferno_|process_)[a-z_]+")
            for opening, closing in ("()", "{}", "[]"):
                self.assertEqual(expression.count(opening), expression.count(closing), expression)


class CompatibilityCases(Scene):
    """The requests of gpt-oss's compatibility test, with the arguments that it expects, as history: they keep every byte on
    their way through the template, by the doors that the test uses."""
    file = SHARED / "reference/api/gpt-oss-compatibility-cases.jsonl"

    def cases(self):
        if not self.file.exists():
            self.skipTest("needs the shared reference data")
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def test_keep_their_text(self):
        for case in self.cases():
            tools = [scene.tool(case["tool_name"], **{name: "string" for name in json.loads(case["expected_arguments"])})]
            call = {"id": "call_1", "type": "function", "function": {"name": case["tool_name"], "arguments": case["expected_arguments"]}}
            messages = [{"role": "user", "content": case["input"]}, {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "call_1", "content": "done"}]
            prompt = self.server.post("/apply-template", {"messages": messages, "tools": tools}).json()["prompt"]
            self.assertIn(case["input"], prompt)
            counts = {}
            items = [{"role": "user", "content": case["input"]},
                     {"type": "function_call", "call_id": "call_1", "name": case["tool_name"], "arguments": case["expected_arguments"]},
                     {"type": "function_call_output", "call_id": "call_1", "output": "done"}]
            flat = [{"type": "function", **tools[0]["function"]}]
            counts["chat"] = self.server.post("/v1/chat/completions/input_tokens", {"messages": messages, "tools": tools}).json()["input_tokens"]
            counts["responses"] = self.server.post("/v1/responses/input_tokens", {"input": items, "tools": flat}).json()["input_tokens"]
            self.assertEqual(counts["chat"], counts["responses"], case)


if __name__ == "__main__":
    scene.main()
