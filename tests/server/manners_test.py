"""Ordinary HTTP manners, directly and through HAProxy: manners_test.py INFERNO"""
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
import unittest

import scene
from scene import FOLDER, Scene, Server, chat, everything, known, responses_in, until

HELLO = json.dumps(chat("hi")).encode()
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Manners(Scene):
    def test_a_connection_is_kept_also_after_streams(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", json.dumps(chat("hi", stream=True)), {"Content-Type": "application/json"})
            first = connection.sock
            data = connection.getresponse().read()
            self.assertTrue(data.endswith(b"data: [DONE]\n\n"), data[-100:])
            self.assertEqual(self.server.get("/health", connection=connection).status, 200)
            self.assertIs(connection.sock, first)
        connection.close()

    def test_continues_when_asked(self):
        with self.server.socket() as one:
            one.sendall(HEAD + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(HELLO))
            self.assertTrue(one.recv(100).startswith(b"HTTP/1.1 100 "))
            one.sendall(HELLO)
            self.assertIn(b"known model", everything(one))
        with self.server.socket() as one:  # refused before the body
            one.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
            self.assertEqual(responses_in(everything(one))[0].status, 413)

    def test_chunked_bodies(self):
        for size in (1, 7, 1000):
            pieces = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(HELLO[at:at + size]), HELLO[at:at + size]) for at in range(0, len(HELLO), size))
            data = self.server.exchange(HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
            self.assertEqual(responses_in(data)[0].status, 200)

    def test_head_has_the_headers_of_get_and_no_body(self):
        for path in ("/health", "/v1/models", "/"):
            get, head = self.server.get(path), self.server.request("HEAD", path)
            self.assertEqual((head.status, head.body), (get.status, b""), path)
            self.assertEqual(head.headers.get("content-type"), get.headers.get("content-type"))

    def test_http_1_0(self):
        data = self.server.exchange(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        self.assertIn(b" 200 ", data.split(b"\r\n")[0])
        body = json.dumps(chat("hi", stream=True)).encode()
        data = self.server.exchange(HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.assertNotIn(b"transfer-encoding", data.lower())  # that version knows no chunks
        self.assertIn(b"data: [DONE]", data)

    def test_unknown_routes_and_wrong_methods(self):
        self.assert_error(self.server.get("/nowhere"), 404)
        for path, advice in (("/api/chat", "/v1/chat/completions"), ("/completion", "/v1/completions"), ("/v1/embeddings", "generates text"),
                             ("/v1/responses/resp_1", "stores nothing"), ("/api/blobs/sha256:0", "Ollama"), ("/v1/audio/speech", "generates text"),
                             ("/v1/nowhere", "docs/server.md"), ("/api/generatexyz", "docs/server.md"), ("/embedded", "docs/server.md"),
                             ("/v1/filesystem", "docs/server.md")):
            self.assertIn(advice, self.assert_error(self.server.post(path, {}), 404)["message"])
        for path in ("/v1/messages/batches", "/v1/messages/msg_1"):  # Anthropic's clients read the error of any route
            answer = self.server.post(path, {})
            self.assertEqual((answer.status, answer.json()["type"], answer.json()["error"]["type"]), (404, "error", "not_found_error"))
        for method, path in (("GET", "/v1/chat/completions"), ("DELETE", "/v1/models"), ("PUT", "/health"), ("POST", "/v1/models")):
            response = self.server.request(method, path, {} if method in ("PUT", "POST") else None)
            self.assert_error(response, 405)
            self.assertIn("GET" if "chat" not in path else "POST", response.headers["allow"])

    def test_headers_of_answers(self):
        plain, stream = self.server.chat("hi"), self.server.stream("/v1/chat/completions", chat("hi"))
        stream.all()
        for headers in (plain.headers, stream.headers):
            self.assertRegex(headers["x-request-id"], r"^req_[0-9a-f]{32}$")
            self.assertIn("x-inferno-worker", headers)
            self.assertNotRegex(headers.get("server", "").lower(), "beast|boost")
        self.assertEqual(stream.headers["cache-control"], "no-cache")
        self.assertEqual(stream.headers["x-accel-buffering"], "no")
        self.assertTrue(stream.headers["content-type"].startswith("text/event-stream"))
        ours = self.server.chat("hi").headers["x-request-id"]
        theirs = self.server.post("/v1/chat/completions", chat("hi"), x_request_id="mine").headers["x-request-id"]
        self.assertNotIn("mine", (ours, theirs))

    def test_routes_without_v1(self):
        self.assertEqual(self.server.get("/models").json()["data"][0]["id"], self.server.get("/v1/models").json()["data"][0]["id"])
        for path, body in (("/chat/completions", chat("hi")), ("/completions", {"prompt": "x", "max_tokens": 1}), ("/responses", {"input": "hi"})):
            self.assertEqual(self.server.post(path, body).status, 200, path)

    def test_health_while_many_wait(self):
        streams = [self.server.stream("/v1/chat/completions", chat("long", max_tokens=400)) for _ in range(20)]
        slowest = 0.0
        for _ in range(20):
            begin = time.monotonic()
            self.assertEqual(self.server.get("/health").status, 200)
            slowest = max(slowest, time.monotonic() - begin)
        for one in streams:
            self.assertEqual(one.all()[-1][1], "[DONE]")
        self.assertLess(slowest, 0.5)

    def test_every_answer_has_timings_and_can_be_told_not_to(self):
        body = self.server.chat("empty").json()
        for name in ("cache_n", "prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"):
            self.assertIsInstance(body["timings"][name], (int, float), name)
        self.assertIn("warnings", body["inferno"])
        last = [one for one in self.server.stream("/v1/chat/completions", chat("hi")).json()][-1]
        self.assertIn("timings", last)
        self.assertIn("inferno", last)


    def test_routes_of_other_servers(self):
        text = "Some text, 20 \u00b0C \U0001f600"
        for field in ("content", "prompt"):
            body = self.server.post("/tokenize", {field: text}).json()
            self.assertEqual(body["tokens"], list(text.encode()))  # every byte is a token of this model
            self.assertEqual(body["count"], len(body["tokens"]))
        back = self.server.post("/detokenize", {"tokens": list(text.encode())}).json()
        self.assertEqual((back["content"], back["prompt"]), (text, text))
        rendered = self.server.post("/apply-template", chat("hi")).json()["prompt"]
        self.assertTrue(rendered.endswith("<|im_start|>assistant\n<|to:answer|>"), rendered)
        tokens = self.server.post("/tokenize", chat("hi")).json()["tokens"]
        self.assertEqual(len(tokens), self.server.chat("hi").json()["usage"]["prompt_tokens"])
        properties = self.server.get("/props").json()
        self.assertEqual((properties["default_generation_settings"]["n_ctx"], properties["total_slots"]), (32768, 16))
        self.assertIn("<|im_start|>", properties["chat_template"])
        self.assertEqual(self.server.get("/v1/models").json()["data"][0]["max_model_len"], 32768)
        self.assertIn("version", self.server.get("/version").json())

    def test_the_program_probes_a_server(self):
        for path, code in (("", 0), ("/readyz", 0), ("/nowhere", 1)):
            done = subprocess.run([scene.PROGRAM, "health", self.server.url + path], capture_output=True, timeout=20, env=scene.environment())
            self.assertEqual(done.returncode, code, done.stderr.decode())
        done = subprocess.run([scene.PROGRAM, "health", "http://127.0.0.1:9"], capture_output=True, timeout=20, env=scene.environment())
        self.assertEqual(done.returncode, 1)


class CommandLines(unittest.TestCase):
    """Those of llama-server and vLLM."""

    def refused(self, *arguments, code=2):
        done = subprocess.run([scene.PROGRAM, "serve", "--port", "0", *arguments], capture_output=True, timeout=20, env=scene.environment())
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertEqual(done.stdout.decode(), "", "refused before the server listens")
        return done.stderr.decode()

    def test_of_other_servers_start_this_one(self):
        flags = ("-np", "2", "-t", "2", "-cb", "--jinja", "--metrics", "-fa", "on", "--reasoning-parser", "qwen3", "--enable-auto-tool-choice",
                 "--tool-call-parser", "hermes", "--gpu-memory-utilization", "0.9", "-ub", "512", "--no-mmap", "--tensor-parallel-size", "1")
        with Server(*flags, model=known()) as server:
            self.assertEqual(server.chat("hi").status, 200)
            for flag in ("-cb", "--jinja", "--metrics", "-fa", "--reasoning-parser", "--gpu-memory-utilization", "-ub", "--tensor-parallel-size"):
                self.assertIn(f"note: {flag} has no effect: ", server.printed())

    def test_that_cannot_be_followed_say_what_to_do(self):
        for flags, advice in ((("-to", "60"), "--request-timeout"), (("--revision", "main"), "org/name@REVISION"), (("-tp", "2"), "one GPU"),
                              (("--draft-model", "x"), "speculative"), (("--allowed-origins", "*"), "--cors-origin")):
            self.assertIn(advice, self.refused(*flags))

    def test_with_a_flag_twice_say_so(self):
        self.assertIn("--port: expected once, given 2 times", self.refused("--port", "0"))
        self.assertIn("expected once, given 2 times", self.refused("builtin", "-hf", "org/name"))

    def test_with_a_template_that_is_no_file_are_refused_before_the_server_listens(self):
        self.assertIn("no such file", self.refused("--chat-template", "chatml", code=3))
        self.assertIn("expected a file", self.refused("--chat-template", "{{ messages }}"))
        broken = FOLDER / "broken.jinja"
        broken.write_text("{% if %}")
        self.assertIn("broken.jinja", self.refused("--chat-template-file", str(broken), code=4))


class Ping(unittest.TestCase):
    def test_a_silent_stream_is_pinged_and_the_head_leaves_with_the_first_token(self):
        with Server("--ping-interval", "0.2", "--parallel", "1", model=known()) as server:
            busy = server.stream("/v1/chat/completions", chat("long", max_tokens=30000))
            waiting = server.stream("/v1/chat/completions", chat("hi"))
            busy.close()
            lines = waiting.all()
            self.assertEqual(lines[-1][1], "[DONE]")
            self.assertIn("ping", waiting.comments)


class Tls(unittest.TestCase):
    def test_serves_with_a_certificate(self):
        key, certificate = FOLDER / "key.pem", FOLDER / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        with Server("--ssl-cert-file", certificate, "--ssl-key-file", key, model=known(), wait=False) as server:
            context = ssl.create_default_context(cafile=certificate)

            def ask(method, path, body=None):
                connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=20)
                connection.request(method, path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                status, data = response.status, response.read()
                connection.close()
                return status, data

            until(lambda: ask("GET", "/health")[0] == 200, 20, "ready")
            self.assertIn(b"known model", ask("POST", "/v1/chat/completions", HELLO)[1])
            self.assertIn(b"[DONE]", ask("POST", "/v1/chat/completions", json.dumps(chat("hi", stream=True)))[1])
            with server.socket() as plain:  # plain HTTP on a TLS port
                plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertNotIn(b" 200 ", everything(plain))
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            old.maximum_version = ssl.TLSVersion.TLSv1_1
            with self.assertRaises((ssl.SSLError, OSError, ValueError)), socket.create_connection(("localhost", server.port)) as one:
                old.wrap_socket(one)


HAPROXY = shutil.which("haproxy") or ("/usr/sbin/haproxy" if shutil.which("/usr/sbin/haproxy") else None)
CONFIG = """
global
  stats socket {folder}/haproxy.sock level admin
  tune.bufsize 262144
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout http-request 10s
  timeout check 2s
  option http-no-delay
  retry-on conn-failure empty-response response-timeout 503
  retries 3
  option redispatch 1
frontend front
  bind 127.0.0.1:{port}
  http-request wait-for-body time 10s if METH_POST
  default_backend workers
backend workers
  balance roundrobin
  option httpchk GET /readyz
  http-check send hdr Host localhost
  http-request set-header Host localhost
  default-server check inter 500ms fastinter 100ms downinter 200ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down
{servers}
"""


@scene.skip_unless(HAPROXY, "haproxy is not installed")
class ThroughAProxy(unittest.TestCase):
    def setUp(self):
        self.workers = [Server("--drain-delay", "0.5", "--worker", f"w{index}", model=known()) for index in range(2)]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        servers = "".join(f"  server w{index} 127.0.0.1:{one.port}\n" for index, one in enumerate(self.workers))
        path = FOLDER / "haproxy.cfg"
        path.write_text(CONFIG.format(folder=FOLDER, port=self.port, servers=servers))
        self.proxy = subprocess.Popen([HAPROXY, "-f", path, "-db"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end)
        until(lambda: self.ask("GET", "/health") == 200, 10, "the proxy answers")

    def end(self):
        self.proxy.kill()
        self.proxy.wait()
        for one in self.workers:
            if one.process.poll() is None:
                one.stop()

    def ask(self, method, path, body=None):
        try:
            return self.exchange(method, path, body)[0]
        except OSError:
            return None

    def exchange(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read(), response.getheader("x-inferno-worker")
        finally:
            connection.close()

    def test_streams_pass_piece_by_piece(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat("long", stream=True, max_tokens=3000)), {"Content-Type": "application/json"})
        response = connection.getresponse()
        begin = time.monotonic()
        first = response.readline()
        self.assertTrue(first.startswith(b"data:"))
        early = time.monotonic() - begin
        rest = response.read()
        self.assertIn(b"[DONE]", rest)
        self.assertLess(early, 0.2)
        connection.close()

    def test_a_client_that_leaves_the_proxy_leaves_the_server(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat("long", stream=True)), {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.readline()
        response.close()
        connection.close()
        for one in self.workers:
            one.wait_until_idle(3)

    def test_a_rolling_restart_fails_no_request(self):
        statuses, names = [], set()

        def load(index):
            for turn in range(25):
                body = chat("answer" if turn % 2 else "page", stream=bool((index + turn) % 2))
                status, data, name = self.exchange("POST", "/v1/chat/completions", body)
                whole = b"[DONE]" in data if body["stream"] else b"finish_reason" in data
                statuses.append((status, whole))
                names.add(name)
                time.sleep(0.02)

        def restart():
            time.sleep(0.3)
            self.workers[0].signal()
            self.assertEqual(self.workers[0].end(10), 0)
            self.workers[0] = Server("--port", str(self.workers[0].port), "--worker", "w0", model=known())

        scene.together(lambda index: restart() if index == 0 else load(index), 5)
        self.assertEqual({one for one in statuses if one != (200, True)}, set())
        self.assertGreaterEqual(len(names), 2, names)

    def test_a_killed_worker_costs_no_request_that_had_no_answer_yet(self):
        failed = []

        def load(index):
            for _ in range(20):
                status, data, _ = self.exchange("POST", "/v1/chat/completions", chat("answer"))
                if status != 200 or b"finish_reason" not in data:
                    failed.append((status, data[:200]))
                time.sleep(0.01)

        def kill():
            time.sleep(0.15)
            self.workers[0].signal(9)
            self.workers[0].end()

        scene.together(lambda index: kill() if index == 0 else load(index), 5)
        self.assertEqual(failed, [])


if __name__ == "__main__":
    scene.main()
