"""Shared by the tests of the whole server: starts `inferno serve` on a free port, sends requests, stops it, and checks that
nothing is left behind."""
import atexit
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import known_model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = None  # set by main()
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="inferno-server-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")


def main():
    """The program to test is the first argument; the rest is unittest's."""
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    (FOLDER / "home").mkdir()
    unittest.main(module="__main__", verbosity=2)


def skip_unless(allowed, why):
    """For tests that a machine may not allow. In CI none may be skipped."""
    if not allowed and os.environ.get("CI"):
        raise RuntimeError(why)
    return unittest.skipUnless(allowed, why)


def known(harmony=False):
    """The directory of the model with known answers, written once."""
    path = FOLDER / ("known-harmony" if harmony else "known")
    return path if path.exists() else known_model.write(path, harmony)


def environment(**more):
    kept = {key: value for key, value in os.environ.items()
            if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")}
    return {**kept, "HOME": str(FOLDER / "home"), "TERM": "dumb", "HF_HUB_OFFLINE": "1", **more}


def generate(*arguments, stdin=b""):
    """The result of `inferno generate --json`. Without Harmony's mask, so that a model with known answers may give broken ones."""
    done = subprocess.run([PROGRAM, "generate", *map(str, arguments), "--json", "--device", "cpu", "--no-harmony-mask"], input=stdin, capture_output=True,
                          timeout=120, env=environment())
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def until(ready, seconds=10, what="condition", pause=0.005):
    """Waits for ready() to be true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = ready()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.status} {self.headers}\n{self.body.decode(errors='replace')[:2000]}"


class Events:
    """A stream of server-sent events, read as they come."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.status, self.headers = response.status, headers_of(response)
        self.comments = []

    def __iter__(self):
        """(event name or None, data as text)"""
        name, data = None, []
        for line in self.response:
            line = line.decode().rstrip("\n").rstrip("\r")
            if line.startswith(":"):
                self.comments.append(line[1:].strip())
            elif line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                yield name, "\n".join(data)
                name, data = None, []

    def all(self):
        with contextlib.closing(self):
            return list(self)

    def json(self):
        """The data of every event but [DONE]."""
        return [json.loads(data) for _, data in self.all() if data != "[DONE]"]

    def close(self):
        # Closing only the connection would leave the descriptor to the response.
        self.response.close()
        self.connection.close()


def headers_of(response):
    return {name.lower(): value for name, value in response.getheaders()}


class Server:
    """A running `inferno serve`."""

    def __init__(self, *flags, model=None, key=None, wrapper=(), wait=True, env=None):
        self.key = key
        self.errors = open(FOLDER / f"stderr-{time.monotonic_ns()}", "w+b")
        self.output = open(FOLDER / f"stdout-{time.monotonic_ns()}", "w+b")
        command = [*wrapper, PROGRAM, "serve", *([str(model)] if model else []), *(() if "--port" in flags else ("--port", "0")), "--device", "cpu", *map(str, flags)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.errors, env=environment(**(env or {})))
        self.pid = self.process.pid
        try:
            self.port = int(until(self.printed_port, 60, "the server prints its address"))
            if wait:
                until(self.is_ready, 60, "/health is 200", pause=0.02)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def printed(self):
        return pathlib.Path(self.output.name).read_text(errors="replace") + pathlib.Path(self.errors.name).read_text(errors="replace")

    def log(self):
        """The lines of the server, without those it printed at the start."""
        return pathlib.Path(self.errors.name).read_text(errors="replace").splitlines() + pathlib.Path(self.output.name).read_text(errors="replace").splitlines()

    def printed_port(self):
        if self.process.poll() is not None:
            raise AssertionError(f"exit code {self.process.returncode}\n{self.printed()}")
        found = re.search(r"https?://[^\s/]+?:(\d+)", self.printed())
        return found and found[1]

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"exit code {self.process.returncode}\n{self.printed()}")
        try:
            return self.get("/health").status == 200
        except OSError:
            return False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # ---- requests

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def headers(self, given):
        return ({"Authorization": f"Bearer {self.key}"} if self.key else {}) | given

    def request(self, method, path, body=None, connection=None, timeout=60, **headers):
        headers = self.headers({name.replace("_", "-"): value for name, value in headers.items()})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} | headers
        owned = connection is None
        connection = connection or self.connect(timeout)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Response(response.status, headers_of(response), response.read())
        finally:
            if owned:
                connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def stream(self, path, body, timeout=60, **headers):
        """Sends the request with stream: true; a refusal is returned as a Response."""
        connection = self.connect(timeout)
        headers = self.headers({name.replace("_", "-"): value for name, value in headers.items()})
        connection.request("POST", path, json.dumps({"stream": True, **body}), {"Content-Type": "application/json"} | headers)
        response = connection.getresponse()
        if "event-stream" not in (response.getheader("content-type") or ""):
            with contextlib.closing(connection):
                return Response(response.status, headers_of(response), response.read())
        return Events(connection, response)

    def socket(self, timeout=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def exchange(self, data, timeout=30, shut=False):
        """Sends bytes and returns everything that comes back until the server closes the connection."""
        with self.socket(timeout) as one:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                one.sendall(data)
                if shut:
                    one.shutdown(socket.SHUT_WR)
            return everything(one)

    def chat(self, word, **fields):
        return self.post("/v1/chat/completions", chat(word, **fields))

    # ---- what it counts

    def metrics(self):
        """{name with labels: value} and {name: value summed over labels}."""
        values = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
                bare = name.split("{")[0]
                if bare != name:
                    values[bare] = values.get(bare, 0.0) + float(value)
        return values

    def is_idle(self):
        found = self.metrics()
        return found["vllm:num_requests_running"] == 0 and found["vllm:num_requests_waiting"] == 0

    def wait_until_idle(self, seconds=10):
        until(self.is_idle, seconds, "no request runs or waits")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def memory(self):
        """Resident bytes."""
        return status_of(self.pid, "VmRSS")

    def peak_memory(self):
        return status_of(self.pid, "VmHWM")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # ---- the end

    def signal(self, number=signal.SIGTERM):
        os.kill(self.pid, number)

    def end(self, seconds=40):
        """Waits for the process; returns its exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still there after {seconds} s\n{self.printed()[-3000:]}") from None
        self.output.close()
        self.errors.close()
        return code

    def stop(self, code=0):
        self.signal()
        found = self.end()
        assert found == code, f"exit code {found} instead of {code}\n{self.printed()[-3000:]}"
        assert not SANITIZER.search(self.printed()), self.printed()[-6000:]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            if kind:
                self.process.kill()
                self.end()
                print(self.printed()[-3000:], file=sys.stderr)
            else:
                self.stop()


def status_of(pid, field):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field + ":"))


def everything(one):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := one.recv(65536):
            data += piece
    return data


def responses_in(data):
    """The responses on a connection, as (status, headers, body)."""
    found = []
    while data:
        head, separator, data = data.partition(b"\r\n\r\n")
        if not separator:
            raise AssertionError(f"no whole response: {head[:300]!r}")
        lines = head.decode().split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
        status = int(lines[0].split()[1])
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                size, _, data = data.partition(b"\r\n")
                length = int(size, 16)
                body, data = body + data[:length], data[length + 2:]
                if not length:
                    break
        else:
            length = int(headers.get("content-length", 0))
            body, data = data[:length], data[length:]
        found.append(Response(status, headers, body))
    return found


def chat(word, **fields):
    """The body of a chat request whose answer the known model's scene `word` gives."""
    return {"messages": [{"role": "user", "content": word}], **fields}


def tool(name, **properties):
    return {"type": "function", "function": {"name": name, "description": f"Does {name}", "parameters": {
        "type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}}}


TOOLS = [tool("get_weather", city="string"), tool("get_time", zone="string", h24="boolean")]
AGENT_TOOLS = [tool("read_file", path="string"), tool("write_file", path="string", text="string")]


class Scene(unittest.TestCase):
    """One server for all tests of a class; afterwards it must be idle, keep no descriptors, and end with 0."""
    flags = ()
    harmony = False
    builtin = False
    key = None
    wrapper = ()  # a command that starts the server
    leak_slack = 0

    @classmethod
    def setUpClass(cls):
        flags = (*cls.flags, "--no-harmony-mask") if cls.harmony else cls.flags
        cls.server = Server(*flags, model=None if cls.builtin else known(cls.harmony), key=cls.key, wrapper=cls.wrapper)
        cls.addClassCleanup(cls.end_server)
        cls.server.post("/v1/completions", {"prompt": "warm", "max_tokens": 1})
        cls.descriptors, cls.threads = cls.server.descriptors(), cls.server.threads()

    @classmethod
    def end_server(cls):
        server = cls.server
        if server.process.poll() is None:
            server.wait_until_idle()
            try:
                until(lambda: server.descriptors() <= cls.descriptors + cls.leak_slack, 5, "descriptors are closed")
                # The built-in model speaks Harmony: the first batch with several masked rows starts the threads that fill masks.
                mask_threads = os.cpu_count() if cls.builtin else 0
                assert server.threads() <= cls.threads + cls.leak_slack + mask_threads, "threads are left"
            finally:
                server.stop()

    def assert_error(self, response, status, code=None, param=None, kind=None):
        """OpenAI's error object with all four keys."""
        self.assertEqual(response.status, status, str(response))
        error = response.json()["error"]
        self.assertLessEqual({"message", "type", "param", "code"}, set(error), str(response))
        self.assertIsInstance(error["message"], str)
        self.assertIsInstance(error["type"], str)
        for name, value in (("code", code), ("param", param), ("type", kind)):
            if value is not None:
                self.assertEqual(error[name], value, str(response))
        return error


def together(work, count):
    """Runs work(0) … work(count - 1) at once; returns the results or raises the first failure."""
    results, failures = [None] * count, []

    def run(index):
        try:
            results[index] = work(index)
        except BaseException as error:  # also failed assertions
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results
