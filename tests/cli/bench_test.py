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


class Results(Scene):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.found = json.loads(bench("-o", "json", "--plot", pathlib.Path(folder) / "plot.svg").stdout)
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

    def test_of_a_shape_are_measured_on_random_weights(self):
        found = json.loads(inferno("bench", "--shape", "gpt2", "--weights", "q8_0", "-p", "8", "-n", "2", "-r", "1", "--device", "cpu",
                                   "-o", "json").stdout)
        self.assertEqual((found["model"], found["weights"]), ("gpt2", "q8_0"))
        self.assertTrue(found["command"].startswith("inferno bench --shape gpt2 --weights q8_0 "))

    def test_say_how_tokens_are_drawn(self):
        drawn = ("--temperature", "0.8", "--top-k", "40", "--top-p", "0.5")
        found = json.loads(bench("-o", "json", "--engine", "-n", "2", *drawn).stdout)
        self.assertIn(" --engine --temperature 0.8 --top-k 40 --top-p 0.5 --device", found["command"])
        self.assertNotIn("--temperature", self.found["command"])
        self.assertIn(b"--top-p", bench("--top-p", "2", code=2).stderr)


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


if __name__ == "__main__":
    unittest.main()
