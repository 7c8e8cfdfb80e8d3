"""D4, D11: servers that ask for a wait, and servers that stop sending: wait_test.py INFERNO"""
import concurrent.futures
import email.utils
import time

import scene
from faults import Fault
from scene import MEBIBYTE, Scene, noise

WAITS = (("2", 2), ("date", 1), (None, 0.75), ("86400", None), ("-1", 0.75), ("soon", 0.75))  # Retry-After, and the minimum wait in seconds


class ToldToWait(Scene):
    """D4: each case has its own small model, so that the waits of all cases overlap."""

    @classmethod
    def fill(cls):
        cls.cases = []
        for status in (429, 503):
            for value, asked in WAITS:
                for at, path in (("hub", "/tree/"), ("cdn", "")):
                    name = f"org/wait-{len(cls.cases)}"
                    repo = cls.hub.add(name)
                    repo.commit({"config.json": b"{}", "model.safetensors": noise(20_000, name)})
                    where = f"/{name}/tree/" if at == "hub" else repo.files()["model.safetensors"].sha256
                    cls.cases.append((repo, at, where, status, value, asked))

    def attempted(self, case):
        repo, at, where, status, value, asked = case
        home = self.home / repo.id.replace("/", "-")
        home.mkdir()
        headers, until = {}, 0
        if value == "date":
            until = int(time.time()) + 4
            headers["Retry-After"] = email.utils.formatdate(until, usegmt=True)
        elif value is not None:
            headers["Retry-After"] = value
        self.hub.faults.append(Fault(at=at, path=where, status=status, headers=headers, times=1))
        result = self.run_it("download", repo.id, "--yes", home=home, code=5 if asked is None else 0, seconds=60)
        log = self.hub.requests if at == "hub" else self.hub.cdn_requests
        times = [request.time for request in log if where in request.path]
        clocks = [request.clock for request in log if where in request.path]
        self.assertGreaterEqual(clocks[-1], until, "it came back before the date")
        return result, times, home

    def test_is_said_while_it_waits(self):
        repo = self.cases[0][0]
        self.hub.faults.append(Fault(at="hub", path="/tree/", status=429, headers={"Retry-After": "1"}, times=1))
        self.hub.faults.append(Fault(at="cdn", status=503, times=1))
        said = self.run_it("download", repo.id, "--yes").err
        self.assertRegex(said, r"waiting 1 s, try 2 of 8: 127\.0\.0\.1:\d+: asks to wait \(status 429\)\n")
        self.assertRegex(said, r"waiting 1 s, try 2 of 8: 127\.0\.0\.1:\d+: is busy \(status 503\)\n")

    def test_never_retries_earlier(self):
        with concurrent.futures.ThreadPoolExecutor(12) as crowd:
            outcomes = list(crowd.map(self.attempted, self.cases))
        for (repo, at, _, status, value, asked), (result, times, home) in zip(self.cases, outcomes):
            with self.subTest(at=at, status=status, retry_after=value):
                if asked is None:
                    self.assertEqual(len(times), 1, "it was told to stay away for a day")
                    self.assertRegex(result.err, r"86,?400|24 h|1 day|a day|24:00", "says how long the server asked for")
                    self.assertLess(result.seconds, 5)
                    continue
                self.assertGreaterEqual(len(times), 2)
                pause = times[1] - times[0]
                self.assertGreaterEqual(pause, asked)
                self.assertLess(pause, 5)
                self.assert_whole(repo, home=home)

    def test_gives_up_after_eight_attempts_with_growing_waits(self):
        """At a hundredth of the time: 1, 2, 4, 8, 16, 32, 32 seconds, with a jitter of 25 %."""
        repo = self.cases[0][0]
        self.hub.faults.append(Fault(at="hub", path=f"/{repo.id}", status=503))
        result = self.run_it("download", repo.id, "--yes", code=5, INFERNO_HUB_TIME_SCALE="0.01")
        self.assertIn("503", result.err)
        times = [request.time for request in self.hub.requests]
        self.assertLessEqual(len(times), 8)
        self.assertGreaterEqual(len(times), 5)
        for number, (before, after) in enumerate(zip(times, times[1:])):
            wanted = min(2 ** number, 32) / 100
            self.assertGreaterEqual(after - before, 0.74 * wanted, f"wait {number + 1}")
            self.assertLess(after - before, 1.26 * wanted + 0.5, f"wait {number + 1}")

    def test_respects_the_ratelimit_header(self):
        repo = self.cases[0][0]
        limits = {"RateLimit": '"api";r=0;t=2', "RateLimit-Policy": '"fixed window";"api";q=500;w=300'}
        self.hub.faults.append(Fault(at="hub", status=429, headers=limits, times=1))
        self.run_it("download", repo.id, "--yes")
        self.assertGreaterEqual(self.hub.requests[1].time - self.hub.requests[0].time, 2)


class Silent(Scene):
    """D11, at a fiftieth of the time: silence for 30 s, or less than 1 KiB a second for 60 s, ends an attempt."""
    MEBIBYTES = 8
    SCALE = {"INFERNO_HUB_TIME_SCALE": "0.02"}

    def setUp(self):
        super().setUp()
        self.total = sum(file.size for file in self.repo.files().values())

    def test_bodies_are_cut_off_and_resumed(self):
        for after in (0, 100_000, 5 * MEBIBYTE):
            self.hub.forget()
            home = self.home / str(after)
            home.mkdir()
            self.hub.faults.append(Fault(stall=(after, 20), times=1))
            result = self.download(home=home, seconds=15, **self.SCALE)
            self.assertEqual(self.hub.faults[0].met, 1)
            self.assertGreater(result.seconds, 0.55)
            self.assert_whole(home=home)
            self.assertLess(self.hub.body_bytes(), 1.05 * self.total)

    def test_hubs_are_retried(self):
        self.hub.faults.append(Fault(at="hub", path="/tree/", stall=(0, 20), times=1))
        self.download(seconds=15, **self.SCALE)
        self.assert_whole()

    def test_forever_is_an_error(self):
        self.hub.faults.append(Fault(stall=(0, 60)))
        result = self.download(seconds=30, code=5, **self.SCALE)
        self.assertIn("model.safetensors", result.err)
        self.assert_not_whole()

    def test_drips_count_as_silence(self):
        self.hub.faults.append(Fault(rate=50, times=1))  # one byte at a time
        result = self.download(seconds=25, **self.SCALE)
        self.assertGreater(result.seconds, 1.1)
        self.assert_whole()

    def test_slow_lines_are_not_silent(self):
        self.hub.faults.append(Fault(rate=4e6))
        self.download(seconds=30, **self.SCALE)
        self.assert_whole()
        self.assertLess(self.hub.body_bytes(), 1.05 * self.total)


if __name__ == "__main__":
    scene.main()
