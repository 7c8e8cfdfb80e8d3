"""D1: kill -9 at random moments: kill_test.py INFERNO     INFERNO_HUB_TRIALS=500 for a release"""
import os
import random
import signal
import time

import scene
import trace
from scene import Scene, kill

TRIALS = int(os.environ.get("INFERNO_HUB_TRIALS", "40"))
# Where the last steps of a download are; a kill in the middle of each of them.
LAST_STEPS = ("fsync", "fdatasync", "rename", "renameat", "renameat2", "symlink", "symlinkat", "unlink", "unlinkat")


class KilledAtRandom(Scene):
    def setUp(self):
        super().setUp()
        self.total = sum(file.size for file in self.repo.files().values())
        self.held = self.reused = 0

    def killed(self, home, after):
        process = self.start("download", self.MODEL, "--yes", home=home)
        with self.signalled(process, signal.SIGKILL, after):
            return self.end(process)

    def killed_late(self, home, seconds):
        """After the last byte, while the rest is hashed, checked, renamed and linked."""
        process = self.start("download", self.MODEL, "--yes", home=home)
        self.hub.watch.after(self.total, lambda: (time.sleep(seconds), kill(process)))
        return self.end(process)

    def rerun(self, home, name):
        held = self.bytes_on_disk(home=home)
        if self.folder(home=home).exists():
            self.assert_honest(home=home)
        self.hub.forget()
        self.download(home=home)
        self.assert_whole(home=home)
        sent = self.hub.body_bytes()
        self.held += held
        self.reused += min(held, max(0, self.total - sent))
        # One run may have lost what was on its way into the journal, but not more.
        self.assertGreaterEqual(self.total - sent, held - 8 * scene.MEBIBYTE, f"{name}: {held} bytes were on disk, {sent} came again")

    def test_one_more_run_makes_it_whole_with_what_was_there(self):
        chance = random.Random(1)
        codes = []
        for trial in range(TRIALS):
            home = self.home / str(trial)
            home.mkdir()
            if trial % 5 == 4:  # a fifth of them at the very end
                if trial % 2:
                    codes.append(self.killed(home, self.total - chance.randrange(self.total // 100)).code)
                else:
                    codes.append(self.killed_late(home, chance.random() * 0.06).code)
            else:
                codes.append(self.killed(home, chance.randrange(1, self.total)).code)
            self.rerun(home, f"trial {trial}")
            scene.shutil.rmtree(home)
        killed = codes.count(-signal.SIGKILL)
        self.assertEqual(set(codes) - {0, -signal.SIGKILL}, set())
        self.assertGreater(killed, TRIALS * 3 // 4)
        self.assertGreaterEqual(self.reused, 0.95 * self.held)
        print(f"\n{killed} of {TRIALS} killed in time, {TRIALS} of {TRIALS} whole after one more run, "
              f"{100 * self.reused / max(1, self.held):.1f} % of {self.held / 1e9:.2f} GB on disk reused", flush=True)


class KilledAtTheLastSteps(Scene):
    MEBIBYTES = 2

    def test_one_more_run_makes_it_whole(self):
        if not trace.is_allowed():
            self.skipTest("strace may not watch programs here")
        seen = self.home / "seen"
        self.run_it("download", self.MODEL, "--yes", home=self.home / "first", wrapper=trace.wrapper(seen))
        steps = {}
        for call in trace.calls(seen):
            if call.name in LAST_STEPS:
                steps[call.name] = steps.get(call.name, 0) + 1
        killed = 0
        for name, count in steps.items():
            for when in range(1, min(count, 8) + 1):
                home = self.home / f"{name}-{when}"
                home.mkdir()
                process = self.start("download", self.MODEL, "--yes", home=home,
                                     wrapper=trace.wrapper(os.devnull, name, "-e", f"inject={name}:signal=KILL:when={when}"))
                result = self.end(process)
                killed += result.code in (-signal.SIGKILL, 128 + signal.SIGKILL)
                self.assert_honest(home=home)
                self.download(home=home)
                self.assert_whole(home=home)
        self.assertGreater(killed, 5, steps)
        print(f"\nkilled at {killed} of the last steps: {steps}", flush=True)


if __name__ == "__main__":
    scene.main()
