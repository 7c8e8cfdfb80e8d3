"""D9: eight processes, one model: crowd_test.py INFERNO BROKEN_LOCKS     INFERNO_HUB_TRIALS=500 for a release"""
import os
import signal
import sys

import scene
from scene import MEBIBYTE, Scene

BROKEN_LOCKS = os.path.abspath(sys.argv.pop(2))
ROUNDS = max(5, int(os.environ.get("INFERNO_HUB_TRIALS", "40")) // 10)


class Crowd(Scene):
    def setUp(self):
        super().setUp()
        self.total = sum(file.size for file in self.repo.files().values())

    def together(self, home, processes=8, **more):
        home.mkdir()
        self.hub.forget()
        started = [self.start("download", self.MODEL, "--yes", home=home, **more) for _ in range(processes)]
        for process in started:
            self.check(self.end(process))
        self.assert_whole(home=home)
        return self.hub.body_bytes() / self.total

    def test_shares_the_work(self):
        for number in range(ROUNDS):
            self.assertLessEqual(self.together(self.home / str(number)), 1.05)

    def test_is_correct_without_working_locks(self):
        """As on some network file systems, on which flock always succeeds."""
        for number in range(max(1, ROUNDS // 5)):
            self.assertLessEqual(self.together(self.home / str(number), LD_PRELOAD=BROKEN_LOCKS), 8)

    def test_continues_when_the_downloading_process_is_killed(self):
        self.hub.forget()
        started = [self.start("download", self.MODEL, "--yes") for _ in range(3)]

        def written(process):
            with open(f"/proc/{process.pid}/io") as lines:
                return int(lines.read().split("wchar: ")[1].split()[0])

        def kill_the_busy():
            # Only the process that holds the lock has written anything; the others wait during the count.
            busy = max(started, key=written)
            others = [one for one in started if one is not busy]
            for other in others:
                scene.kill(other, signal.SIGSTOP)
            scene.kill(busy)
            busy.wait()
            self.held, self.before = self.bytes_on_disk(), self.hub.body_bytes()
            for other in others:
                scene.kill(other, signal.SIGCONT)

        self.hub.watch.after(self.total // 2, kill_the_busy)
        codes = sorted(self.end(process).code for process in started)
        self.assertEqual(codes, [-9, 0, 0])
        self.assert_whole()
        self.assertGreater(self.held, MEBIBYTE)
        # The next process fetched only the rest; bytes in flight to the killed one count as sent, too.
        self.assertLess(self.hub.body_bytes() - self.before, self.total - 0.95 * self.held + 8 * MEBIBYTE)

    def test_a_reader_sees_a_complete_file_or_none(self):
        process = self.start("download", self.MODEL, "--yes")
        seen = []
        while process.poll() is None:
            seen.append(self.state())
            if seen[-1] == "complete":
                self.assert_files(self.repo, self.repo.resolve("main"))
        self.check(self.end_of(process))
        self.assertEqual(self.state(), "complete")

    def end_of(self, process):
        out, err = process.communicate()
        return scene.Result(process.returncode, out, err, 0, 0)


if __name__ == "__main__":
    scene.main()
