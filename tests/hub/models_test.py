"""Commands on models other than download: names, list, rm, verify, search, plan, the offer to download.
models_test.py INFERNO"""
import hashlib
import json
import os
import pathlib
import shutil
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


class Families(Models):
    """A model that cannot run is found out before it is downloaded."""

    @classmethod
    def fill(cls):
        super().fill()
        files = model_files(1)
        files["config.json"] = files["config.json"].replace(b'"llama"', b'"gemma3"')
        cls.foreign = cls.hub.add("org/gemma-3", downloads=9)
        cls.foreign.commit(files)

    def test_that_are_not_supported_do_not_fit(self):
        self.assertRegex(self.run_it("search", "org").out, r"org/gemma-3 .* no: gemma3 is not supported\n")
        found = json.loads(self.run_it("search", "org", "--fits", "--json").out)
        self.assertNotIn("org/gemma-3", [one["id"] for one in found])
        self.assertIn("org/model", [one["id"] for one in found])

    def test_that_are_not_supported_are_downloaded_only_on_request(self):
        refused = self.run_it("download", "org/gemma-3", "--yes", code=4)
        self.assertIn('org/gemma-3: architecture "gemma3" is not supported', refused.err)
        self.assertIn("--any-family", refused.err)
        self.assertLess(self.hub.body_bytes("org/gemma-3"), 20_000)
        terminal = Terminal([scene.PROGRAM, "download", "org/gemma-3"], self.environment(TERM="xterm"))
        self.addCleanup(terminal.close)
        terminal.wait_for(r'family "gemma3", which Inferno cannot run. Download it anyway\? \[y/N\]')
        terminal.send("n\n")
        self.assertEqual(terminal.ended(), 4)
        self.run_it("download", "org/gemma-3", "--yes", "--any-family")
        self.assert_whole(self.foreign)


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
        missing = self.run_it("generate", "Hi", "-m", "org/tiny-GGUF:Q2_K", *ONE_TOKEN, code=3)
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
        refused = self.run_it("inspect", "gpt-oss-20b", code=3)
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
        self.assertIn("only read", self.run_it("rm", "tiny:1m", "--yes", code=2).err)
        # An absent tag means :latest, also for a name that is an alias.
        for name in ("tiny-latest", "llama3.2"):
            latest = self.home / f".ollama/models/manifests/registry.ollama.ai/library/{name}/latest"
            latest.parent.mkdir(parents=True)
            latest.write_text(manifest.read_text())
            self.assertEqual(self.run_it("generate", "Hi", "-m", name, *ONE_TOKEN).out, wanted, name)

    def test_sorts_and_rm_takes_several(self):
        self.download()
        self.download(model="org/tiny-GGUF:Q8_0")
        names = [one["name"] for one in json.loads(self.run_it("list", "--sort", "size", "--json").out)]
        sizes = {one["name"]: one["bytes"] for one in self.listed()}
        self.assertEqual(names, sorted(names, key=lambda name: -sizes[name]))
        self.run_it("rm", "org/model", "org/nothing", "--yes", code=3)
        self.assertEqual(self.state(), "complete")  # a mistake in one name removes nothing
        self.run_it("rm", "org/model", "org/tiny-GGUF", "--yes")
        self.assertEqual([one["name"] for one in self.listed()], ["builtin"])

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
        self.assertRegex(table, r"(?m)^MODEL +FORMAT +PARAMETERS +SIZE +DOWNLOADS +LIKES +LICENSE +FITS$")
        self.assertRegex(table, r"(?m)^openai/gpt-oss-20b +safetensors +[\d.]+(?: [MB])? +[\d.]+ kB +7.0 M +5 +open +(memory|GPU), ~?\d+ k$")
        self.assertNotIn("org/model", table)

    def test_sends_no_request_when_offline(self):
        self.assertIn("search needs the network, but HF_HUB_OFFLINE=1 is set", self.run_it("search", "x", code=5, **OFFLINE).err)
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

    def test_errors_name_the_model_and_not_a_temporary_folder(self):
        files = model_files(1)
        config = json.loads(files["config.json"])
        broken = self.hub.add("org/broken")
        self.addCleanup(self.hub.repos.pop, "org/broken")
        for key, value in (("hidden_size", 48), ("num_hidden_layers", 9), ("vocab_size", "many"), ("model_type", "gemma3")):
            broken.commit({**files, "config.json": json.dumps({**config, key: value}).encode()})
            refused = self.run_it("plan", "org/broken", "--device", "cpu", code=(2, 4))
            self.assertIn("org/broken", refused.err)
            self.assertNotRegex(refused.err, r"inferno-headers|/tmp|" + str(self.home))
            self.assertLessEqual(len(refused.err[refused.err.index("error: "):].splitlines()), 3, refused.err)

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

    def test_offline_no_error_advises_a_download(self):
        self.download()
        (self.folder() / "snapshots" / self.repo.resolve("main") / "model.safetensors").unlink()
        (self.home / "text.txt").write_text("Hello there. " * 20)
        (self.home / "part.incomplete").write_bytes(b"")
        folder = self.home / "mine/.cache/huggingface/download"
        folder.mkdir(parents=True)
        (folder / "model.inferno.incomplete").write_bytes(b"")
        for name in ("org/model", "org/absent", "absent", "qwen3:8b", "llama", self.home / "mine", self.home / "part.incomplete",
                     self.folder() / "snapshots" / self.repo.resolve("main")):
            for words in (("generate", "Hi", "-m", name), ("play", name), ("inspect", name), ("plan", name), ("tokenize", name, "--text", "a"),
                          ("detokenize", name, "1"), ("perplexity", name, "text.txt"), ("bench", name), ("convert", name, "-o", "x.gguf"),
                          ("logits", name, "--tokens", "1", "-o", "x"), ("serve", name, "--port", "0"), ("verify", name), ("rm", name, "--yes"),
                          ("download", name)):
                if words[0] == "rm" and name in ("org/model",):
                    continue
                refused = self.run_it(*words, code=(2, 3, 4, 5), **OFFLINE)
                self.assertNotIn("inferno download", refused.err, words)
                self.assertLessEqual(len(refused.err.splitlines()), 3, refused.err)
        self.assertEqual([one for one in self.hub.requests if "absent" in one.path], [])

    def test_offline_never_touches_the_network(self):
        for words in (("generate", "Hi", "-m", "org/model", "--yes"), ("play", "org/model", "--yes"), ("inspect", "org/model"), ("list",)):
            self.run_it(*words, code=(0, 3), **OFFLINE)
        self.assertEqual(self.hub.requests, [])

    def test_a_person_is_asked(self):
        terminal = Terminal([scene.PROGRAM, "generate", "Hi", "-m", "org/model", *ONE_TOKEN], self.environment(TERM="xterm"))
        self.addCleanup(terminal.close)
        terminal.wait_for(r"org/model \([\d.]+ MB\) is not on this machine\. Download it\? \[y/N\]")
        terminal.send("y\n")
        terminal.ended(60)
        self.assert_whole()

    def offer(self, *words):
        terminal = Terminal([scene.PROGRAM, *words], self.environment(TERM="xterm"), columns=160, cwd=self.home)
        self.addCleanup(terminal.close)
        return terminal

    def test_says_how_long_it_takes_at_the_last_rate(self):
        wide = self.hub.add("org/wide")
        wide.commit(model_files(24))
        self.addCleanup(self.hub.repos.pop, "org/wide")
        self.download(model="org/wide")
        rate = float((self.home / ".local/state/inferno/download-rate").read_text())
        self.assertGreater(rate, 1e5)
        (self.home / ".local/state/inferno/download-rate").write_text("20000000\n")
        terminal = self.offer("generate", "Hi", "-m", "llama3.2:1b")
        terminal.wait_for(r"\(800\.0 MB, about 40 s\), which is not on this machine\. Download it\?")
        terminal.send("n\n")
        self.assertEqual(terminal.ended(), 3)
        terminal = self.offer("generate", "Hi", "-m", "org/model")
        terminal.wait_for(r"org/model \([\d.]+ MB, about 1 s\) is not on this machine\. Download it\?")
        terminal.send("n\n")
        self.assertEqual(terminal.ended(), 3)
        self.assertIn("not downloaded", terminal.screen.text())
        self.assertNotIn("error", terminal.screen.text())
        self.assertIsNone(self.state())

    def test_says_before_a_download_that_the_memory_is_too_small(self):
        short = r"It needs about [\d.]+ [GT]B of memory, but this machine has only [\d.]+ [MG]B free"
        large = self.hub.add("org/large")
        self.addCleanup(self.hub.repos.pop, "org/large")
        weights = large.commits[large.commit(model_files(1))]["files"]["model.safetensors"]
        weights.size = 10**14  # as the hub lists it
        self.assertRegex(self.run_it("download", "org/large", "--dry-run").err, rf"(?m)^note: {short}$")
        self.assertNotIn("It needs", self.run_it("download", "org/model", "--yes").err)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if memory < 60e9:  # the offer of a model of the table; beyond that the next one shows the same
            terminal = self.offer("play", "gpt-oss:120b")  # the size is known from the table of names
            terminal.wait_for(rf"gpt-oss:120b means openai/gpt-oss-120b \(65\.2 GB.*\), which is not on this machine\. {short}\. Download it\?")
            terminal.send("n\n")
            self.assertEqual(terminal.ended(), 3)
        weights.size = memory + 10**9
        if shutil.disk_usage(self.home).free <= 2 * weights.size:
            self.skipTest("the disk would be too small before the memory is")
        else:
            terminal = self.offer("generate", "Hi", "-m", "org/large")
            terminal.wait_for(rf"org/large \([\d.]+ GB.*\) is not on this machine\. {short}\. Download it\? \[y/N\]")
            self.assertNotIn("note:", terminal.screen.text())
            terminal.send("n\n")
            self.assertEqual(terminal.ended(), 3)

    def test_short_names_that_mean_nothing_are_not_asked_of_the_hub(self):
        for name, advice in (("llama", "choose one of these: llama3.1:8b (4.9 GB), llama3.2:1b (800.0 MB)"), ("mistrall", "did you mean mistral?"),
                             ("gemma3", "inferno search"), ("builtin", "inferno play builtin")):
            refused = self.run_it("download", name, code=2 if name == "builtin" else 3)
            self.assertIn(advice, refused.err)
        self.assertEqual(self.hub.requests, [])

    def test_the_next_step_is_for_models_that_run(self):
        for words, is_named in (("org/model",), True), (("org/model", "--local-dir", "my models"), True), \
                               (("org/tiny-GGUF", "--include", "README.md"), False):
            terminal = self.offer("download", *words, "--yes")
            self.assertEqual(terminal.ended(60), 0)
            self.assertEqual("now: inferno play" in terminal.screen.text(), is_named, terminal.screen.text())
        terminal = self.offer("download", "org/model", "--local-dir", "my models", "--yes")
        self.assertEqual(terminal.ended(60), 0)
        self.assertIn(f"now: inferno play '{self.home}/my models'", terminal.screen.text().replace("\n", ""))

    def test_notes_that_cannot_be_written_do_not_end_it(self):
        for name, closing in (("full", "2>/dev/full"), ("closed", "2>&-")):
            home = self.home / name
            home.mkdir()
            for words in (("download", "org/model", "--yes"), ("verify", "org/model")):
                done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {closing}', scene.PROGRAM, *words], env=self.environment(home), cwd=home,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60)
                self.assertEqual(done.returncode, 0, (name, words))
            self.assert_whole(home=home)

    def test_a_folder_that_is_a_device_is_refused(self):
        refused = self.run_it("download", "org/model", "--local-dir", "/dev/null", code=2)
        self.assertIn("/dev/null: exists and is not a folder", refused.err)
        self.assertNotIn("remove", refused.err)

    def test_names_the_model_that_an_alias_means_and_the_next_step(self):
        terminal = Terminal([scene.PROGRAM, "generate", "Hi", "-m", "llama3.2:1b"], self.environment(TERM="xterm"), columns=120)
        self.addCleanup(terminal.close)
        terminal.wait_for(r"llama3\.2:1b means bartowski/Llama-3\.2-1B-Instruct-GGUF:Q4_K_M \(800\.0 MB\), which is not on this machine\. Download it\?")
        terminal.send("n\n")
        self.assertEqual(terminal.ended(), 3)
        self.assertIn("not downloaded", terminal.screen.text())
        self.assertNotIn("error", terminal.screen.text())
        refused = self.run_it("generate", "Hi", "-m", "llama", code=3)
        self.assertIn("choose one of these: llama3.1:8b (4.9 GB), llama3.2:1b (800.0 MB)", refused.err)
        download = Terminal([scene.PROGRAM, "download", "gpt-oss"], self.environment(TERM="xterm"))
        self.addCleanup(download.close)
        self.assertEqual(download.ended(60), 0)
        self.assertIn("now: inferno play openai/gpt-oss-20b", download.screen.text())

    def test_a_person_is_asked_by_play_too(self):
        terminal = Terminal([scene.PROGRAM, "play", "org/model"], self.environment(TERM="xterm"))
        self.addCleanup(terminal.close)
        terminal.wait_for(r"org/model \([\d.]+ MB\) is not on this machine\. Download it\? \[y/N\]")
        terminal.send("y\n")
        terminal.wait_for(r">>> ", 60)
        terminal.send("/bye\n")
        terminal.ended(60)
        self.assert_whole()


if __name__ == "__main__":
    scene.main()
