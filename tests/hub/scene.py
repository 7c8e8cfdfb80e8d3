"""Shared by the download tests: a hub with models, a home folder per test, and running the program in it."""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from hub import Hub, quick_folder

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LLAMA = ROOT / "tests/data/models/llama"
TOKEN = "hf_secretOfTheTests0123456789"
MEBIBYTE = 1 << 20
CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # control characters of a terminal
PROGRAM = None  # set by main()


def main():
    """The program to test is the first argument; the rest is unittest's."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    sys.modules["scene"].PROGRAM = PROGRAM
    unittest.main(module="__main__", verbosity=2)


def skip_unless(allowed, why):
    """For tests that a machine may not allow. In CI none may be skipped."""
    if not allowed and os.environ.get("CI"):
        raise RuntimeError(why)
    return unittest.skipUnless(allowed, why)


def noise(size, seed):
    return hashlib.shake_128(str(seed).encode()).digest(size)


def safetensors(mebibytes, seed=1):
    """A random llama of about that size, as (config, weights); it loads and generates nonsense."""
    config = json.loads((LLAMA / "config.json").read_text())
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    wide = config["intermediate_size"] = max(32, mebibytes * MEBIBYTE // (layers * 3 * hidden * 2) // 32 * 32)
    head = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], hidden], "lm_head.weight": [config["vocab_size"], hidden],
              "model.norm.weight": [hidden]}
    for layer in range(layers):
        of = f"model.layers.{layer}."
        shapes |= {of + "input_layernorm.weight": [hidden], of + "post_attention_layernorm.weight": [hidden],
                   of + "self_attn.q_proj.weight": [hidden, hidden], of + "self_attn.k_proj.weight": [head, hidden],
                   of + "self_attn.v_proj.weight": [head, hidden], of + "self_attn.o_proj.weight": [hidden, hidden],
                   of + "mlp.gate_proj.weight": [wide, hidden], of + "mlp.up_proj.weight": [wide, hidden],
                   of + "mlp.down_proj.weight": [hidden, wide]}
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    weights = bytearray(at)
    weights[0::2] = noise(at // 2, seed)
    # bf16 of either sign between 2^-7 and 2^-5: no NaN and no overflow.
    weights[1::2] = noise(at // 2, seed + 1).translate(bytes([0x3C, 0xBC] * 128))
    return json.dumps(config).encode(), struct.pack("<Q", len(text)) + text + bytes(weights)


def model_files(mebibytes, seed=1):
    config, weights = safetensors(mebibytes, seed)
    kept = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")
    return {"config.json": config, **{name: (LLAMA / name).read_bytes() for name in kept}, "model.safetensors": weights}


class Result:
    def __init__(self, code, out, err, seconds, peak):
        self.code, self.out, self.err, self.seconds, self.peak = code, out.decode(errors="replace"), err.decode(errors="replace"), seconds, peak

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.2f} s\n--- out\n{self.out}\n--- err\n{self.err}"


class Scene(unittest.TestCase):
    MODEL = "org/model"
    MEBIBYTES = 64
    PEAK = 400 * MEBIBYTE  # peak memory of any command
    hub_options = {}

    @classmethod
    def setUpClass(cls):
        cls.hub = Hub(**cls.hub_options)
        cls.addClassCleanup(cls.hub.close)
        cls.hub.tokens[TOKEN] = "tester"
        cls.fill()

    @classmethod
    def fill(cls):
        cls.repo = cls.hub.add(cls.MODEL)
        cls.repo.commit(model_files(cls.MEBIBYTES))

    def setUp(self):
        self.hub.forget()
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="hub-home-", dir=quick_folder()))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)

    # ---- the program

    def environment(self, home=None, **more):
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS")}
        home = str(home or self.home)
        return {**kept, "HOME": home, "HF_HOME": home + "/hf", "HF_ENDPOINT": self.hub.url, "TERM": "dumb", **more}

    def start(self, *arguments, home=None, wrapper=(), program=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=None, **more):
        process = subprocess.Popen([*wrapper, program or PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=stdout,
                                   stderr=stderr, env=self.environment(home, **more), cwd=cwd or self.home)
        process.begin = time.monotonic()
        return process

    def end(self, process, seconds=120):
        """Waits for the program and returns its output and resource use. A timeout or a crash fails the test."""
        pieces = [b"", b""]

        def read(index, pipe):
            pieces[index] = pipe.read()
            pipe.close()

        readers = [threading.Thread(target=read, args=(index, pipe))
                   for index, pipe in enumerate((process.stdout, process.stderr)) if pipe]
        for reader in readers:
            reader.start()
        peak, late = 0, False
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            if time.monotonic() > process.begin + seconds and not late:
                late = True
                process.kill()
            time.sleep(0.004)
        took = time.monotonic() - process.begin
        for reader in readers:
            reader.join()
        result = Result(process.returncode, *pieces, took, peak)
        self.assertFalse(late, f"not done after {seconds} s\n{result}")
        return result

    def run_it(self, *arguments, code=0, seconds=120, **more):
        """Rule U for every run: a documented exit code, a useful error message, no secret, bounded memory."""
        result = self.end(self.start(*arguments, **more), seconds)
        self.check(result, code)
        if arguments[0] != "generate":  # a model may write anything into a pipe
            self.assertNotRegex(result.out, CONTROLS, str(result))
        return result

    def check(self, result, code=0):
        allowed = code if isinstance(code, (tuple, list, set)) else (code,)
        self.assertIn(result.code, allowed, str(result))
        if result.code not in (0, 130, 143):
            self.assertIn("error", result.err, str(result))
        self.assertNotIn(TOKEN, result.out + result.err)
        self.assertNotRegex(result.err, CONTROLS, str(result))
        self.assertLess(result.peak, self.PEAK, "memory")

    def download(self, *arguments, model=None, **more):
        return self.run_it("download", model or self.MODEL, "--yes", *arguments, **more)

    # ---- the cache

    def cache(self, home=None):
        return pathlib.Path(home or self.home) / "hf/hub"

    def folder(self, repo=None, home=None):
        return self.cache(home) / ("models--" + (repo or self.repo).id.replace("/", "--"))

    def assert_whole(self, repo=None, revision="main", home=None, only=None):
        """Every file is present, has the content of the hub, and is stored as the cache specification says."""
        repo = repo or self.repo
        folder, sha = self.folder(repo, home), repo.resolve(revision)
        self.assertEqual((folder / "refs" / revision).read_text(), sha)
        self.assert_files(repo, sha, home, only)
        self.assertEqual([one.name for one in (folder / "blobs").iterdir() if "." in one.name], [], "partial files are left")

    def assert_files(self, repo, sha, home=None, only=None):
        folder = self.folder(repo, home)
        for path, file in repo.files(sha).items():
            if only is not None and path not in only:
                continue
            link = folder / "snapshots" / sha / path
            self.assertEqual(hashlib.sha256(link.read_bytes()).hexdigest(), file.sha256, path)
            self.assertEqual(os.readlink(link), "../" * (2 + path.count("/")) + f"blobs/{file.etag}")

    def assert_honest(self, repo=None, home=None):
        """A model listed as complete is complete; any other cannot be loaded."""
        repo = repo or self.repo
        if self.state(repo, home) == "complete":
            self.assert_files(repo, repo.resolve("main"), home)
        else:
            self.assert_not_whole(repo, home)

    def assert_not_whole(self, repo=None, home=None):
        """It is neither listed as complete nor loaded."""
        repo = repo or self.repo
        self.assertNotEqual(self.state(repo, home), "complete")
        loaded = self.run_it("generate", "Hi", "-m", repo.id, "-n", "1", "--device", "cpu", home=home, HF_HUB_OFFLINE="1",
                             code=(3, 4, 5, 6))
        self.assertEqual(loaded.out, "", str(loaded))

    def assert_loads(self, repo=None, home=None, **more):
        repo = repo or self.repo
        self.assertEqual(self.state(repo, home), "complete")
        self.run_it("generate", "Hi", "-m", repo.id, "-n", "1", "--temperature", "0", "--device", "cpu", home=home,
                    HF_HUB_OFFLINE="1", **more)

    def listed(self, home=None, **more):
        return json.loads(self.run_it("list", "--json", home=home, **more).out)

    def state(self, repo=None, home=None):
        """complete or partial, from `inferno list`; None if it is not listed."""
        return next(("complete" if one["complete"] else "partial" for one in self.listed(home) if one["name"] == (repo or self.repo).id), None)

    def bytes_on_disk(self, repo=None, home=None, revision="main"):
        """Bytes of the repository's content in complete and partial blobs: compared page by page, so that neither holes
        nor preallocated space count."""
        total, blobs = 0, self.folder(repo, home) / "blobs"
        names = os.listdir(blobs) if blobs.exists() else []
        for file in (repo or self.repo).files(revision).values():
            held = [blobs / name for name in names if name.startswith(file.etag)]
            total += max((right_bytes(file, path) for path in held), default=0)
        return total

    @contextlib.contextmanager
    def signalled(self, process, number, after):
        """Sends the signal once this many bytes of content were sent."""
        self.hub.watch.after(after, lambda: os.kill(process.pid, number))
        yield


def peak_memory(process):
    # wait4 would include the memory of the parent process.
    try:
        with open(f"/proc/{process}/status") as lines:
            return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def right_bytes(file, path, page=4096):
    truth, held = file.location.read_bytes(), path.read_bytes()
    if held[:len(truth)] == truth:
        return len(truth)
    return sum(min(page, len(truth) - at) for at in range(0, len(truth), page) if held[at:at + page] == truth[at:at + page])


def kill(process, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)
