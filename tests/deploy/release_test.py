"""packaging/release from its first step to its last: release_test.py INFERNO BUILD

Needs root and buildah. It compiles this checkout again, in a folder of another name at another path; ccache has the objects of
the build that is tested, so most of the time goes into packing.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import packages

ROOT = pathlib.Path(__file__).resolve().parents[2]


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


class Release(unittest.TestCase):
    def release(self, root_folder, out, **environment):
        return subprocess.run([root_folder / "packaging/release", out], capture_output=True, text=True,
                              env={**os.environ, "SOURCE_DATE_EPOCH": packages.EPOCH, **environment})

    @unittest.skipUnless(shutil.which("ccache"), "without ccache it would take as long as the build itself")
    def test_a_second_build_in_another_folder_gives_the_same_packages(self):
        preset = BUILD.name
        if preset not in ("release", "portable", "shipped"):
            self.skipTest(f"{preset} is never released")
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            begin = time.monotonic()
            done = self.release(ROOT, out, INFERNO_RELEASE_PRESET=preset)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
            print(f"FIGURES packaging/release {preset}: {time.monotonic() - begin:.0f} s", flush=True)
            made = {path.name for path in out.iterdir()}
            image = f"{packages.tarball(BUILD).name.split('-linux')[0]}-image.tar.gz"
            self.assertEqual(made, {*(packages.deb(BUILD, name).name for name in packages.NAMES), packages.tarball(BUILD).name, image, "sbom.cdx.json", "NOTES.md", "SHA256SUMS"})
            sums = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
            self.assertEqual(sums, {name: digest(out / name) for name in made - {"SHA256SUMS"}})
            self.assertRegex((out / "NOTES.md").read_text(), r"^## \d")
            with tarfile.open(out / image) as tar:
                self.assertEqual(json.load(tar.extractfile("manifest.json"))[0]["RepoTags"], [f"localhost/inferno:{image.split('-')[1]}"])
            again = ROOT / f"build/released-{preset}/inferno"
            versions = [subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout for program in (PROGRAM, again)]
            self.assertEqual(*versions, "the tested build is of another commit: build it again")
            self.assertEqual(digest(again), digest(PROGRAM), "the programs differ")
            for path in [*(packages.deb(BUILD, name) for name in packages.NAMES), packages.tarball(BUILD)]:
                self.assertEqual(sums[path.name], digest(path), path.name)

    def test_a_folder_with_files_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "inferno_0.0.1_amd64.deb").touch()
            done = self.release(ROOT, folder, INFERNO_RELEASE_PRESET="release")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not empty", done.stderr)

    def test_a_folder_that_was_configured_at_another_path_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            (copy / "packaging").mkdir()
            shutil.copy(ROOT / "packaging/release", copy / "packaging")
            shutil.copy(ROOT / "CMakeLists.txt", copy)
            build = copy / "build/released-release"
            build.mkdir(parents=True)
            (build / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
            done = self.release(copy, copy / "out", INFERNO_RELEASE_PRESET="release", INFERNO_RELEASE_IMAGE="no")
            self.assertEqual(done.returncode, 1)
            self.assertIn("was configured at /elsewhere, not at /tmp/inferno-release: remove it", done.stderr)


if __name__ == "__main__":
    PROGRAM, BUILD = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
