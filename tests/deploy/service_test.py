"""The units under a real systemd, booted in a container with the packages installed: service_test.py BUILD [--full]

Needs root, mmdebstrap and systemd-nspawn. --full puts more load on.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import packages
import root

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy/systemd"
FULL = False
# How much of the machine a unit may reach, by systemd's own measure: 0 is nothing, 10 everything.
EXPOSURE = {"inferno@.service": 1.5, "inferno-member@.service": 2.0, "inferno-balancer.service": 3.0, "inferno-balancer-members.service": 3.0}


class Units(unittest.TestCase):
    def test_systemd_understands_them(self):
        # Programs that a unit starts must exist for `verify`.
        with tempfile.TemporaryDirectory() as folder:
            for unit in UNITS.glob("*@.*"):
                shutil.copy(unit, f"{folder}/{unit.name.replace('@', '@test')}")
            for unit in UNITS.glob("*.service"):
                shutil.copy(unit, folder)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", *(str(path) for path in pathlib.Path(folder).iterdir() if "@." not in path.name)],
                                  capture_output=True, text=True)
            problems = [line for line in (done.stdout + done.stderr).splitlines()
                        if folder in line and not re.search(r"is not executable: No such file|Unit .* has a bad unit file", line)]
            self.assertEqual(problems, [])
            unit = pathlib.Path(folder) / "inferno@test.service"  # what is wrong is found
            unit.write_text(unit.read_text().replace("WatchdogSec=", "WatchdogSeconds="))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
            self.assertIn("WatchdogSeconds", done.stdout + done.stderr)

    def test_exposure(self):
        for name, limit in EXPOSURE.items():
            with tempfile.TemporaryDirectory() as folder:
                copy = pathlib.Path(folder) / name.replace("@", "@test")
                shutil.copy(UNITS / name, copy)
                done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(copy)], capture_output=True, text=True)
                exposure = float(re.search(r"exposure level for .*: ([0-9.]+)", done.stdout)[1])
                print(f"FIGURES exposure of {name}: {exposure}", flush=True)
                self.assertLessEqual(exposure, limit, done.stdout)


class Booted(unittest.TestCase):
    def test_the_service_and_the_cluster(self):
        deb = packages.deb(BUILD)
        with root.unpacked(sorted({*root.dependencies(deb), *root.SYSTEM})) as folder:
            for name in ("inferno", "inferno-balancer"):
                shutil.copy(packages.deb(BUILD, name), folder / f"{name}.deb")
            for name in ("load.py", "booted.py"):
                shutil.copy(pathlib.Path(__file__).parent / name, folder / name)
            shutil.copy(packages.deb(BUILD, "inferno-balancer"), folder)  # by its own name, as docs/cluster.md installs it
            for page in ("service.md", "cluster.md"):
                shutil.copy(ROOT / "docs" / page, folder)
            (folder / "hub").mkdir()
            for file in (ROOT / "tests/hub").glob("*.py"):
                shutil.copy(file, folder / "hub")
            shutil.copytree(ROOT / "models/builtin", folder / "hub/models/openai/gpt-oss-20b")
            output, code = root.boot(folder, f"import sys\nsys.path.insert(0, '/')\nimport booted\nbooted.main(full={FULL})\n", 580)
            print(output, flush=True)
            self.assertEqual(code, 0)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    if "--full" in sys.argv:
        sys.argv.remove("--full")
        FULL = True
    unittest.main(verbosity=2)
