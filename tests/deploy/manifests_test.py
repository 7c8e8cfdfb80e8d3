"""Manifests, workflow and bill of materials by their formats' validators (manifests.mjs), and whether `inferno` knows the options
that they use: manifests_test.py INFERNO NODE BUILD"""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Manifests(unittest.TestCase):
    def test_validators(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as bill, tarfile.open(packages.tarball(BUILD)) as tar:
            name = next(name for name in tar.getnames() if name.endswith("sbom.cdx.json"))
            bill.write(tar.extractfile(name).read())
            bill.flush()
            done = subprocess.run([NODE, ROOT / "tests/deploy/manifests.mjs", ROOT, bill.name], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.check_options(json.loads(re.search(r"^ARGUMENTS (.*)$", done.stdout, re.MULTILINE)[1]))

    def test_options_of_compose(self):
        for line in re.findall(r'command: (\["serve".*\])', (ROOT / "deploy/compose.yaml").read_text()):
            self.check_options(json.loads(line))

    def check_options(self, arguments):
        known = subprocess.run([PROGRAM, "serve", "--help"], check=True, capture_output=True, text=True).stdout
        options = [word for word in arguments if word.startswith("--")]
        self.assertGreater(len(options), 1)
        for option in options:
            self.assertRegex(known, rf"{option}\b")


if __name__ == "__main__":
    PROGRAM, NODE, BUILD = sys.argv[1:4]
    del sys.argv[1:4]
    unittest.main(verbosity=2)
