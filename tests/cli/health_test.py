"""inferno health, as a shell sees it: health_test.py INFERNO"""
import http.server
import os
import socket
import subprocess
import sys
import threading
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


def health(*arguments, code):
    done = subprocess.run([PROGRAM, "health", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Server:
    """Answers every path with one status; remembers paths and hosts."""

    def __init__(self, status, body=b"{}", family=socket.AF_INET):
        self.seen = seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                seen.append((self.path, self.headers["Host"]))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            address_family = family

        self.http = Listener(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class Health(unittest.TestCase):
    def test_a_working_server_is_0(self):
        with Server(200) as server:
            done = health(f"http://127.0.0.1:{server.port}", code=0)
            self.assertEqual((done.stdout, done.stderr), ("ok\n", ""))
            health(f"127.0.0.1:{server.port}/", code=0)
            health(f"http://localhost:{server.port}/readyz", code=0)
        self.assertEqual([path for path, _ in server.seen], ["/health", "/health", "/readyz"])
        self.assertEqual(server.seen[0][1], f"127.0.0.1:{server.port}")

    def test_addresses_of_six_words(self):
        try:
            server = Server(200, family=socket.AF_INET6)
        except OSError:
            self.skipTest("no IPv6 here")
        with server:
            health(f"http://[::1]:{server.port}", code=0)
        self.assertEqual(server.seen[0][1], f"[::1]:{server.port}")

    def test_a_server_that_loads_is_1_and_says_why(self):
        with Server(503, b'{"error":{"message":"Loading model"}}\x1b[31m') as server:
            done = health(f"http://127.0.0.1:{server.port}", code=1)
        self.assertIn("status 503", done.stderr)
        self.assertIn("Loading model", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_no_server_is_1(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            done = health(f"http://127.0.0.1:{unused.getsockname()[1]}", code=1)
        self.assertIn("Connection refused", done.stderr)
        health("http://no-such-host.invalid:8000", "--timeout", "1", code=1)

    def test_a_server_that_hangs_is_1_in_time(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            start = time.monotonic()
            done = health(f"http://127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.3", code=1)
            self.assertLess(time.monotonic() - start, 5)
        self.assertIn("timed out", done.stderr)

    def test_what_is_no_url_is_2(self):
        for url in ("https://127.0.0.1:8000", "http://", "http://[::1", "http://a:b", "http://user@host:80", "http://a b/",
                    "http://host:80/x\r\ny: z"):
            health(url, code=2)


if __name__ == "__main__":
    unittest.main()
