"""packaging/release from its first step to its last, without a network: release_test.py INFERNO BUILD [--full PRESET]

Needs root and buildah. It compiles this checkout again, in a folder of another name at another path; ccache has the objects of
the build that is tested, so most of the time goes into packing. With --full it compiles two clones of this checkout's commit, each
from nothing.
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
from packages import ROOT

FULL = None  # a preset


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def image_id(archive):
    """As podman and docker name it, and the tags."""
    with tarfile.open(archive) as tar:
        [image] = json.load(tar.extractfile("manifest.json"))
    return image["Config"].removesuffix(".json"), image["RepoTags"]


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="inferno-release-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        subprocess.run(["minisign", "-G", "-W", "-p", self.folder / "key.pub", "-s", self.folder / "key"], check=True, capture_output=True)

    def release(self, checkout, out, preset, **environment):
        """Without a network, signed. Returns what ended and its seconds."""
        begin = time.monotonic()
        done = subprocess.run(["unshare", "--net", checkout / "packaging/release", out], capture_output=True, text=True,
                              env={**os.environ, "MINISIGN_KEY": str(self.folder / "key"), "INFERNO_RELEASE_PRESET": preset, **environment})
        return done, time.monotonic() - begin

    def expect_complete(self, out):
        """Every file that is published is there, listed and signed."""
        [tarball] = [path.name for path in out.glob("*.tar.xz")]
        version = tarball.split("-")[1]
        debs = {f"{name}_{version}_{'all' if name == 'inferno-balancer' else 'amd64'}.deb" for name in packages.NAMES}
        sums = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(set(sums), {*debs, tarball, f"inferno-{version}-image.tar.gz", "sbom.cdx.json", "NOTES.md"})
        self.assertEqual({path.name for path in out.iterdir()}, {*sums, "SHA256SUMS", "SHA256SUMS.minisig"})
        self.assertEqual(sums, {name: digest(out / name) for name in sums})
        self.assertRegex((out / "NOTES.md").read_text(), r"^## \d")
        self.assertEqual(image_id(out / f"inferno-{version}-image.tar.gz")[1], [f"localhost/inferno:{version}"])
        verify = packages.documented(0).replace("PUBLIC_KEY", (self.folder / "key.pub").read_text().splitlines()[1])
        verified = subprocess.run(["bash", "-euc", verify], cwd=out, capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertEqual(verified.stdout.count(": OK\n"), len(sums))
        return sums


class Release(ReleaseTest):
    @unittest.skipUnless(shutil.which("ccache"), "without ccache it would take as long as the build itself")
    def test_a_second_build_in_another_folder_gives_the_same_packages(self):
        preset = BUILD.name
        if preset != "release":
            self.skipTest("with CUDA, this build has the kernels' names of its own path; --full compares two releases")
        out = self.folder / "out"
        done, seconds = self.release(ROOT, out, preset, SOURCE_DATE_EPOCH=packages.EPOCH)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        print(f"FIGURES packaging/release {preset}: {seconds:.0f} s", flush=True)
        sums = self.expect_complete(out)
        again = ROOT / f"build/released-{preset}/inferno"
        versions = [subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout for program in (PROGRAM, again)]
        self.assertEqual(*versions, "the tested build is of another commit: build it again")
        self.assertEqual(digest(again), digest(PROGRAM), "the programs differ")
        for path in [*(packages.deb(BUILD, name) for name in packages.NAMES), packages.tarball(BUILD)]:
            self.assertEqual(sums[path.name], digest(path), path.name)

    def test_a_folder_with_files_is_refused(self):
        (self.folder / "inferno_0.0.1_amd64.deb").touch()
        done, _ = self.release(ROOT, self.folder, "release")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not empty", done.stderr)

    def test_a_portable_program_without_cuda_is_refused(self):
        build = self.folder / "build"
        build.mkdir()
        (build / "CMakeCache.txt").write_text("NVCC:FILEPATH=NVCC-NOTFOUND\n")
        done, _ = self.release(ROOT, self.folder / "out", "portable", SOURCE_DATE_EPOCH=packages.EPOCH, INFERNO_RELEASE_PROGRAM=str(build))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no CUDA backend", done.stderr)

    def test_a_folder_that_was_configured_at_another_path_is_refused(self):
        copy = self.folder / "copy"
        (copy / "packaging").mkdir(parents=True)
        shutil.copy(ROOT / "packaging/release", copy / "packaging")
        shutil.copy(ROOT / "CMakeLists.txt", copy)
        build = copy / "build/released-release"
        build.mkdir(parents=True)
        (build / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        done, _ = self.release(copy, copy / "out", "release", SOURCE_DATE_EPOCH=packages.EPOCH)
        self.assertEqual(done.returncode, 1)
        self.assertIn("was configured at /elsewhere, not at /tmp/inferno-release: remove it", done.stderr)


class FromNothing(ReleaseTest):
    def test_two_builds_in_two_folders_are_equal(self):
        if not FULL:
            self.skipTest("only with --full")
        made = []
        for name in ("first", "the second"):
            checkout, out = self.folder / name / "inferno", self.folder / name / "out"
            subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout], check=True)
            environment = {} if len(made) % 2 else {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}
            done, seconds = self.release(checkout, out, FULL, CCACHE_DISABLE="1", **environment)
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
            sums = self.expect_complete(out)
            [image] = out.glob("*-image.tar.gz")
            made.append({**sums, "SHA256SUMS.minisig": digest(out / "SHA256SUMS.minisig"), "image": image_id(image)[0],
                         **{file: digest(checkout / f"build/released-{FULL}/{file}") for file in ("inferno", "libinferno.so", "libinferno.a")}})
            print(f"FIGURES packaging/release {FULL} from nothing: {seconds:.0f} s; " +
                  ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in sorted(out.iterdir()) if path.stat().st_size > 100_000), flush=True)
            shutil.rmtree(checkout)
        self.assertEqual(*made)
        print(f"FIGURES equal in both: {', '.join(made[0])}; image {made[0]['image']}", flush=True)


if __name__ == "__main__":
    if "--full" in sys.argv:
        at = sys.argv.index("--full")
        FULL = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    PROGRAM, BUILD = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
