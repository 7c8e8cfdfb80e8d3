#!/usr/bin/env python3
"""`inferno convert` from outside: what it prints, refuses and leaves behind.  command_test.py PROGRAM DATA"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, DATA = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
MODEL = DATA / "models" / "gpt_oss"


class Convert(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "model.gguf"

    def run_it(self, *words, model=MODEL):
        return subprocess.run([PROGRAM, "convert", model, "-o", self.file, *words], capture_output=True, text=True)

    def left(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_reports_what_it_wrote(self):
        done = self.run_it("--type", "Q8_0", "--json", "--name", "Tiny")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["architecture"], "gpt-oss")
        self.assertEqual(report["bytes"], self.file.stat().st_size)
        self.assertEqual(set(report["types"]), {"f32", "q8_0", "mxfp4"})
        self.assertEqual(sum(one["tensors"] for one in report["types"].values()), report["tensors"])
        self.assertEqual(self.left(), ["model.gguf"])

    def test_says_where_another_type_was_needed(self):
        done = self.run_it("--type", "q4_k", "--json")
        notes = json.loads(done.stdout)["notes"]
        self.assertTrue(any("not whole blocks of q4_k" in note for note in notes), notes)

    def test_text_of_the_copy_is_tokenized_alike(self):
        self.assertEqual(self.run_it().returncode, 0)
        ids = [subprocess.run([PROGRAM, "tokenize", model, "--text", "Once upon a time, 12 <|endoftext|>"],
                              capture_output=True, text=True, check=True).stdout for model in (MODEL, self.file)]
        self.assertEqual(ids[0], ids[1])

    def test_the_copy_of_the_built_in_model_says_the_same(self):
        self.assertEqual(self.run_it("--type", "bf16", model="builtin").returncode, 0)
        for stored in json.loads((DATA / "builtin_greedy.json").read_text())["prompts"]:
            said = [subprocess.run([PROGRAM, "generate", "-m", model, "--chat", stored["prompt"], "--temperature", "0",
                                    "--max-tokens", "60"], capture_output=True, text=True, check=True).stdout
                    for model in ("builtin", self.file)]
            self.assertEqual(said[0], said[1])
            self.assertTrue(said[0].strip())

    def test_keeps_the_chat_template_and_how_to_sample(self):
        chatty = self.folder / "chatty"
        shutil.copytree(DATA / "models" / "qwen3", chatty)
        shutil.copy(DATA / "chat" / "chatml.jinja", chatty / "chat_template.jinja")
        (chatty / "generation_config.json").write_text('{"eos_token_id": [2, 0], "temperature": 0.5, "top_k": 20}')
        self.assertEqual(self.run_it(model=chatty).returncode, 0)
        texts = [subprocess.run([PROGRAM, "template", model, "--messages", DATA / "chat" / "hello.json"],
                                capture_output=True, text=True, check=True).stdout for model in (chatty, self.file)]
        self.assertEqual(texts[0], texts[1])
        shown = json.loads(subprocess.run([PROGRAM, "inspect", self.file, "--json"], capture_output=True, check=True).stdout)
        self.assertEqual([shown["config"][key] for key in ("eos_token_id", "temperature", "top_k")], [[2, 0], 0.5, 20])
        self.assertEqual(shown["notes"], [])

    def test_replaces_a_file_only_when_told(self):
        self.file.write_text("precious")
        done = self.run_it()
        self.assertEqual(done.returncode, 2)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.file.read_text(), "precious")
        self.assertEqual(self.run_it("--force").returncode, 0)
        self.assertEqual(self.file.read_bytes()[:4], b"GGUF")

    def test_refuses_types_it_cannot_write(self):
        for words in (["--type", "q5_k"], ["--type", "mxfp4"], ["--experts", "nonsense"]):
            done = self.run_it(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("q6_k", done.stderr)
        self.assertEqual(self.left(), [])

    def test_refuses_a_gguf_file(self):
        done = self.run_it(model=DATA / "gguf" / "llama-Q4_K_M.gguf")
        self.assertEqual(done.returncode, 4)
        self.assertIn("already", done.stderr)

    def test_names_the_tensor_with_a_weight_that_is_no_number(self):
        broken = self.folder / "broken"
        shutil.copytree(DATA / "models" / "qwen3", broken)
        weights = bytearray((broken / "model.safetensors").read_bytes())
        size = int.from_bytes(weights[:8], "little")
        begin = json.loads(weights[8:8 + size])["model.layers.1.mlp.down_proj.weight"]["data_offsets"][0]
        weights[8 + size + begin:8 + size + begin + 2] = b"\xc0\x7f"  # bf16 NaN
        (broken / "model.safetensors").write_bytes(weights)
        done = self.run_it(model=broken)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("blk.1.ffn_down.weight", done.stderr)
        self.assertEqual(self.left(), ["broken"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
