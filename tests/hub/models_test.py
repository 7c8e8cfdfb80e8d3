"""Commands on models other than download: names, list, rm, verify, search, plan, the offer to download.
models_test.py INFERNO"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import scene  # noqa: E402
from hub import quick_folder  # noqa: E402
from scene import LLAMA, MEBIBYTE, Scene, model_files  # noqa: E402
from terminal import Terminal  # noqa: E402

ONE_TOKEN = ("-n", "1", "--temperature", "0", "--device", "cpu")
OFFLINE = {"HF_HUB_OFFLINE": "1"}
SHARDED = [file for file in LLAMA.iterdir() if not file.name.startswith("golden")]


class Models(Scene):
    MEBIBYTES = 1
    PEAK = 1500 * MEBIBYTE  # plan and bench measure how fast a gibibyte of memory is read

    @classmethod
    def fill(cls):
        super().fill()
        cls.old = cls.repo.resolve("main")
        cls.sharded = cls.hub.add("openai/gpt-oss-20b", downloads=7_000_000, likes=5)  # the name has an alias
        cls.sharded.commit({**{file.name: file.read_bytes() for file in SHARDED},
                            "README.md": b"# a model", "original/model.safetensors": b"another copy", "pytorch_model.bin": b"pickle"})
        with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
            files = {}
            for quant in ("q8_0", "f16"):
                name = f"tiny-{quant.upper()}.gguf"
                subprocess.run([scene.PROGRAM, "convert", str(LLAMA), "-o", f"{folder}/{name}", "--type", quant], check=True,
                               capture_output=True)
                files[name] = pathlib.Path(folder, name).read_bytes()
        cls.gguf = cls.hub.add("org/tiny-GGUF", gated=False, downloads=3)
        cls.gguf.commit({**files, "mmproj-tiny.gguf": b"GGUF", "README.md": b"# tiny"})

    def names(self, **more):
        return {one["name"]: one for one in self.listed(**more)}


class Names(Models):
    def test_every_form_of_a_name_works_in_every_command(self):
        self.download(model="gpt-oss:20b")
        forms = ("openai/gpt-oss-20b", "gpt-oss:20b", "gpt-oss-20b", "OpenAI/GPT-oss-20b", "openai/gpt-oss-20b@main",
                 "hf.co/openai/gpt-oss-20b", "hf://openai/gpt-oss-20b", "https://huggingface.co/openai/gpt-oss-20b/tree/main")
        wanted = self.run_it("generate", "Hi", "-m", LLAMA, *ONE_TOKEN).out
        for form in (*forms, self.hub.url + "/openai/gpt-oss-20b/tree/main"):
            self.assertEqual(self.run_it("generate", "Hi", "-m", form, *ONE_TOKEN, **OFFLINE).out, wanted, form)
        ids = self.run_it("tokenize", LLAMA, "--text", "Hello").out
        (self.home / "text.txt").write_text("Hello there. " * 20)
        for command, *rest in (("inspect",), ("plan",), ("verify",), ("detokenize", "1", "2"),
                               ("bench", "-p", "8", "-n", "4", "-r", "1", "--device", "cpu")):
            self.run_it(command, "gpt-oss-20b", *rest, **OFFLINE)
        self.assertEqual(self.run_it("tokenize", "gpt-oss:20b", "--text", "Hello", **OFFLINE).out, ids)
        self.run_it("perplexity", "gpt-oss:20b", "text.txt", "--window", "16", "--device", "cpu", **OFFLINE)
        self.run_it("logits", "gpt-oss:20b", "--tokens", "1,2", "-o", "logits.safetensors", "--device", "cpu", **OFFLINE)
        self.run_it("convert", "gpt-oss:20b", "-o", "out.gguf", "--type", "q8_0", **OFFLINE)
        self.assertIn(b"gpt-oss-20b", (self.home / "out.gguf").read_bytes()[:4096])  # its name, not a commit's

    def test_a_quantization_is_chosen_or_requested(self):
        self.download(model="org/tiny-GGUF")
        self.assertEqual(set(self.names()) - {"builtin"}, {"org/tiny-GGUF:Q8_0"})
        self.download(model="org/tiny-GGUF:f16")
        self.assertEqual(set(self.names()) - {"builtin"}, {"org/tiny-GGUF:Q8_0", "org/tiny-GGUF:F16"})
        for form in ("org/tiny-GGUF", "tiny-gguf:q8_0", "org/tiny-GGUF:F16", "hf.co/org/tiny-GGUF:f16"):
            self.run_it("generate", "Hi", "-m", form, *ONE_TOKEN, **OFFLINE)
        missing = self.run_it("generate", "Hi", "-m", "org/tiny-GGUF:Q2_K", *ONE_TOKEN, code=3, **OFFLINE)
        self.assertIn("inferno download org/tiny-GGUF:Q2_K", missing.err)

    def test_hostile_and_unknown_names_are_refused_without_a_request(self):
        for name, code in (("org/../x", 3), ("org/na--me", 2), ("https://evil.example/a/b", 2), ("hf://datasets/a/b", 2), ("nowhere", 3)):
            self.run_it("inspect", name, code=code)
        self.assertEqual(self.hub.requests, [])


class List(Models):
    def test_shows_complete_and_partial_models(self):
        self.download()
        self.download(model="openai/gpt-oss-20b")
        shown = self.names()
        self.assertTrue(shown["org/model"]["complete"])
        self.assertEqual(shown["org/model"]["commit"], self.repo.resolve("main"))
        self.assertEqual(shown["openai/gpt-oss-20b"]["bytes"],
                         sum(file.stat().st_size for file in SHARDED) + len("# a model"))
        self.assertEqual(shown["builtin"]["place"], "built in")
        # The blob of one shard is removed; its link stays.
        weights = self.folder(self.sharded) / "snapshots" / self.sharded.resolve("main") / "model-00003-of-00006.safetensors"
        weights.resolve().unlink()
        shown = self.names()
        self.assertEqual((shown["openai/gpt-oss-20b"]["complete"], shown["openai/gpt-oss-20b"]["missing"]), (False, [weights.name]))
        refused = self.run_it("inspect", "gpt-oss-20b", code=3, **OFFLINE)
        self.assertIn("incomplete, some files are missing", refused.err)
        self.assertIn("inferno download openai/gpt-oss-20b", refused.err)
        self.assertIn("incomplete, some files are missing", self.run_it("inspect", weights.parent, code=3).err)
        table = self.run_it("list").out
        self.assertRegex(table, r"(?m)^openai/gpt-oss-20b +safetensors +[\d.]+ kB +\d{4}-\d\d-\d\d +hub cache +partial, of ")

    def test_reads_the_stores_of_ollama_and_lm_studio_in_place(self):
        gguf = self.gguf.files()["tiny-Q8_0.gguf"]
        blob = self.home / ".ollama/models/blobs" / f"sha256-{gguf.sha256}"
        blob.parent.mkdir(parents=True)
        os.link(gguf.location, blob)
        manifest = self.home / ".ollama/models/manifests/registry.ollama.ai/library/tiny/1m"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model",
                                                    "digest": f"sha256:{gguf.sha256}", "size": gguf.size}]}))
        studio = self.home / ".lmstudio/models/someone/tiny-two/tiny-Q8_0.gguf"
        studio.parent.mkdir(parents=True)
        os.link(gguf.location, studio)
        shown = self.names()
        self.assertEqual({one["place"] for one in shown.values()}, {"Ollama", "LM Studio", "built in"})
        wanted = self.run_it("generate", "Hi", "-m", studio, *ONE_TOKEN).out
        for name in ("tiny:1m", "someone/tiny-two", "tiny-two"):
            self.assertEqual(self.run_it("generate", "Hi", "-m", name, *ONE_TOKEN).out, wanted, name)
        self.assertIn("verified", self.run_it("verify", "tiny:1m").out)
        self.assertIn("only read", self.run_it("rm", "tiny:1m", "--yes", code=4).err)


    def test_does_not_mistake_a_partial_download_for_a_model(self):
        whole = self.gguf.files()["tiny-Q8_0.gguf"].location.read_bytes()
        (self.home / "x.inferno.incomplete").write_bytes(whole)
        self.run_it("inspect", "x.inferno.incomplete", code=3)
        folder = self.home / "models/mine"
        self.download("--local-dir", folder)
        self.run_it("inspect", folder)
        (folder / ".cache/huggingface/download/x.incomplete").write_bytes(b"")
        self.assertIn("has not finished", self.run_it("inspect", folder, code=3).err)
        self.assertFalse(self.names(INFERNO_MODELS=str(self.home / "models"))["mine"]["complete"])


class Rm(Models):
    def test_frees_only_unshared_files(self):
        self.download()
        files = {**model_files(self.MEBIBYTES), "config.json": model_files(self.MEBIBYTES)["config.json"] + b"\n"}
        self.repo.commit(files)
        self.addCleanup(self.repo.branches.__setitem__, "main", self.old)
        self.download()
        weights = self.folder() / "blobs" / hashlib.sha256(files["model.safetensors"]).hexdigest()
        self.assertEqual(set(self.names()) - {"builtin"}, {"org/model", f"org/model@{self.old[:12]}"})
        refused = self.run_it("rm", f"org/model@{self.old}", code=2)
        self.assertIn(f"inferno rm org/model@{self.old} --yes", refused.err)
        removed = self.run_it("rm", f"org/model@{self.old[:8]}", "--yes")
        self.assertRegex(removed.out, r"removed org/model@\w{12} .*shared with other models are kept.*freed \d+ B")
        self.assertTrue(weights.exists())
        self.assert_loads()
        self.run_it("rm", "org/model", "--yes")
        self.assertFalse(self.folder().exists())
        self.run_it("rm", "org/model", "--yes", code=3)

    def test_asks_at_a_terminal(self):
        self.download(model="org/tiny-GGUF")
        for answer, is_left in (("n\n", True), ("y\n", False)):
            terminal = Terminal([scene.PROGRAM, "rm", "org/tiny-GGUF"], self.environment(TERM="xterm"))
            self.addCleanup(terminal.close)
            terminal.wait_for(r"remove org/tiny-GGUF:Q8_0, freeing [\d.]+ kB\? \[y/N\]")
            terminal.send(answer)
            terminal.ended(60)
            self.assertEqual(self.folder(self.gguf).exists(), is_left)


class Verify(Models):
    def test_finds_the_corrupt_file_and_a_download_repairs_it(self):
        self.download()
        self.download(model="org/tiny-GGUF")
        self.assertEqual(self.run_it("verify").out.count("verified "), 2)
        file = self.repo.files()["model.safetensors"]
        blob = self.folder() / "blobs" / file.etag
        blob.chmod(0o644)
        content = bytearray(blob.read_bytes())
        content[len(content) // 2] ^= 1
        blob.write_bytes(content)
        bad = self.run_it("verify", "org/model", code=4)
        self.assertIn(f"expected {file.sha256}", bad.out)
        self.assertIn(f"found    {hashlib.sha256(content).hexdigest()}", bad.out)
        self.assertIn("next:  inferno download org/model", bad.err)
        self.assert_not_whole()
        self.download()
        self.assertIn("verified", self.run_it("verify", "org/model").out)
        self.assert_loads()


class Search(Models):
    def test_shows_sizes_and_what_fits_in_one_request(self):
        found = json.loads(self.run_it("search", "o", "--json").out)
        self.assertEqual(len(self.hub.requests), 1)
        self.assertEqual([one["id"] for one in found], ["openai/gpt-oss-20b", "org/tiny-GGUF", "org/model"])
        self.assertEqual(found[0]["format"], "safetensors")
        self.assertTrue(found[0]["fits"] and found[0]["context"] > 0 and found[0]["bytes"] > 0)
        self.assertEqual(found[1]["format"], "gguf")
        table = self.run_it("search", "GPT", "--sort", "likes", "--limit", "5", "--author", "openai", "--fits").out
        self.assertRegex(table, r"(?m)^MODEL +FORMAT +PARAMETERS +SIZE +DOWNLOADS +LIKES +LICENCE +FITS$")
        self.assertRegex(table, r"(?m)^openai/gpt-oss-20b +safetensors +\d+ M +[\d.]+ kB +7.0 M +5 +open +(memory|GPU), ~?\d+ k$")
        self.assertNotIn("org/model", table)

    def test_sends_no_request_when_offline(self):
        self.run_it("search", "x", code=5, **OFFLINE)
        self.assertEqual(self.hub.requests, [])


class Plan(Models):
    def test_reads_headers_alone_before_a_download(self):
        for name, local in (("org/model", None), ("openai/gpt-oss-20b", LLAMA), ("org/tiny-GGUF:F16", None)):
            self.hub.forget()
            plan = json.loads(self.run_it("plan", name, "--json", "--device", "cpu").out)
            self.assertTrue(plan["remote"] and plan["fits"])
            self.assertGreater(plan["tokens_per_second"], 0)
            self.assertEqual(self.listed()[0]["name"], "builtin", "nothing is kept")
            if local:
                here = json.loads(self.run_it("plan", local, "--json", "--device", "cpu").out)
                same = ("parameters", "weights", "cache", "workspace", "model_context", "read_per_token")
                self.assertEqual({key: plan[key] for key in same}, {key: here[key] for key in same})
            self.download(model=name)
            here = json.loads(self.run_it("plan", name, "--json", "--device", "cpu", **OFFLINE).out)
            self.assertEqual((here["remote"], here["weights"]), (False, plan["weights"]))
            self.run_it("rm", name, "--yes")

    def test_fetches_little_of_a_large_file(self):
        large = self.hub.add("org/large")
        large.commit(model_files(24))
        self.run_it("plan", "org/large", "--device", "cpu")
        self.assertLess(self.hub.body_bytes(), 1 << 20)

    def test_says_what_a_longer_context_or_batch_costs(self):
        first, second = (json.loads(self.run_it("plan", LLAMA, "--json", "--device", "cpu", "--context", str(context), "--batch", str(batch)).out)
                         for context, batch in ((512, 1), (1024, 4)))
        self.assertEqual(second["cache"], 8 * first["cache"])
        self.run_it("plan", LLAMA, "--context", "1000000", code=2)
        page = self.run_it("plan", "org/model", "--context", "512", "--device", "cpu").out
        self.assertRegex(page, r"(?s)weights .*cache .*context of 512 tokens.*fits +yes.*next:\ninferno download org/model\ninferno play org/model --context 512")

    def test_sends_no_request_when_offline(self):
        self.run_it("plan", "org/model", code=3, **OFFLINE)
        self.assertEqual(self.hub.requests, [])


class Offer(Models):
    def test_without_a_terminal_there_is_an_error_with_the_command(self):
        for words in (("generate", "Hi", "-m", "org/model"), ("play", "org/model")):
            refused = self.run_it(*words, code=3)
            self.assertIn("next:  inferno download org/model\n", refused.err)
        self.assertEqual(self.hub.requests, [])

    def test_yes_downloads_and_continues(self):
        self.run_it("generate", "Hi", "-m", "org/model", "--yes", *ONE_TOKEN)
        self.assert_whole()
        self.run_it("generate", "Hi", "-m", "org/tiny-GGUF:F16", "--yes", *ONE_TOKEN)

    def test_offline_never_touches_the_network(self):
        for words in (("generate", "Hi", "-m", "org/model", "--yes"), ("play", "org/model", "--yes"), ("inspect", "org/model"), ("list",)):
            self.run_it(*words, code=(0, 3), **OFFLINE)
        self.assertEqual(self.hub.requests, [])

    def test_a_person_is_asked(self):
        terminal = Terminal([scene.PROGRAM, "generate", "Hi", "-m", "org/model", *ONE_TOKEN], self.environment(TERM="xterm"))
        self.addCleanup(terminal.close)
        terminal.wait_for(r"org/model is not on this machine\. Download it\? \[y/N\]")
        terminal.send("y\n")
        terminal.ended(60)
        self.assert_whole()

    def test_a_person_is_asked_by_play_too(self):
        terminal = Terminal([scene.PROGRAM, "play", "org/model"], self.environment(TERM="xterm"))
        self.addCleanup(terminal.close)
        terminal.wait_for(r"org/model is not on this machine\. Download it\? \[y/N\]")
        terminal.send("y\n")
        terminal.wait_for(r">>> ", 60)
        terminal.send("/bye\n")
        terminal.ended(60)
        self.assert_whole()


if __name__ == "__main__":
    scene.main()
