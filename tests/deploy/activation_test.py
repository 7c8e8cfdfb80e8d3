"""`inferno serve` as a service manager starts it: a socket that outlives it, requests that wait for the model, messages
about its state, a watchdog: activation_test.py INFERNO"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))
import scene  # noqa: E402
from scene import until  # noqa: E402


class Manager:
    """What systemd does: holds a listening socket, starts the server with it and hears its messages."""

    def __init__(self, address="127.0.0.1"):
        self.socket = socket.create_server((address, 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.folder = tempfile.TemporaryDirectory(prefix="inferno-manager-")
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.bind(f"{self.folder.name}/notify")
        self.ear.settimeout(30)
        self.log = open(f"{self.folder.name}/stderr", "w+b")
        self.heard, self.process = [], None

    def errors(self):
        return pathlib.Path(self.log.name).read_bytes()

    def start(self, *flags, model="builtin", watchdog=None, **more):
        # LISTEN_PID must be the server's own id, which a shell knows and keeps by exec. The socket becomes descriptor 3.
        command = ["sh", "-c", f'exec 3<&{self.socket.fileno()}; export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$@"', "sh",
                   scene.PROGRAM, "serve", str(model), "--device", "cpu", *flags]
        env = scene.environment(LISTEN_FDS="1", NOTIFY_SOCKET=f"{self.folder.name}/notify", **more)
        if watchdog:
            env["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        self.process = subprocess.Popen(command, env=env, pass_fds=[self.socket.fileno()], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log)

    def hear(self, word, seconds=30):
        """Waits for a message that has the word; returns it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.ear.settimeout(max(0.01, end - time.monotonic()))
            try:
                self.heard.append(self.ear.recv(4096).decode())
            except TimeoutError:
                break
            if word in self.heard[-1]:
                return self.heard[-1]
        raise AssertionError(f"{word} not within {seconds} s; heard {self.heard}; {self.errors().decode()}")

    def send(self, tokens=8, stream=False, **headers):
        """A connection with a request on it."""
        body = b'{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": %d, "ignore_eos": true, "stream": %s}' % (tokens, b"true" if stream else b"false")
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        one = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        one.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{lines}Connection: close\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return one

    def stop(self, timeout=60):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.ear.close()
        self.log.close()
        self.socket.close()
        self.folder.cleanup()


def received(one):
    """The whole response as text; the connection is closed."""
    with one:
        text = b""
        while part := one.recv(65536):
            text += part
    return text.decode()


class Activation(unittest.TestCase):
    def setUp(self):
        self.manager = Manager()
        self.addCleanup(self.manager.close)

    def test_requests_that_came_before_the_model_get_answers(self):
        early = [self.manager.send() for _ in range(8)]
        self.manager.start()
        for one in early:
            self.assertTrue(received(one).startswith("HTTP/1.1 200"))
        self.assertIn("STATUS=Loading builtin", self.manager.hear("STATUS"))
        self.assertIn(f"STATUS=Serving builtin at http://127.0.0.1:{self.manager.port}", self.manager.hear("READY=1"))
        self.assertEqual(self.manager.stop(), 0)
        self.manager.hear("STOPPING=1")

    def test_health_does_not_wait(self):
        with socket.create_connection(("127.0.0.1", self.manager.port), timeout=30) as early:
            early.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.manager.start()
            self.assertTrue(received(early).startswith("HTTP/1.1 200"))

    def test_a_restart_under_load_fails_nobody(self):
        self.manager.start("--max-queue", "256")
        self.manager.hear("READY=1")
        results, ends = [], threading.Event()

        def ask(number):
            try:
                results.append(received(self.manager.send(tokens=24, stream=number % 2 == 0)))
            except OSError as problem:
                results.append(repr(problem))

        def load():
            number, threads = 0, []
            while not ends.is_set():
                threads.append(threading.Thread(target=ask, args=(number,)))
                threads[-1].start()
                number += 1
                time.sleep(0.02)
            for one in threads:
                one.join()

        client = threading.Thread(target=load)
        client.start()
        for _ in range(2):
            time.sleep(1)
            self.assertEqual(self.manager.stop(), 0)
            self.manager.start("--max-queue", "256")
            self.manager.hear("READY=1")
        time.sleep(0.5)
        ends.set()
        client.join()
        failed = [text for text in results if not text.startswith("HTTP/1.1 200") or ("event-stream" in text and "[DONE]" not in text)]
        self.assertGreater(len(results), 60)
        self.assertEqual((len(failed), failed[:1]), (0, []), f"of {len(results)}")

    def test_the_watchdog_hears_of_a_server_that_works_and_not_of_one_that_hangs(self):
        self.manager.start(watchdog=2)
        self.manager.hear("READY=1")
        for _ in range(3):
            self.manager.hear("WATCHDOG=1", 2)
        os.kill(self.manager.process.pid, signal.SIGSTOP)
        try:
            time.sleep(0.1)
            self.manager.ear.setblocking(False)
            with self.assertRaises(BlockingIOError):
                while True:
                    self.manager.ear.recv(4096)
            with self.assertRaises(AssertionError):
                self.manager.hear("WATCHDOG=1", 1)
        finally:
            os.kill(self.manager.process.pid, signal.SIGCONT)
        self.manager.hear("WATCHDOG=1", 5)

    def test_a_socket_that_others_can_reach_needs_a_key(self):
        open_to_all = Manager("0.0.0.0")
        self.addCleanup(open_to_all.close)
        open_to_all.start()
        self.assertEqual(open_to_all.process.wait(30), 2)
        until(lambda: b"without a key" in open_to_all.errors(), 5, "the error")

    def test_a_descriptor_that_is_no_listener_is_refused(self):
        self.manager.socket.close()
        self.manager.socket = socket.socket()
        self.manager.socket.bind(("127.0.0.1", 0))
        self.manager.start()
        self.assertEqual(self.manager.process.wait(30), 2)
        until(lambda: b"not a TCP socket that listens" in self.manager.errors(), 5, "the error")

    def test_load_is_reported_when_asked_for(self):
        self.manager.start()
        self.manager.hear("READY=1")
        self.assertIn("endpoint-load-metrics: TEXT named_metrics.kv_cache_usage_perc=", received(self.manager.send(endpoint_load_metrics_format="TEXT")))
        self.assertIn('endpoint-load-metrics: JSON {"named_metrics": {"kv_cache_usage_perc": ',
                      received(self.manager.send(stream=True, endpoint_load_metrics_format="JSON")))
        self.assertNotIn("endpoint-load-metrics", received(self.manager.send()))
        self.assertNotIn("endpoint-load-metrics", received(self.manager.send(endpoint_load_metrics_format="BIN")))


if __name__ == "__main__":
    scene.main()
