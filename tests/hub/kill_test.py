"""D1: kill -9 at random moments: kill_test.py INFERNO KILLED_AT_STEP     INFERNO_HUB_TRIALS=500 for a release"""
import os
import random
import signal
import sys
import time

import scene
from scene import Scene, kill

TRIALS = int(os.environ.get("INFERNO_HUB_TRIALS", "40"))
SEED = int(os.environ.get("INFERNO_HUB_SEED", "1"))
JOURNALLED = 128 << 10  # bytes that a connection may write between two journal entries
STEPS = os.path.abspath(sys.argv.pop(2))


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
        # A run may lose bytes that are not yet in the journal, but no others.
        self.assertGreaterEqual(self.total - sent, held - 8 * scene.MEBIBYTE, f"{name}: {held} bytes were on disk, {sent} came again")

    def test_one_more_run_completes_it_from_the_partial_file(self):
        chance = random.Random(SEED)
        codes = []
        for trial in range(TRIALS):
            home = self.home / str(trial)
            home.mkdir()
            if trial % 5 == 4:  # every fifth at the very end
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


class KilledAtEveryStep(Scene):
    """The process dies before or after each call that creates, syncs, renames or removes a file."""
    MEBIBYTES = 3

    def test_one_more_run_completes_it_from_the_partial_file(self):
        seen, total = self.home / "steps", sum(file.size for file in self.repo.files().values())
        (self.home / "first").mkdir()
        self.download(home=self.home / "first", LD_PRELOAD=STEPS, STEPS_FILE=str(seen))
        steps = seen.read_text().split()
        self.assertGreater(len(steps), 30, steps)
        killed = 0
        for number in [*range(1, len(steps) + 1), *range(-len(steps), 0)][::1 if TRIALS > 40 else 2]:
            home = self.home / str(number)
            home.mkdir()
            code = self.end(self.start("download", self.MODEL, "--yes", home=home, LD_PRELOAD=STEPS, KILLED_AT_STEP=str(number))).code
            self.assertIn(code, (0, -signal.SIGKILL))  # depending on thread timing there may be one step less
            killed += code != 0
            held = self.bytes_on_disk(home=home)
            self.assert_honest(home=home)
            self.hub.forget()
            self.download(home=home)
            self.assert_whole(home=home)
            self.assertGreaterEqual(total - self.hub.body_bytes(), 0.95 * held - JOURNALLED, f"killed at step {number}: {steps[abs(number) - 1]}")
            scene.shutil.rmtree(home)
        self.assertGreater(killed, len(steps) * 3 // 4)
        print(f"\nkilled at {killed} steps of {len(steps)}, before or after: {', '.join(sorted(set(steps)))}", flush=True)


if __name__ == "__main__":
    scene.main()
