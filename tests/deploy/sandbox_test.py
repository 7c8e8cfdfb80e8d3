"""The service's sandbox without systemd: the self-test, and a hundred answers: sandbox_test.py INFERNO [DEVICE]

On the CPU the answers must be those outside. On a GPU an answer depends on what else is computed in its steps, so that there only
their form is checked."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import sandbox

PROGRAM = os.path.abspath(sys.argv.pop(1))
DEVICE = sys.argv.pop(1) if len(sys.argv) > 1 else "cpu"
SANDBOX = (sys.executable, "-B", os.path.abspath(sandbox.__file__))
ANSWERS, AT_ONCE = 100, 8
IS_REPEATABLE = DEVICE == "cpu"
COLOURS = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {
    "type": "object", "properties": {"colour": {"enum": ["red", "green"]}, "name": {"type": "string", "pattern": "^[a-z]{2,8}$"}},
    "required": ["colour", "name"], "additionalProperties": False}}}


def body(number):
    """A question of its own; every fourth answer follows a schema."""
    return {"messages": [{"role": "user", "content": f"Tell me a story about {number} animals and a river."}], "temperature": 0.7, "seed": number,
            "max_tokens": 24, **({"response_format": COLOURS, "max_tokens": 60} if number % 4 == 0 else {})}


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        kept = ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "CUDA_VISIBLE_DEVICES")
        self.environment = {**{name: value for name, value in os.environ.items() if name in kept}, "HOME": self.folder.name, "HF_HUB_OFFLINE": "1"}

    def test_the_rules_hold(self):
        """The sandbox does what it says, so that the other tests mean something."""
        told = subprocess.run([*SANDBOX, sys.executable, "-c", f"import sys; sys.path.insert(0, {os.path.dirname(SANDBOX[-1])!r}); import os, sandbox; "
                               "print(sandbox.maps_executable_memory(), sandbox.capabilities(os.getpid()))"], capture_output=True, text=True, timeout=60, check=True)
        self.assertRegex(told.stdout, r"^False \{.*'CapPrm': 0, 'CapEff': 0")
        print(told.stderr.strip(), flush=True)
        self.assertTrue(sandbox.maps_executable_memory(), "outside it is allowed")

    def test_the_self_test_passes(self):
        done = subprocess.run([*SANDBOX, PROGRAM, "doctor", "--self-test", "--device", DEVICE], env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = re.search(r"all \d+ tokens of the built-in model match the reference, on .*", done.stdout)
        self.assertTrue(found, done.stdout)
        self.assertIn("tokenizers without JIT compiler", done.stdout)  # as the rule wants it
        print(found[0], flush=True)

    def answers(self, *wrapper):
        """The texts of a server's answers, and the rights that it had."""
        server = subprocess.Popen([*wrapper, PROGRAM, "serve", "builtin", "--port", "0", "--device", DEVICE, "--parallel", str(AT_ONCE),
                                   *(("--deterministic",) if IS_REPEATABLE else ())],
                                  env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            printed = []
            for line in server.stdout:
                printed.append(line)
                if line.startswith("reach "):  # the last line of the greeting
                    break
            found = re.search(r"listening on (http://\S+)", "".join(printed))
            self.assertTrue(found and printed[-1].startswith("reach "), "".join(printed))

            def ask(number):
                request = urllib.request.Request(f"{found[1]}/v1/chat/completions", json.dumps(body(number)).encode(), {"content-type": "application/json"})
                with urllib.request.urlopen(request, timeout=120) as response:
                    return json.load(response)["choices"][0]["message"]["content"]

            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                texts = list(pool.map(ask, range(ANSWERS)))
            rights = sandbox.capabilities(server.pid)
            server.terminate()
            self.assertEqual(server.wait(60), 0)
            return texts, rights
        finally:
            server.kill()
            server.wait()
            server.stdout.close()

    def test_a_hundred_questions_are_answered(self):
        inside, rights = self.answers(*SANDBOX)
        self.assertEqual({name: value for name, value in rights.items() if value}, {"NoNewPrivs": 1} if "NoNewPrivs" in rights else {})
        self.assertEqual([sorted(json.loads(text)) for text in inside[::4]], [["colour", "name"]] * (ANSWERS // 4))
        self.assertTrue(all(inside))
        self.assertGreater(len(set(inside)), ANSWERS // 2)  # the questions differ
        outside, _ = self.answers()
        if IS_REPEATABLE:
            self.assertEqual(inside, outside)
        equal = sum(one == other for one, other in zip(inside, outside))
        print(f"{len(inside)} answers on {DEVICE} in the sandbox, {equal} equal to those outside", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
