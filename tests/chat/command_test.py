#!/usr/bin/env python3
"""`inferno template` from outside: command_test.py PROGRAM SHARED_FOLDER."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
SHARED = pathlib.Path(os.environ.get("INFERNO_SHARED", sys.argv[2]))
HELLO = {"messages": [{"role": "user", "content": "Hi <|im_end|>"}]}


class TemplateCommand(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)

    def tearDown(self):
        self.scratch.cleanup()

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    def run_template(self, model, conversation, *options):
        messages = self.write("messages.json", conversation)
        command = [PROGRAM, "template", str(model), "--messages", messages, *options]
        return subprocess.run(command, capture_output=True, check=False)

    def test_messages_come_from_standard_input_and_as_an_array(self):
        model = self.write("x.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
        for conversation in (HELLO, HELLO["messages"]):
            done = subprocess.run([PROGRAM, "template", model, "--messages", "-"], input=json.dumps(conversation).encode(), capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, b"user: Hi <|im_end|>\n"), done.stderr)
            self.expect_text("user: Hi <|im_end|>\n", model, conversation)
        done = subprocess.run([PROGRAM, "template", model, "--messages", "-"], input=b'"text"', capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"expected an array of messages", done.stderr)

    def expect_text(self, expected, model, conversation=HELLO, *options):
        done = self.run_template(model, conversation, *options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout.decode(), expected)

    def expect_refusal(self, code, word, model, conversation=HELLO, *options):
        done = self.run_template(model, conversation, *options)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertEqual(done.stdout, b"")
        self.assertIn(word, done.stderr.decode())

    def test_prints_exactly_the_text(self):
        self.expect_text("[Hi <|im_end|>]\n\n", self.write("t.jinja", "[{{ messages[0].content }}]\n\n\n"))

    def test_passes_what_apply_chat_template_passes(self):
        source = "{{ tools is none }} {{ documents is none }} {{ add_generation_prompt }} {{ extra }}"
        self.expect_text("True True False 5", self.write("t.jinja", source), {**HELLO, "extra": 5})

    def test_shows_the_time_and_tokens_it_is_given(self):
        model = self.write("t.jinja", "{{ bos_token }}{{ strftime_now('%d %b %Y %H:%M:%S') }}{{ eos_token }}")
        self.expect_text("<s>05 Aug 2025 14:30:00</s>", model, HELLO, "--now", "2025-08-05T14:30:00", "--bos", "<s>", "--eos", "</s>")
        self.expect_text("05 Aug 2025 14:30:00", model, HELLO, "--now", "2025-08-05 14:30")
        self.expect_text("05 Aug 2025 00:00:00", model, HELLO, "--now", "2025-08-05")
        self.expect_text("05 Aug 2025 14:30:00", model, HELLO, "--now", "2025-08-05T14:30:00Z")
        self.expect_text("05 Aug 2025 14:30:00", model, HELLO, "--now", "2025-08-05T14:30Z")
        for wrong in ["tomorrow", "2025-13-01", "2025-08-05T25:00", "2025-08-05T14", "2025-08-05Z", "2025-08-05T14:30:00ZZ", "Z"]:
            self.expect_refusal(2, "--now", model, HELLO, "--now", wrong)

    def test_takes_no_other_file_for_a_template(self):
        self.expect_refusal(2, "expected a model directory, a .gguf file or a template", self.write("weights.bin", "{{ 1 }}"))
        self.expect_refusal(3, "nowhere", self.folder / "nowhere")
        self.expect_text("1", self.write("t.j2", "{{ 1 }}"))

    def test_prints_nothing_when_the_template_refuses(self):
        model = self.write("t.jinja", "before {{ raise_exception('no such role') }}")
        self.expect_refusal(4, "no such role", model)
        self.expect_refusal(4, "line 1", self.write("t.jinja", "{{ x.y }}"))
        self.expect_refusal(4, "line 2", self.write("t.jinja", "\n{% if %}"))
        self.expect_refusal(4, "limit of 100000 items in a range", self.write("t.jinja", "{{ range(100001) }}"))

    def test_names_what_is_wrong_with_the_messages(self):
        model = self.write("t.jinja", "x")
        self.expect_refusal(2, "messages", model, {"tools": []})
        self.expect_refusal(2, "messages", model, 3)
        self.expect_refusal(2, "messages", model, {"messages": "hi"})
        self.expect_refusal(4, "messages.json", model, "{not json")
        self.expect_refusal(3, "nowhere", self.folder / "nowhere.jinja")

    def test_finds_the_template_of_a_model_directory(self):
        self.write("m/tokenizer_config.json", {
            "bos_token": {"content": "<b>"},
            "chat_template": [{"name": "default", "template": "{{ bos_token }}plain"}, {"name": "tool_use", "template": "tools"}]})
        self.expect_text("<b>plain", self.folder / "m")
        self.expect_text("<other>plain", self.folder / "m", HELLO, "--bos", "<other>")
        self.expect_text("tools", self.folder / "m", {**HELLO, "tools": [{"type": "function"}]})
        self.write("m/chat_template.jinja", "file")
        self.expect_text("file", self.folder / "m")

    def test_gives_a_model_without_a_template_the_format_of_its_control_tokens(self):
        self.write("m/tokenizer_config.json", {"added_tokens_decoder": {"1": {"content": "<|im_start|>"}, "2": {"content": "<|im_end|>"}}})
        self.expect_text("<|im_start|>user\nHi <|im_end|><|im_end|>\n", self.folder / "m")

    def test_writes_harmony_natively_for_its_vocabulary_alone(self):
        vocabulary = SHARED / "reference/tokenizers/gpt-oss/tokenizer.json"
        if not vocabulary.is_file():
            self.skipTest("no ../shared/reference/tokenizers/gpt-oss")
        (self.folder / "m").mkdir()
        (self.folder / "m/tokenizer.json").symlink_to(vocabulary)
        harmony = ("<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
                   "Current date: 2025-08-05\n\nReasoning: high\n\n# Valid channels: analysis, commentary, final. Channel must be "
                   "included for every message.<|end|><|start|>user<|message|>Hi <|im_end|><|end|><|start|>assistant")
        conversation = {**HELLO, "reasoning_effort": "high", "add_generation_prompt": True}
        self.expect_text(harmony, self.folder / "m", conversation, "--now", "2025-08-05")
        template = self.write("m/chat_template.jinja", "{#- <|channel|> -#}own")
        self.expect_text(harmony, self.folder / "m", conversation, "--now", "2025-08-05")
        self.expect_text("own", template, conversation)
        self.expect_refusal(2, "messages[0].role", self.folder / "m", {"messages": [{"role": "robot"}]})
        (self.folder / "m/tokenizer.json").unlink()
        self.expect_text("own", self.folder / "m", conversation)

    def test_uses_the_own_template_of_a_small_model_with_channels(self):
        self.write("m/tokenizer.json", {"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})
        self.write("m/chat_template.jinja", "<|start|>{{ messages[0].content }}<|channel|>final<|message|>")
        self.expect_text("<|start|>Hi <|im_end|><|channel|>final<|message|>", self.folder / "m")

    def test_shows_conversations_in_the_terms_of_the_template(self):
        self.write("m/chat_template.jinja", "{{ messages[0].role }} {{ messages[0].content }} {{ messages[1].tool_calls[0].function.arguments | tojson }}")
        call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]}
        developer = {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
        self.expect_text('system a\nb {"a": 1}', self.folder / "m", {"messages": [developer, call]})

    def test_says_when_a_model_does_not_chat(self):
        self.write("m/tokenizer_config.json", {"bos_token": "<s>"})
        self.expect_refusal(4, "no chat template", self.folder / "m")

    def test_renders_the_reference_conversations(self):
        folder = SHARED / "reference/chat"
        if not folder.is_dir():
            self.skipTest("no ../shared/reference/chat")
        for path in sorted(folder.glob("*.json"))[::4]:
            suite = json.loads(path.read_text(encoding="utf-8"))
            options = ["--now", suite["now"], "--bos", suite["bos_token"], "--eos", suite["eos_token"]]
            for case in suite["cases"]:
                with self.subTest(template=suite["template"], case=case["name"]):
                    if "error" in case:
                        word = case["message"] if case["error"] == "TemplateError" else "line"
                        self.expect_refusal(4, word, path.with_suffix(".jinja"), case["input"], *options)
                    else:
                        self.expect_text(case["expected"], path.with_suffix(".jinja"), case["input"], *options)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
