"""inferno generate, as a shell sees it: generate_test.py INFERNO"""
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402
from terminal import Terminal  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[2]
GREEDY = ("--temperature", "0", "--device", "cpu")


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}
    return {**kept, "HOME": "/nonexistent", "TERM": "xterm", **more}


def run(*arguments, stdin=b"", code=0, **more):
    done = subprocess.run([PROGRAM, "generate", *map(str, arguments)], input=stdin, capture_output=True, timeout=120,
                          env=environment(**more))
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
    return done


def result(*arguments, **more):
    return json.loads(run(*arguments, "--json", *GREEDY, **more).stdout)


class Scene(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.chat = models.chat_model(cls.path / "models/chatty")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class CacheTypes(unittest.TestCase):
    """--cache-type of every command that builds a KV cache. The built-in model has heads of 32, the tiny Llama of 16."""
    BUILTIN = ROOT / "models/builtin"
    TEXT = "The old man went to the sea and looked at the boats. " * 12

    def shown(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments), "--device", "cpu"], capture_output=True, env=environment(), timeout=120)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stderr.decode() if code else done.stdout.decode()

    def test_change_what_a_token_takes_and_which_context_fits(self):
        whole = json.loads(self.shown("plan", self.BUILTIN, "--json"))
        self.assertEqual((whole["cache_type"], whole["cache_bytes_per_token"]), ("f32", 2 * 8 * 2 * 32 * 4))
        for flags, name, share in ((("--cache-type", "f16"), "f16", 0.5), (("--kv-cache-dtype", "q8_0"), "q8_0", 34 / 128),
                                   (("-ctk", "q8_0", "-ctv", "fp8"), "q8_0,fp8", 33 / 128), (("--cache-type", "fp8,bf16"), "fp8,bf16", 0.375)):
            plan = json.loads(self.shown("plan", self.BUILTIN, "--json", *flags))
            self.assertEqual(plan["cache_type"], name)
            self.assertEqual(plan["cache_bytes_per_token"], share * whole["cache_bytes_per_token"])
            self.assertEqual(plan["cache"], share * whole["cache"])
        page = self.shown("plan", self.BUILTIN, "--cache-type", "q8_0")
        self.assertIn("q8_0, 1088 bytes a token", page)

    def test_change_perplexity_a_little(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "text"
            file.write_text(self.TEXT)
            found = {kind: json.loads(self.shown("perplexity", self.BUILTIN, file, "--window", 64, "--json", "--cache-type", kind))["perplexity"]
                     for kind in ("auto", "f32", "f16", "bf16", "q8_0", "fp8")}
        self.assertEqual(found["auto"], found["f32"])
        for kind in ("f16", "bf16", "q8_0", "fp8"):
            self.assertNotEqual(found[kind], found["f32"], f"{kind} rounds nothing")
            self.assertAlmostEqual(found[kind] / found["f32"], 1, delta=0.05)

    def test_are_taken_by_generate_logits_and_bench(self):
        prompt = ("--prompt", "Once upon a time", "--raw", "-n", "8", "--temperature", "0", "--json")
        answers = {kind: json.loads(self.shown("generate", "-m", self.BUILTIN, *prompt, "--cache-type", kind))["text"] for kind in ("auto", "f32", "f16", "q8_0", "fp8")}
        self.assertEqual(answers["auto"], answers["f32"])
        self.assertTrue(all(answers.values()), answers)
        with tempfile.TemporaryDirectory() as folder:
            written = {}
            for kind in ("auto", "q8_0"):
                path = pathlib.Path(folder) / kind
                self.shown("logits", self.BUILTIN, "--tokens", "5,17,42,99", "-o", path, "--cache-type", kind)
                written[kind] = path.read_bytes()
            self.assertNotEqual(written["auto"], written["q8_0"])
            self.assertEqual(len(written["auto"]), len(written["q8_0"]))
        report = json.loads(self.shown("bench", self.BUILTIN, "-p", "8", "-n", "2", "-r", "1", "--json", "--cache-type", "q8_0,f16"))
        self.assertIn("--cache-type q8_0,f16", json.dumps(report))

    def test_that_are_impossible_are_refused_before_anything_is_loaded(self):
        for flags, code, words in ((("--cache-type", "q4_0"), 2, ("--cache-type \"q4_0\"", "expected auto, f32, f16, bf16, q8_0 or fp8")),
                                   (("-ctv", "Q8_0"), 2, ("--cache-type-v",)), (("--cache-type", "q8_0,"), 2, ("--cache-type \"\"",)),
                                   (("--cache-type", "q8_0"), 4, ("a KV cache of type q8_0", "a head of this model has 16", "fp8, f16 or bf16"))):
            for command in (("generate", "-m", models.LLAMA, "-p", "a", "-n", "1"), ("plan", models.LLAMA)):
                text = self.shown(*command, *flags, code=code)
                for word in words:
                    self.assertIn(word, text)


class Prompts(Scene):
    def test_contradictions_and_empty_names_are_refused(self):
        run("hi", "-m", "", code=2)
        (self.path / "lines.jsonl").write_text('{"prompt": "a"}\n')
        run("hi", "-m", models.LLAMA, "--batch", self.path / "lines.jsonl", code=2)

    def test_a_result_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "tokenize", models.LLAMA, "--text", "hi"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 6)

    def test_come_as_argument_option_file_and_standard_input(self):
        (self.path / "prompt.txt").write_text("Hello there")
        limit = ("-n", "5", *GREEDY)
        wanted = run("Hello there", "-m", models.LLAMA, *limit).stdout
        self.assertEqual(run("-p", "Hello there", "--model", models.LLAMA, *limit).stdout, wanted)
        self.assertEqual(run("-f", self.path / "prompt.txt", "-m", models.LLAMA, *limit).stdout, wanted)
        self.assertEqual(run("-m", models.LLAMA, *limit, stdin=b"Hello there").stdout, wanted)
        self.assertEqual(run("-", "-m", models.LLAMA, *limit, stdin=b"Hello there").stdout, wanted)
        self.assertTrue(wanted.endswith(b"\n"))

    def test_a_chat_model_chats_unless_told_otherwise(self):
        limit = ("-n", "4", *GREEDY)
        said = run("hi", "-m", self.chat, *limit)
        self.assertEqual(said.stdout, run("hi", "-m", self.chat, "--chat", *limit).stdout)
        self.assertIn("note: a chat model answers the prompt; --raw continues it\n", said.stderr.decode())
        self.assertEqual(run("hi", "-m", self.chat, "--raw", *limit).stdout, run("hi", "-m", models.LLAMA, *limit).stdout)
        self.assertIn("cannot be used together", run("hi", "--chat", "--raw", code=2).stderr.decode())

    def test_standard_input_joins_the_prompt(self):
        limit = ("-n", "5", "-m", models.LLAMA, *GREEDY)
        wanted = run("Summarize\n\na text\n", *limit).stdout
        self.assertEqual(run("Summarize", *limit, stdin=b"a text\n").stdout, wanted)
        self.assertEqual(run("-p", "Summarize", *limit, stdin=b"a text\n").stdout, wanted)
        self.assertEqual(run("-f", "-", *limit, stdin=b"Summarize\n\na text\n").stdout, wanted)

    def test_quiet_means_errors_only(self):
        self.assertEqual(run("hi", "-q", "-n", "2", *GREEDY).stderr, b"")
        self.assertIn(b"error", run("hi", "-q", "-m", "nothing", code=3).stderr)

    def test_stderr_may_be_closed_or_full(self):
        wanted = run("Once", "-n", "3", *GREEDY).stdout
        for stderr in ("2>&-", "2>/dev/full"):
            done = subprocess.run(["sh", "-c", f'exec "$0" generate Once -n 3 --temperature 0 --device cpu {stderr}', PROGRAM],
                                  stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment())
            self.assertEqual((done.returncode, done.stdout), (0, wanted), stderr)

    def test_a_file_of_weights_means_its_folder(self):
        weights = next(models.LLAMA.glob("*.safetensors"))
        self.assertEqual(run("hi", "-m", weights, "-n", "3", *GREEDY).stdout, run("hi", "-m", models.LLAMA, "-n", "3", *GREEDY).stdout)
        alone = self.path / "alone.safetensors"
        alone.write_bytes(weights.read_bytes()[:100])
        self.assertIn("weights alone", run("hi", "-m", alone, code=4).stderr.decode())

    def test_offline_no_error_advises_a_download(self):
        said = run("hi", "-m", "org/name", code=3, HF_HUB_OFFLINE="1").stderr.decode()
        self.assertNotIn("inferno download", said)
        self.assertIn("unset HF_HUB_OFFLINE", said)

    def test_more_threads_than_cores_are_said_in_one_line(self):
        limit = ("-n", "1", "-m", models.LLAMA, *GREEDY)
        said = run("hi", *limit, "--threads", "300").stderr.decode()
        self.assertRegex(said, r"note: 300 threads share the \d+ cores? that this process may use\n")
        self.assertNotIn("threads share the", run("hi", *limit, "--threads", "1").stderr.decode())

    def test_options_without_effect_are_named(self):
        short = ("-n", "2", *GREEDY)
        said = run("hi", "-m", models.LLAMA, *short, "--no-think", "--reasoning-effort", "low").stderr.decode()
        self.assertIn("note: --no-think has no effect on text completion", said)
        self.assertIn("note: --reasoning-effort has no effect on text completion", said)
        said = run("hi", "-m", self.chat, "--chat", *short, "--think").stderr.decode()
        self.assertIn("note: --think has no effect: this model has no thinking mode\n", said)
        thinker = models.chat_model(self.path / "models/thinker")
        template = thinker / "chat_template.jinja"
        template.write_text(template.read_text() + "{% if enable_thinking is defined and not enable_thinking %}/no{% endif %}")
        self.assertNotIn("note", run("hi", "-m", thinker, "--chat", *short, "--no-think").stderr.decode())
        self.assertIn("note: --think has no effect: it is this model's default\n", run("hi", "-m", thinker, "--chat", *short, "--think").stderr.decode())
        (self.path / "one.jsonl").write_text('{"prompt": "a"}\n')
        said = run("-m", models.LLAMA, "--batch", self.path / "one.jsonl", "--stream", *short).stderr.decode()
        self.assertIn("note: --stream has no effect with --batch", said)

    def test_an_unknown_effort_is_refused_before_anything_is_loaded(self):
        done = run("hi", "-m", models.LLAMA, "--chat", "--reasoning-effort", "huge", code=2)
        self.assertIn(b'expected low, medium or high, found "huge"', done.stderr)
        (self.path / "efforts.jsonl").write_text('{"prompt": "a", "chat": true, "reasoning_effort": "huge"}\n')
        done = run("-m", self.chat, "--batch", self.path / "efforts.jsonl", code=1)
        self.assertIn('expected low, medium or high, found "huge"', json.loads(done.stdout)["error"])

    def test_verbose_reports_loading_and_conversions(self):
        said = run("hi", "-m", models.ENDLESS, "-n", "1", *GREEDY, "--verbose").stderr.decode()
        self.assertRegex(said, r"loaded [\d.]+ GB in [\d.]+ s, [\d.]+ GB/s\n")
        self.assertIn("converted: model.layers.*.mlp.experts.gate_up_proj (4 tensors): rows reordered; ", said)
        self.assertRegex(said, r"\nconverted: [^\n]*\bmodel\.norm\.weight\b[^\n]*: bf16 to f32; ")
        self.assertNotIn("converted", run("hi", "-m", models.ENDLESS, "-n", "1", *GREEDY).stderr.decode())

    def test_a_prompt_that_is_too_long_gets_advice_that_can_be_followed(self):
        long = "word " * 3000
        said = run(long, "-m", models.LLAMA, "-n", "1", *GREEDY, "--context", "64", code=2).stderr.decode()
        self.assertIn("start with a longer context", said)
        said = run(long * 3, "-m", models.LLAMA, "-n", "1", *GREEDY, code=2).stderr.decode()
        self.assertIn("this is the model's maximum context", said)

    def test_given_twice_are_refused(self):
        done = run("a", "-p", "b", "-m", models.LLAMA, code=2)
        self.assertIn(b"more than once", done.stderr)
        self.assertEqual(done.stdout, b"")

    def test_longer_than_the_context_are_refused_with_both_numbers(self):
        done = run("-m", models.LLAMA, "--context", "64", *GREEDY, stdin=b"a b c d e f g h " * 40, code=2)
        self.assertRegex(done.stderr.decode(), r"a prompt of \d{3,} tokens .* context of 64")
        self.assertEqual(done.stdout, b"")

    def test_that_cannot_fit_are_refused_while_they_are_read(self):
        process = subprocess.Popen([PROGRAM, "generate", "-m", models.LLAMA, "--context", "64", *GREEDY], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        written = 0
        with self.assertRaises(BrokenPipeError):
            while written < 32 << 20:
                written += os.write(process.stdin.fileno(), b"a word or two " * 1000)
        said = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 2, said)
        self.assertRegex(said, r"error: standard input: more than [\d,]+ bytes cannot fit a context of 64 tokens\nnext:  shorten it, or choose a longer --context")
        # No model has tokens of thousands of bytes, but of a thousand blanks: only what cannot fit is refused.
        self.assertRegex(run("-m", models.LLAMA, *GREEDY, stdin=b"x" * (1 << 20), code=2).stderr.decode(), r"a prompt of at least \d+ tokens")

    def test_a_silent_pipe_is_announced(self):
        for words, note in ((("Hello",), "note: waiting for the rest of the prompt on standard input; </dev/null skips it\n"),
                            ((), "note: waiting for the prompt on standard input\n")):
            process = subprocess.Popen([PROGRAM, "generate", *words, "-m", models.LLAMA, "-n", "2", *GREEDY], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
            self.addCleanup(process.kill)
            self.assertTrue(select.select([process.stderr], [], [], 20)[0], "nothing was said")
            self.assertEqual(process.stderr.readline().decode(), note)
            said = process.communicate(b"there", timeout=60)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(said[0], run("\n\n".join((*words, "there")), "-m", models.LLAMA, "-n", "2", *GREEDY).stdout)
        self.assertNotIn("waiting", run("Hello", "-m", models.LLAMA, "-n", "2", *GREEDY).stderr.decode())

    def test_that_are_not_utf8_are_refused(self):
        self.assertIn(b"UTF-8", run("-m", models.LLAMA, *GREEDY, stdin=b"ab\xff", code=2).stderr)

    def test_spell_control_tokens_as_text_unless_asked(self):
        plain = result("<|endoftext|>", "-m", models.LLAMA, "-n", "1")["prompt_tokens"]
        parsed = result("<|endoftext|>", "-m", models.LLAMA, "-n", "1", "--parse-special")["prompt_tokens"]
        self.assertLess(parsed, plain)


class Results(Scene):
    def test_as_json_have_counts_timings_seed_and_reason(self):
        answer = result("Hello", "-m", models.LLAMA, "-n", "6", "--seed", "42", "--ignore-eos")
        self.assertEqual((answer["completion_tokens"], answer["finish_reason"], answer["seed"]), (6, "length", 42))
        self.assertGreater(answer["prompt_tokens"], 0)
        for key in ("prompt_ms", "predicted_ms", "predicted_per_second", "first_token_ms", "load_ms", "cache_n"):
            self.assertIn(key, answer["timings"])
        self.assertEqual(answer["model"], str(models.LLAMA))
        for key, value in answer["timings"].items():
            self.assertEqual(value, round(value, 3), key)

    def test_are_the_same_streamed_or_not(self):
        arguments = ("Hello", "-m", models.LLAMA, "-n", "12", "--ignore-eos", *GREEDY)
        self.assertEqual(run(*arguments, "--stream").stdout, run(*arguments, "--no-stream").stdout)

    def test_follow_the_seed(self):
        arguments = ("Hello", "-m", models.LLAMA, "-n", "12", "--temperature", "1.5", "--ignore-eos", "--device", "cpu")
        first = run(*arguments, "--seed", "1").stdout
        self.assertEqual(run(*arguments, "--seed", "1").stdout, first)
        self.assertNotEqual(run(*arguments, "--seed", "2").stdout, first)

    def test_with_log_probabilities(self):
        answer = result("Hello", "-m", models.LLAMA, "-n", "3", "--ignore-eos", "--logprobs", "2")
        tokens = answer["logprobs"]["content"]
        self.assertEqual(len(tokens), 3)
        for token in tokens:
            self.assertLessEqual(token["logprob"], 0)
            self.assertEqual(len(token["top_logprobs"]), 2)
            self.assertEqual(token["top_logprobs"][0]["id"], token["id"])  # greedy takes the likeliest
        self.assertIn(b"--json", run("x", "-m", models.LLAMA, "--logprobs", "2", code=2).stderr)

    def test_end_before_a_stop_string(self):
        whole = result("Hello", "-m", models.LLAMA, "-n", "24", "--ignore-eos")["text"]
        stop = whole[8:10]
        answer = result("Hello", "-m", models.LLAMA, "-n", "24", "--ignore-eos", "--stop", stop)
        self.assertEqual(answer["text"], whole[: whole.index(stop)])
        self.assertEqual((answer["finish_reason"], answer["stopped_by"]), ("stop", stop))

    def test_follow_logit_bias(self):
        answer = result("Hello", "-m", models.LLAMA, "-n", "2", "--ignore-eos", "--logit-bias", "300=100", "--logprobs", "0")
        self.assertEqual([token["id"] for token in answer["logprobs"]["content"]], [300, 300])

    def test_have_no_text_where_the_model_has_more_rows_than_tokens(self):
        folder = models.padded_model(self.path / "models/padded", tokens=300)
        answer = result("Hello", "-m", folder, "-n", "2", "--ignore-eos", "--logit-bias", "400=100", "--logprobs", "0")
        self.assertEqual([token["id"] for token in answer["logprobs"]["content"]], [400, 400])
        self.assertEqual((answer["text"], answer["completion_tokens"]), ("", 2))

    def test_go_to_a_file(self):
        run("Hello", "-m", models.LLAMA, "-n", "2", *GREEDY, "-o", self.path / "out.txt")
        self.assertGreater((self.path / "out.txt").stat().st_size, 0)

    def test_end_quietly_when_the_reader_closes_the_pipe(self):
        reader, writer = os.pipe()
        process = subprocess.Popen([PROGRAM, "generate", "Hello", "-m", models.LLAMA, "--stream", "--ignore-eos", *GREEDY],
                                   stdout=writer, stderr=subprocess.PIPE, env=environment())
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        self.assertEqual(process.wait(20), 0)
        self.assertNotIn(b"error", process.stderr.read())
        process.stderr.close()


class Flags(Scene):
    def test_out_of_range_are_named(self):
        for flag, value in (("--temperature", "-1"), ("--top-p", "1.5"), ("--max-tokens", "0"), ("--seed", "x")):
            done = run("x", "-m", models.LLAMA, flag, value, code=2)
            self.assertIn(flag.encode() + b": ", done.stderr)

    def test_name_a_model_by_its_folder_or_its_name(self):
        folder = str(self.path / "models")
        by_name = run("Hi", "-m", "chatty", "-n", "2", *GREEDY, INFERNO_MODELS=folder)
        self.assertEqual(by_name.stdout, run("Hi", "-m", self.chat, "-n", "2", *GREEDY).stdout)
        named = run("Hi", "-n", "2", "-m", "chatty", *GREEDY, INFERNO_MODELS=folder)
        self.assertNotIn(b"model:", named.stderr)
        self.assertIn(b"models here: chatty, builtin", run("Hi", "-m", "other", code=3, INFERNO_MODELS=folder).stderr)
        self.assertIn(b"model: builtin", run("Hi", "-n", "2", *GREEDY, XDG_CACHE_HOME=str(self.path / "cache")).stderr)

    def test_chat_wraps_the_prompt_in_the_template(self):
        raw = result("<s", "-m", self.chat, "-n", "4", "--raw")
        chat = result("<s", "-m", self.chat, "-n", "4", "--chat")
        system = result("<s", "-m", self.chat, "-n", "4", "--system", "Be brief.")
        self.assertLess(raw["prompt_tokens"], chat["prompt_tokens"])
        self.assertLess(chat["prompt_tokens"], system["prompt_tokens"])

    def test_chat_needs_a_chat_model(self):
        self.assertIn(b"chat template", run("Hi", "-m", models.LLAMA, "--chat", *GREEDY, code=4).stderr)

    def test_deterministic_means_the_same_every_time(self):
        arguments = ("Hello", "-m", models.LLAMA, "-n", "8", "--temperature", "2", "--deterministic", "--device", "cpu", "--json")
        first, second = (json.loads(run(*arguments).stdout) for _ in range(2))
        self.assertEqual((first["text"], first["seed"]), (second["text"], 0))


class Interrupts(Scene):
    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, "generate", *map(str, arguments), "--device", "cpu"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment())

    def test_print_the_partial_answer_and_exit_with_130(self):
        process = self.start("Hello", "-m", models.ENDLESS, "--stream", "--ignore-eos", "--temperature", "0")
        first = os.read(process.stdout.fileno(), 1)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - started, 2)
        self.assertTrue((first + rest).endswith(b"\n"))

    def test_still_write_complete_json(self):
        process = self.start("Hello", "-m", models.ENDLESS, "--json", "--ignore-eos", "--temperature", "0")
        while b"device:" not in process.stderr.readline():
            pass
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(out)["finish_reason"], "cancelled")


class OnATerminal(Scene):
    def test_text_streams_and_cannot_control_it(self):
        terminal = Terminal([PROGRAM, "generate", "Hello", "-m", str(models.LLAMA), "-n", "200", "--ignore-eos", *GREEDY],
                            environment())
        try:
            self.assertEqual(terminal.ended(), 0)  # the screen fails on any escape sequence it does not know
        finally:
            terminal.close()
        self.assertNotIn(b"\x1b]", terminal.raw)

    def test_text_streams_by_default(self):
        long = ("--raw", "--ignore-eos", "--temperature", "0", "--device", "cpu")
        terminal = Terminal([PROGRAM, "generate", "Hello", "-m", str(models.ENDLESS), *long], environment())
        try:
            terminal.wait_for(r"device: .*\n(?!loading).{10}")
            self.assertIsNone(terminal.status)
            terminal.send("\x03")
            self.assertEqual(terminal.ended(), 130)
        finally:
            terminal.close()

    def test_a_terminal_that_knows_no_escapes_gets_none(self):
        terminal = Terminal([PROGRAM, "generate", "Hello", "-m", str(models.LLAMA), "-n", "3", *GREEDY],
                            environment(TERM="dumb"))
        try:
            self.assertEqual(terminal.ended(), 0)
        finally:
            terminal.close()
        self.assertNotIn(b"\x1b", terminal.raw)
        self.assertNotIn(b"loading", terminal.raw)

    def test_blank_standard_input_is_no_prompt(self):
        done = subprocess.run([PROGRAM, "generate", "-m", str(models.LLAMA)], input=b" \n\t\n", capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no prompt given: standard input is empty", done.stderr)

    def test_a_missing_prompt_is_reported_at_once(self):
        terminal = Terminal([PROGRAM, "generate", "-m", str(models.LLAMA)], environment())
        try:
            terminal.wait_for("no prompt given")
            self.assertEqual(terminal.ended(), 2)
        finally:
            terminal.close()


class Batches(Scene):
    def batch(self, lines, *arguments, code=0):
        file = self.path / "batch.jsonl"
        file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        done = run("--batch", file, *arguments, "--device", "cpu", code=code)
        return [json.loads(line) for line in done.stdout.splitlines()], done

    def test_answer_in_order_as_single_requests_do(self):
        lines = [{"prompt": f"Story {number}", "max_tokens": 3 + number % 7, "temperature": 0, "ignore_eos": True}
                 for number in range(40)]
        results, _ = self.batch(lines, "-m", models.LLAMA, "--parallel", "8", "--deterministic")
        self.assertEqual([one["completion_tokens"] for one in results], [line["max_tokens"] for line in lines])
        for number in (0, 17, 39):
            alone = result(lines[number]["prompt"], "-m", models.LLAMA, "-n", lines[number]["max_tokens"], "--ignore-eos",
                           "--deterministic")
            self.assertEqual(results[number]["text"], alone["text"])

    def test_take_flags_as_defaults_and_keep_ids(self):
        results, _ = self.batch([{"id": "a", "prompt": "x", "seed": 7}, {"id": 2, "prompt": "x", "max_tokens": 1}],
                                "-m", models.LLAMA, "-n", "4", "--temperature", "1", "--ignore-eos", "--seed", "5")
        self.assertEqual([(one["id"], one["completion_tokens"], one["seed"]) for one in results], [("a", 4, 7), (2, 1, 5)])

    def test_know_every_key(self):
        line = {"prompt": "x", "max_tokens": 2, "temperature": 0.5, "top_k": 5, "top_p": 0.9, "min_p": 0.01, "typical_p": 0.95,
                "repeat_penalty": 1.1, "presence_penalty": 0.1, "frequency_penalty": -0.1, "seed": 3, "stop": ["never", "ever"],
                "ignore_eos": True, "logit_bias": {"5": -1.5}, "logprobs": 1, "parse_special": False, "custom_id": "x"}
        results, _ = self.batch([line], "-m", models.LLAMA)
        self.assertEqual((results[0]["completion_tokens"], results[0]["id"], len(results[0]["logprobs"]["content"])), (2, "x", 2))

    def test_report_bad_lines_in_their_places_and_exit_with_1(self):
        good = {"prompt": "x", "max_tokens": 2, "temperature": 0}
        picture = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]}
        results, done = self.batch([good, "{bad", good, {"prompt": "x", "temprature": 1}, {"prompt": "word " * 900}, good, picture],
                                   "-m", self.chat, "--context", "128", code=1)
        self.assertEqual(["error" in one for one in results], [False, True, False, True, True, False, True])
        self.assertTrue(all(one["error"].startswith(f"line {number}: ") for number, one in enumerate(results, 1) if "error" in one), results)
        self.assertIn("temprature", results[3]["error"])
        self.assertRegex(results[4]["error"], r"a prompt of \d+ tokens .* context of 128")
        self.assertIn(b"4 of 7 lines failed", done.stderr)

    def test_stop_strings_end_their_own_line_only(self):
        whole = result("Hello", "-m", models.LLAMA, "-n", "24", "--ignore-eos")["text"]
        stop = whole[8:10]
        line = {"prompt": "Hello", "max_tokens": 24, "temperature": 0, "ignore_eos": True}
        results, _ = self.batch([line, {**line, "stop": stop}, {**line, "stop": [stop, "never"]}], "-m", models.LLAMA)
        self.assertEqual([one["text"] for one in results], [whole, whole[: whole.index(stop)], whole[: whole.index(stop)]])

    def test_hold_conversations_too(self):
        results, _ = self.batch([{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2},
                                 {"prompt": "Hi", "chat": True, "max_tokens": 2}], "-m", self.chat, "--temperature", "0")
        self.assertEqual(results[0]["text"], results[1]["text"])
        self.assertEqual(results[0]["prompt_tokens"], results[1]["prompt_tokens"])

    def test_show_a_bar_on_a_terminal(self):
        file = self.path / "bar.jsonl"
        file.write_text((json.dumps({"prompt": "x", "max_tokens": 200, "ignore_eos": True}) + "\n") * 30)
        terminal = Terminal(["/bin/sh", "-c", f"'{PROGRAM}' generate -m '{models.LLAMA}' --batch '{file}' > '{self.path}/o'"],
                            environment())
        try:
            self.assertEqual(terminal.ended(60), 0)
        finally:
            terminal.close()
        self.assertRegex(terminal.raw.decode(), r"\[#* *\] \d+/30, \d+ tokens/s")
        self.assertEqual((self.path / "o").read_bytes().count(b"\n"), 30)


@unittest.skipIf(models.stories() is None, "no ../shared/reference")
class Stories(unittest.TestCase):
    def test_are_the_references_word_for_word(self):
        for prompt, story in models.stories():
            answer = result(prompt, "-m", models.STORIES)
            self.assertEqual((answer["text"], answer["finish_reason"]), (story, "stop"))
        prompt, story = models.stories()[0]
        self.assertEqual(run(prompt, "-m", models.STORIES, *GREEDY).stdout.decode(), story + "\n")


if __name__ == "__main__":
    unittest.main()
