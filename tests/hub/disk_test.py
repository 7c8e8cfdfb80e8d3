"""D8, D10: disks that are full or read-only: disk_test.py INFERNO     needs root for its own mounts"""
import os
import pwd
import shutil
import subprocess
import sys

import scene
import trace
from scene import MEBIBYTE, Scene, skip_unless

MOUNTS = "INFERNO_HUB_HAS_ITS_OWN_MOUNTS"


def with_own_mounts():
    """Restarts itself in a mount namespace of its own. False if that is not allowed."""
    if MOUNTS in os.environ:
        return True
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return False
    os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, MOUNTS: "1"})


ALLOWED = with_own_mounts()


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)


@skip_unless(ALLOWED, "mounting a small disk is not allowed here: run as root")
class Full(Scene):
    """D8"""

    def disk(self, name, mebibytes=48):
        folder = self.home / name
        folder.mkdir()
        mount("-t", "tmpfs", "-o", f"size={mebibytes}m,mode=755", "none", folder)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], capture_output=True)
        self.hub.forget()
        return folder

    def succeeds_with_more_room(self, home):
        mount("-o", "remount,size=160m", home)
        self.hub.forget()
        self.download(home=home)
        self.assert_whole(home=home)

    def test_is_reported_before_the_first_byte(self):
        for trial in range(5):
            home = self.disk(f"announced-{trial}", mebibytes=48 - trial * 9)
            result = self.download(home=home, code=6)
            self.assertEqual(self.hub.body_bytes("/repos/"), 0, "nothing was fetched in vain")
            self.assertRegex(result.err, r"\d+([.,]\d+)? ?[KMGT]i?B.*\d+([.,]\d+)? ?[KMGT]i?B", "both figures: what it needs and what is free")
            self.succeeds_with_more_room(home)

    def test_is_reported_during_a_download(self):
        """Enough space at the start; then another program takes it."""
        for trial in range(5):
            home = self.disk(f"taken-{trial}", mebibytes=100)
            other = home / "other"

            def take():
                with open(other, "wb") as file:
                    os.posix_fallocate(file.fileno(), 0, (80 - trial * 5) * MEBIBYTE)

            def take_what_is_left():
                try:
                    take()
                except OSError:
                    os.posix_fallocate(os.open(other, os.O_RDWR), 0, os.statvfs(home).f_bavail * 4096)

            self.hub.watch.after((3 + trial) * MEBIBYTE, take_what_is_left)
            result = self.download(home=home, code=(0, 6))
            other.unlink()
            if result.code == 6:
                self.assertRegex(result.err, r"(?i)no space|disk|room")
                self.assert_not_whole(home=home)
            self.succeeds_with_more_room(home)
            self.codes = getattr(self, "codes", []) + [result.code]
        self.assertIn(6, self.codes, "room was set aside in time every time: the fault was never met")


@skip_unless(ALLOWED, "mounting a cache read-only is not allowed here: run as root")
class ReadOnly(Scene):
    """D10"""
    MEBIBYTES = 16

    def protect(self):
        cache = self.home / "hf"
        mount("--bind", cache, cache)
        mount("-o", "remount,bind,ro", cache)
        self.addCleanup(subprocess.run, ["umount", "-l", cache], capture_output=True)

    def test_and_complete_works_and_is_not_written_to(self):
        self.download()
        self.protect()
        self.hub.forget()
        for words in (("generate", "Hi", "-m", self.MODEL, "-n", "1", "--device", "cpu"), ("list",), ("download", self.MODEL, "--yes"),
                      ("verify", self.MODEL)):
            with self.subTest(words[0]):
                seen = self.home / f"{words[0]}.trace"
                self.run_it(*words, wrapper=trace.wrapper(seen))
                below = str(self.home / "hf")
                wrote = [call for call in trace.calls(seen) if call.writes and any(
                    path.startswith(below) for path in [*call.paths, *([call.file] if call.file else [])])]
                self.assertEqual(wrote, [])
        self.assertEqual(self.hub.body_bytes(), 0)

    def test_and_partial_is_reported_at_once(self):
        process = self.start("download", self.MODEL, "--yes")
        with self.signalled(process, 9, 5 * MEBIBYTE):
            self.end(process)
        self.protect()
        result = self.download(code=6)
        self.assertLess(result.seconds, 1)
        self.assertIn(str(self.home / "hf"), result.err)

    def test_and_empty_is_reported_at_once(self):
        (self.home / "hf").mkdir()
        self.protect()
        result = self.download(code=6)
        self.assertLess(result.seconds, 1)
        self.assertIn(str(self.home / "hf"), result.err)

    def test_a_folder_of_another_user_is_reported_at_once(self):
        """Permissions instead of mounts; root may write anywhere, so this runs as another user."""
        nobody = pwd.getpwnam("nobody")
        (self.home / "hf").mkdir(mode=0o755)
        self.home.chmod(0o755)
        program = shutil.copy(scene.PROGRAM, self.home)  # readable by the other user
        result = self.download(code=6, program=program, wrapper=("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"))
        self.assertIn(str(self.home / "hf"), result.err)


if __name__ == "__main__":
    scene.main()
