"""The clients that people use, from npm, with every raw answer checked: clients_test.py INFERNO NODE OPENAPI.JSON"""
import os
import pathlib
import subprocess
import sys
import unittest

import scene
from scene import FOLDER, Server, known

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = HERE.parent / "node_modules"
SCHEMA, NODE = sys.argv.pop(3), sys.argv.pop(2)


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--alias", "known", "--api-key", "the-key", model=known(), key="the-key")
        cls.addClassCleanup(cls.server.stop)

    def run_node(self, *arguments, **more):
        done = subprocess.run([NODE, *map(str, arguments)], capture_output=True, timeout=120, text=True,
                              env={**os.environ, "SERVER": self.server.url, "KEY": "the-key", "SCHEMA": SCHEMA, **more})
        self.assertEqual(done.returncode, 0, done.stdout[-12000:] + done.stderr[-4000:])

    def test_openai(self):
        self.run_node(HERE / "openai_test.mjs")

    def test_anthropic(self):
        answers = FOLDER / "answers.ts"
        self.run_node(HERE / "anthropic_test.mjs", ANSWERS=str(answers))
        (FOLDER / "node_modules").symlink_to(PACKAGES)
        (FOLDER / "tsconfig.json").write_text('{"compilerOptions": {"strict": true, "noEmit": true, "skipLibCheck": true, "module": "node16", '
                                              '"moduleResolution": "node16", "target": "es2022", "types": []}, "files": ["answers.ts"]}')
        self.run_node(PACKAGES / "typescript/bin/tsc", "-p", FOLDER)


if __name__ == "__main__":
    scene.main()
