"""D17: Ctrl-C, SIGTERM and closed pipes during a download: signal_test.py INFERNO"""
import os
import pathlib
import random
import signal
import sys
import termios
import time

import scene
from faults import Fault
from scene import Scene

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from terminal import Terminal  # noqa: E402


class Interrupted(Scene):
    def setUp(self):
        super().setUp()
        self.total = sum(file.size for file in self.repo.files().values())

    def fresh(self, name):
        home = self.home / str(name)
        home.mkdir()
        self.hub.forget()
        return home

    def goes_on(self, home):
        held = self.bytes_on_disk(home=home)
        self.hub.forget()
        self.download(home=home)
        self.assert_whole(home=home)
        self.assertGreaterEqual(self.total - self.hub.body_bytes(), 0.95 * held)

    def test_by_a_signal_it_ends_at_once_and_resumes_later(self):
        chance = random.Random(17)
        for trial in range(24):
            home = self.fresh(trial)
            number, code = ((signal.SIGINT, 130), (signal.SIGTERM, 143))[trial % 2]
            process, sent = self.start("download", self.MODEL, "--yes", home=home), []

            def interrupt():
                sent.append(time.monotonic())
                os.kill(process.pid, number)

            self.hub.watch.after(chance.randrange(1, self.total * 9 // 10), interrupt)
            result = self.end(process)
            self.check(result, code)
            self.assertLess(time.monotonic() - sent[0], 1)
            self.assertRegex(result.err, r"stopped at \d+ ?%.*same command")
            self.goes_on(home)
            scene.shutil.rmtree(home)

    def test_says_how_far_it_came_and_what_a_later_run_finds(self):
        self.hub.faults.append(Fault(rate=16e6))
        process = self.start("download", self.MODEL, "--yes", "--jobs", "1")
        with self.signalled(process, signal.SIGINT, self.total * 2 // 5):
            result = self.end(process)
        self.check(result, 130)
        self.assertRegex(result.err, r"stopped at (3[0-9]|4[0-9]|50) %")
        # The model has its name, though no ref was written.
        refused = self.run_it("generate", "hi", "-m", self.MODEL, code=3)
        self.assertIn(f"{self.MODEL}: incomplete", refused.err)
        self.assertIn(f"next:  inferno download {self.MODEL}\n", refused.err)
        self.hub.faults.clear()
        found = self.download().err.splitlines()[0]
        self.assertRegex(found, r"files, [\d.]+ MB, [\d.]+ MB already downloaded$")
        self.assert_whole()

    def test_while_it_waits_for_a_server_it_ends_at_once(self):
        for name, fault in (("busy", Fault(at="hub", status=503, headers={"Retry-After": "60"})), ("silent", Fault(stall=(1000, 20)))):
            self.fresh(name)
            self.hub.faults.append(fault)
            process = self.start("download", self.MODEL, "--yes", home=self.home / name)
            while not fault.met:
                time.sleep(0.01)
            time.sleep(0.2)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            self.check(self.end(process), 130)
            self.assertLess(time.monotonic() - begin, 1)

    def test_by_a_closed_pipe_it_resumes_later(self):
        for trial in range(6):
            home = self.fresh(trial)
            reader, writer = os.pipe()
            streams = ({"stdout": writer}, {"stderr": writer}, {"stdout": writer, "stderr": writer})[trial % 3]
            self.hub.watch.after(self.total // 3, lambda: os.close(reader))
            process = self.start("download", self.MODEL, "--yes", home=home, **streams)
            os.close(writer)
            result = self.end(process)
            self.assertIn(result.code, (0, 6), str(result))  # not killed by a signal
            self.assertGreater(self.bytes_on_disk(home=home), 0)
            self.goes_on(home)
            scene.shutil.rmtree(home)

    def test_by_ctrl_c_on_a_terminal(self):
        home = self.fresh("terminal")
        self.hub.faults.append(Fault(rate=30e6))
        terminal = Terminal([scene.PROGRAM, "download", self.MODEL], self.environment(home, TERM="xterm"))
        self.addCleanup(terminal.close)
        terminal.wait_for(r"model\.safetensors.*[1-9]\d? ?%")
        shown = terminal.settings()
        self.assertFalse(shown[3] & termios.ECHO, "what is typed does not disturb the progress")
        shown[3] |= termios.ECHO
        terminal.send("\x03")
        self.assertEqual(terminal.ended(5), 130)
        self.assertRegex(terminal.screen.text(), r"stopped at \d+ ?%")
        self.assertEqual(terminal.settings(), shown)
        self.goes_on(home)


if __name__ == "__main__":
    scene.main()
