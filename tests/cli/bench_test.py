"""inferno bench as a user runs it, on checkpoints and shapes: bench_test.py INFERNO"""
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402

PROGRAM = os.path.abspath(sys.argv.pop(1))
TOOL = models.ROOT / "tools/make_shape_checkpoint.py"


def inferno(*arguments, code=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=120)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
    return done


def bench(*arguments, **more):
    return inferno("bench", models.LLAMA, "--device", "cpu", "-p", "16,32", "-n", "8", "-d", "0,16", "-b", "1,2", "-r", "2", *arguments, **more)


class Scene(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)


class Constraints(Scene):
    CASES = models.ROOT / "tests/data/constraints.jsonl"

    def test_are_compiled_and_followed(self):
        found = json.loads(inferno("bench", "--constrain", self.CASES, "-m", models.LLAMA, "--json").stdout)
        self.assertEqual((found["constraints"], found["refused"], found["beyond_limits"]), (5, 1, 0))
        once = json.loads(inferno("bench", "--constrain", self.CASES, "-m", models.LLAMA, "-r", "1", "--json").stdout)
        self.assertEqual((found["repeat"], once["repeat"]), (3, 1))
        for count in ("tokens", "forced", "constraints"):
            self.assertEqual(found[count], once[count])
        for times in ("compile_ms", "mask_us"):
            self.assertEqual(found[times]["count"], once[times]["count"])
        self.assertEqual(found["compile_ms"]["count"], 4)
        # A mask for each token, and one more at the end of each text that was not rejected.
        self.assertGreater(found["mask_us"]["count"], found["tokens"])
        self.assertGreater(found["tokens"], found["forced"])
        self.assertGreater(found["forced"], 0)
        for times in (found["compile_ms"], found["mask_us"]):
            self.assertLessEqual(times["p50"], times["p99"])
            self.assertLessEqual(times["p99"], times["p99.9"])
            self.assertLessEqual(times["p99.9"], times["max"])

    def test_are_shown_as_a_table(self):
        table = inferno("bench", models.LLAMA, "--constrain", self.CASES).stdout.decode()
        self.assertIn("5 constraints, 1 of them refused", table)
        self.assertIn("| | count | mean | p50 | p99 | p99.9 | max |", table)

    def test_must_have_the_form_of_cases(self):
        path = self.path / "cases.jsonl"
        path.write_text('{"texts": []}\n')
        self.assertIn(b"line 1 has no constraint", inferno("bench", models.LLAMA, "--constrain", path, code=2).stderr)
        inferno("bench", "--constrain", self.CASES, "--shape", "gpt2", code=2)


class Results(Scene):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.found = json.loads(bench("-o", "json", "--plot", pathlib.Path(folder) / "plot.svg").stdout)
            cls.drawn = pathlib.Path(folder, "plot.svg").read_bytes()
            cls.plot = xml.dom.minidom.parse(f"{folder}/plot.svg")

    def test_have_llama_benchs_names_in_every_form(self):
        names = ["pp16", "pp32", "tg8", "tg8 @ d16"] * 2
        found = self.found
        self.assertEqual([row["test"] for row in found["results"]], names)
        self.assertEqual([row["batch"] for row in found["results"]], [1] * 4 + [2] * 4)
        rows = list(csv.DictReader(bench("-o", "csv").stdout.decode().splitlines()))
        self.assertEqual([row["test"] for row in rows], names)
        self.assertGreater(float(rows[2]["milliseconds"]), 0)
        self.assertGreater(float(rows[2]["share_of_bandwidth"]), 0)
        table = bench().stdout.decode()
        self.assertIn("| test | batch | tok/s | ± | ms/step | GB/s | of bandwidth |", table)
        self.assertIn("| tg8 @ d16 | 2 |", table)

    def test_can_be_kept(self):
        found = self.found
        for key in ("command", "date", "host", "device", "kernels", "version"):
            self.assertTrue(found[key], key)
        self.assertIn("--prompt 16,32 --generate 8 --depth 0,16 --batch 1,2 --repeat 2", found["command"])
        self.assertEqual(len(found["results"][0]["seconds"]), 2)
        self.assertTrue(all(one["tensor"] and one["change"] and one["why"] for one in found["conversions"]))

    def test_can_be_drawn(self):
        # Decoding: two batches at two depths in two panels. Prompts: two lengths for two batches.
        self.assertEqual(len(self.plot.getElementsByTagName("circle")), 4 + 4 + 4)
        bench("--plot", "/dev/null", code=2)

    def test_can_be_drawn_later(self):
        stored, plot = self.path / "stored.json", self.path / "plot.svg"
        stored.write_text(json.dumps(self.found))
        inferno("bench", "--from", stored, "--plot", plot)
        self.assertEqual(plot.read_bytes(), self.drawn)
        self.assertIn(b"--plot", inferno("bench", "--from", stored, code=2).stderr)
        inferno("bench", models.LLAMA, "--from", stored, "--plot", plot, code=2)
        inferno("bench", "--from", self.path / "nothing.json", "--plot", plot, code=3)

    def test_the_roofline_is_seen_even_beside_one_result(self):
        inferno("bench", models.LLAMA, "--device", "cpu", "-p", "0", "-n", "2", "-r", "1", "--plot", self.path / "one.svg")
        limits = [path for path in xml.dom.minidom.parse(str(self.path / "one.svg")).getElementsByTagName("path")
                  if path.getAttribute("stroke-dasharray")]
        self.assertTrue(limits)
        for path in limits:
            self.assertIn(" L", path.getAttribute("d"))

    def test_of_a_shape_are_measured_on_random_weights(self):
        found = json.loads(inferno("bench", "--shape", "gpt2", "--weights", "q8_0", "-p", "8", "-n", "2", "-r", "1", "--device", "cpu",
                                   "-o", "json").stdout)
        self.assertEqual((found["model"], found["weights"]), ("gpt2", "q8_0"))
        self.assertTrue(found["command"].startswith("inferno bench --shape gpt2 --weights q8_0 "))

    def test_show_answers_under_a_schema_beside_free_ones(self):
        schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["a", "b"]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "schema.json"
            path.write_text(json.dumps(schema))
            found = json.loads(inferno("bench", models.LLAMA, "--device", "cpu", "-p", "0", "-n", "16", "-b", "1,2", "-r", "1", "--engine",
                                       "--schema", path, "--temperature", "1", "--json").stdout)
            rows = [(row["test"], row["batch"]) for row in found["results"] if row["test"].startswith("engine")]
            self.assertEqual(rows, [("engine tg16", 1), ("engine tg16 schema", 1), ("engine tg16", 2), ("engine tg16 schema", 2), ("engine tg16 half", 2)])
            for row in found["results"]:
                constrained = row["test"].endswith((" schema", " half"))
                self.assertEqual("mask_seconds" in row, constrained, row)
                if constrained:
                    self.assertGreater(row["mask_seconds"], 0)
                    self.assertGreater(row["max_mask_seconds"], 0)
            self.assertIn(f" --engine --schema {path}", found["command"])
            path.write_text('{"unevaluatedItems": false}')
            self.assertIn(b"unevaluatedItems", bench("--engine", "--schema", path, code=4).stderr)
            bench("--schema", path, code=2)

    def test_show_answers_in_harmony_beside_free_ones(self):
        found = json.loads(inferno("bench", models.ROOT / "models/builtin", "--device", "cpu", "-p", "0", "-n", "8", "-b", "2", "-r", "1", "--engine",
                                   "--harmony-mask", "--temperature", "1", "--json").stdout)
        rows = {row["test"]: row for row in found["results"] if row["test"].startswith("engine")}
        self.assertEqual(list(rows), ["engine tg8", "engine tg8 harmony"])
        self.assertNotIn("mask_seconds", rows["engine tg8"])
        self.assertGreater(rows["engine tg8 harmony"]["mask_seconds"], 0)
        self.assertIn(" --engine --harmony-mask", found["command"])
        self.assertIn(b"not in Harmony", bench("--engine", "--harmony-mask", code=2).stderr)
        bench("--harmony-mask", code=2)

    def test_say_how_tokens_are_drawn(self):
        drawn = ("--temperature", "0.8", "--top-k", "40", "--top-p", "0.5")
        found = json.loads(bench("-o", "json", "--engine", "-n", "2", *drawn).stdout)
        self.assertIn(" --engine --temperature 0.8 --top-k 40 --top-p 0.5 --device", found["command"])
        self.assertNotIn("--temperature", self.found["command"])
        self.assertIn(b"--top-p", bench("--top-p", "2", code=2).stderr)


class Load(Scene):
    def load(self, *arguments, **more):
        return inferno("bench", models.LLAMA, "--load", "--device", "cpu", "--input-len", "20", "--output-len", "6", *arguments, **more)

    def test_answers_every_request_of_a_closed_loop(self):
        found = json.loads(self.load("--concurrency", "1,3", "--requests", "5", "--json").stdout)
        self.assertEqual([one["load"] for one in found["results"]], ["concurrency 1", "concurrency 3"])
        self.assertEqual((found["backend"], found["parallel"], found["model_id"]), ("inferno", 3, str(models.LLAMA)))
        for one in found["results"]:
            self.assertEqual((one["completed"], one["failed"], one["refused"]), (5, 0, 0))
            self.assertEqual((one["total_input_tokens"], one["total_output_tokens"]), (100, 30))
            self.assertLessEqual(one["median_itl_ms"], one["p95_itl_ms"])
            self.assertLessEqual(one["p95_itl_ms"], one["p99_itl_ms"])
            self.assertGreater(one["median_ttft_ms"], 0)
            engine = one["engine"]
            self.assertGreater(engine["host_microseconds_per_step"], 0)
            self.assertTrue(0 < engine["device_idle_share"] < 1)
            self.assertGreater(engine["rows_per_step"], 1)
        alone, three = (one["engine"] for one in found["results"])
        # One request after the other: a step for its prompt, which gives the first token, and one for each other token.
        self.assertEqual((alone["prompt_steps"], alone["mixed_steps"], alone["decode_steps"]), (5, 0, 25))
        self.assertLess(three["decode_steps"] + three["mixed_steps"], 25)

    def test_of_requests_at_once_waits_for_the_engine(self):
        found = json.loads(self.load("--rate", "inf", "--requests", "6", "--parallel", "2", "--json").stdout)
        [one] = found["results"]
        self.assertEqual((one["load"], one["completed"], one["max_concurrent_requests"]), ("6 requests at once", 6, 6))
        self.assertGreater(one["p99_ttft_ms"], one["median_ttft_ms"])

    def test_replays_a_trace_on_a_shape(self):
        trace = self.path / "trace.jsonl"
        trace.write_text('{"timestamp": 0, "input_length": 9, "output_length": 2}\n{"timestamp": 40, "input_length": 30, "output_length": 4}\n')
        text = inferno("bench", "--shape", "gpt2", "--weights", "q8_0", "--load", "--trace", trace, "--device", "cpu").stdout.decode()
        self.assertIn("Total input tokens:                      39 ", text)
        self.assertIn("Total generated tokens:                  6 ", text)
        self.assertRegex(text, r"Steps \(decode / mixed / prompt\): +\d / [01] / [12]\n")  # the second may arrive during the first

    def test_needs_to_know_what_to_load(self):
        self.assertIn(b"--load", bench("--concurrency", "2", code=2).stderr)
        self.load("--serve", "http://localhost:1", code=2)
        self.assertIn(b"--serve", self.load("--endpoint", "chat", code=2).stderr)


class ShapeCheckpoint(Scene):
    def make(self, name, *more):
        subprocess.run([sys.executable, "-B", TOOL, self.path / name, "--config", models.ENDLESS / "config.json", "--tokenizer",
                        models.ROOT / "tests/data/tokenizer", *more], check=True, capture_output=True)
        return self.path / name

    def test_fits_its_configuration_and_runs(self):
        folder = self.make("made")
        self.assertEqual(len(list(folder.glob("*.safetensors"))), 3)
        wanted = json.loads(inferno("inspect", models.ENDLESS, "--json").stdout)
        found = json.loads(inferno("inspect", folder, "--json").stdout)
        shapes = {tensor["name"]: (tensor["format"], tensor["shape"]) for tensor in found["tensors"]}
        self.assertEqual(shapes, {tensor["name"]: (tensor["format"], tensor["shape"]) for tensor in wanted["tensors"]})
        inferno("generate", "hello", "-m", folder, "-n", "3", "--ignore-eos", "--device", "cpu")

    def test_is_the_same_for_the_same_seed(self):
        def digest(folder):
            return [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.safetensors"))]

        first = digest(self.make("a"))
        self.assertEqual(first, digest(self.make("b")))
        self.assertNotEqual(first, digest(self.make("c", "--seed", "2")))

    def test_answers_in_ascii_if_asked(self):
        def answers(folder):
            return [inferno("generate", prompt, "-m", folder, "-n", "40", "--ignore-eos", "--temperature", "0", "--device", "cpu").stdout
                    for prompt in ("hello", "one two", "x")]

        self.assertTrue(all(text.strip() and text.isascii() for text in answers(self.make("ascii", "--ascii"))))
        self.assertFalse(all(text.isascii() for text in answers(self.make("any"))))


if __name__ == "__main__":
    unittest.main()
