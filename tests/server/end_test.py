"""How requests and the server end: clients that go away (C1, C2) and signals (C3, C4): end_test.py INFERNO"""
import http.client
import json
import random
import signal
import socket
import struct
import threading
import time
import unittest

import scene
from scene import Scene, Server, chat, known, together, until

ROUTES = {"/v1/chat/completions": chat("long"), "/v1/completions": {"prompt": "<|to:long|>", "parse_special": True, "max_tokens": 30000},
          "/v1/responses": {"input": "long"}, "/v1/messages": {"messages": [{"role": "user", "content": "long"}], "max_tokens": 30000}}


def request(path, body):
    data = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


def reset(one):
    """Closes with RST instead of FIN."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


class ClientsThatLeave(Scene):
    flags = ("--parallel", "2", "--max-queue", "64")

    def running(self):
        return self.server.metrics()["vllm:num_requests_running"]

    def waiting(self):
        return self.server.metrics()["vllm:num_requests_waiting"]

    def test_while_decoding_streamed_or_not_by_any_door(self):
        for path, body in ROUTES.items():
            for stream in (True, False):
                for close in (socket.socket.close, reset):
                    with self.subTest(path=path, stream=stream, close=close.__name__):
                        one = self.server.socket()
                        one.sendall(request(path, {**body, "stream": stream}))
                        until(self.running, 5, "it runs")
                        before = self.server.metrics().get("inferno_cancelled_by_disconnect_total")
                        close(one)
                        begin = time.monotonic()
                        self.server.wait_until_idle(2)
                        self.assertLess(time.monotonic() - begin, 0.5)
                        if before is not None:
                            self.assertEqual(self.server.metrics()["inferno_cancelled_by_disconnect_total"], before + 1)

    def test_while_queued(self):
        first = [self.server.socket() for _ in range(2)]
        for one in first:
            one.sendall(request("/v1/chat/completions", chat("long", stream=True)))
        until(lambda: self.running() == 2, 5, "two run")
        queued = [self.server.socket() for _ in range(10)]
        for one in queued:
            one.sendall(request("/v1/chat/completions", chat("long", stream=True)))
        until(lambda: self.waiting() == 10, 5, "ten wait")
        for index, one in enumerate(queued):
            (reset if index % 2 else socket.socket.close)(one)
        until(lambda: self.waiting() == 0, 1, "the queue is empty")
        self.assertEqual(self.running(), 2)
        for one in first:
            one.close()
        self.server.wait_until_idle(2)

    def test_while_the_prompt_is_computed(self):
        body = {"prompt": [97] * 30000, "max_tokens": 100, "cache_prompt": False}
        for delay in (0.0, 0.01, 0.05, 0.2):
            one = self.server.socket()
            one.sendall(request("/v1/completions", body))
            time.sleep(delay)
            one.close()
            self.server.wait_until_idle(3)

    def test_at_any_moment(self):
        # Cancelled at the same instant as admitted, as finished, between two tokens: counters balance and nothing is left.
        end = time.monotonic() + 6
        trials = 0

        def leave(index):
            nonlocal trials
            mine = random.Random(index)
            while time.monotonic() < end:
                path, body = mine.choice(list(ROUTES.items()))
                word = mine.choice(("long", "answer", "empty", "tool"))
                body = json.loads(json.dumps(body).replace("long", word))
                try:
                    with self.server.socket() as one:
                        one.sendall(request(path, {**body, "stream": mine.random() < 0.7}))
                        time.sleep(mine.choice((0, 0.001, 0.003, 0.01, 0.03)))
                        if mine.random() < 0.5:
                            reset(one)
                except OSError:
                    pass
                trials += 1

        together(leave, 8)
        self.assertGreater(trials, 200)
        self.server.wait_until_idle(5)
        until(lambda: self.server.descriptors() <= self.descriptors, 5, "descriptors are closed")
        self.assertEqual(self.server.chat("hi").json()["choices"][0]["message"]["content"], "Hello! I am the known model.")

    def test_a_half_closed_client_is_still_served(self):
        data = self.server.exchange(request("/v1/chat/completions", chat("hi")).replace(b"Host:", b"Connection: close\r\nHost:"), shut=True)
        self.assertIn(b"I am the known model.", data)


class FullQueue(Scene):
    flags = ("--parallel", "1", "--max-queue", "2")

    def test_is_refused_at_once_with_a_time_to_come_back(self):
        held = [self.server.socket() for _ in range(3)]
        for count, one in enumerate(held):
            one.sendall(request("/v1/chat/completions", chat("long", stream=True)))
            until(lambda: self.count() > count, 5, "it is taken")
        for path, body in ROUTES.items():
            begin = time.monotonic()
            response = self.server.post(path, body)
            self.assertEqual(response.status, 429, str(response))
            self.assertLess(time.monotonic() - begin, 0.2)
            self.assertGreaterEqual(int(response.headers["retry-after"]), 1)
        many = self.server.post("/v1/completions", {"prompt": ["a"] * 10, "max_tokens": 1})
        self.assertEqual(many.status, 429, "all prompts or none")
        self.assertEqual(self.server.post("/v1/completions", b"{" * 100, Content_Type="application/json").status, 429, "the body is not read")
        self.assertEqual(self.server.post("/tokenize", {"content": "a"}).status, 200, "what needs no place is answered")
        for one in held:
            one.close()
        self.server.wait_until_idle()
        self.assertEqual(self.server.chat("hi").status, 200)

    def count(self):
        found = self.server.metrics()
        return found["vllm:num_requests_running"] + found["vllm:num_requests_waiting"]


class Signals(unittest.TestCase):
    def test_idle(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server(model=known())
            idle = server.socket()  # an idle connection must not delay the end
            begin = time.monotonic()
            server.signal(number)
            self.assertEqual(server.end(5), 0)
            self.assertLess(time.monotonic() - begin, 2)
            idle.close()

    def test_while_loading(self):
        for delay in (0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1):
            server = Server(model=known(), wait=False)
            time.sleep(delay)
            server.signal()
            self.assertEqual(server.end(10), 0)

    def test_while_loading_health_and_requests_are_503(self):
        refused = 0
        for _ in range(5):
            with Server(model=known(), wait=False) as server:
                first = server.chat("hi")
                health, live = server.get("/health"), server.get("/livez")
                self.assertEqual(live.status, 200)
                if first.status == 200:  # loaded before the first request came
                    continue
                refused += 1
                self.assertEqual(first.status, 503, str(first))
                self.assertIn("load", first.json()["error"]["message"].lower())
                self.assertIn(health.status, (200, 503))
                until(server.is_ready, 30, "ready", pause=0.02)
                self.assertEqual(server.chat("hi").status, 200)
        self.assertGreater(refused, 0)

    def test_running_answers_are_finished_and_new_requests_refused(self):
        with Server("--drain-delay", "0.5", model=known()) as server:
            kept = [server.connect() for _ in range(2)]
            for one in kept:
                self.assertEqual(server.get("/health", connection=one).status, 200)
            events = server.stream("/v1/chat/completions", chat("long", max_tokens=12000))
            seen = iter(events)
            next(seen)
            begin = time.monotonic()
            server.signal()
            until(lambda: server.get("/readyz").status == 503, 0.4, "/readyz is 503")
            self.assertLess(time.monotonic() - begin, 0.2)
            self.assertEqual(server.get("/health").status, 503)
            self.assertEqual(server.get("/livez").status, 200)
            self.assertEqual(server.chat("hi").status, 200)  # clients that have not noticed yet are still served
            until(lambda: self.refuses(server), 2, "the listener is closed")
            self.check_refusal(server, kept[0])
            lines = list(seen)
            self.assertEqual(lines[-1][1], "[DONE]")
            text = "".join(json.loads(data)["choices"][0]["delta"].get("content") or "" for _, data in lines[:-1] if json.loads(data)["choices"])
            self.assertGreater(len(text), 40000)
            events.close()
            self.assertEqual(server.end(10), 0)

    def check_refusal(self, server, connection):
        """A new request on an open connection: 503 and closed, unless an idle connection was closed before."""
        try:
            refused = server.post("/v1/chat/completions", chat("hi"), connection=connection)
        except (http.client.HTTPException, OSError):
            return
        self.assertEqual(refused.status, 503, str(refused))
        self.assertEqual(refused.headers.get("connection"), "close")

    @staticmethod
    def refuses(server):
        try:
            server.socket(2).close()
            return False
        except ConnectionRefusedError:
            return True

    def test_after_the_drain_timeout_streams_end_with_an_error_event(self):
        doors = {"/v1/chat/completions": "error", "/v1/completions": "error", "/v1/responses": "response.failed|error", "/v1/messages": "error"}
        server = Server("--drain-timeout", "1", "--threads", "1", model=known())
        streams = {path: server.stream(path, {**ROUTES[path], "max_tokens": 32000} if path != "/v1/responses" else ROUTES[path]) for path in doors}
        results, threads = {}, []
        for path, events in streams.items():
            threads.append(threading.Thread(target=lambda path=path, events=events: results.update({path: events.all()})))
            threads[-1].start()
        time.sleep(0.2)
        begin = time.monotonic()
        server.signal()
        code = server.end(10)
        took = time.monotonic() - begin
        for thread in threads:
            thread.join()
        self.assertEqual(code, 0)
        self.assertLess(took, 6)
        for path in doors:
            with self.subTest(path=path):
                name, data = results[path][-1]
                if data == "[DONE]":
                    name, data = results[path][-2]
                if took < 1:
                    continue  # all were finished in time
                event = json.loads(data)
                self.assertTrue("error" in event or event.get("type") in ("response.failed", "error"), data)

    def test_a_second_signal_ends_at_once(self):
        server = Server("--drain-timeout", "30", model=known())
        events = server.stream("/v1/chat/completions", chat("long"))
        next(iter(events))
        server.signal()
        time.sleep(0.1)
        begin = time.monotonic()
        server.signal()
        server.end(5)
        self.assertLess(time.monotonic() - begin, 2)
        events.close()

    def test_a_client_that_does_not_read_does_not_hold_the_end(self):
        server = Server("--drain-timeout", "1", model=known())
        with server.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(request("/v1/chat/completions", chat("long", stream=True, logprobs=True, top_logprobs=5)))
            time.sleep(0.5)
            begin = time.monotonic()
            server.signal()
            self.assertEqual(server.end(10), 0)
            self.assertLess(time.monotonic() - begin, 6)

    def test_kill_and_restart_on_the_same_port(self):
        server = Server(model=known())
        events = server.stream("/v1/chat/completions", chat("long"))
        next(iter(events))
        server.signal(signal.SIGKILL)
        self.assertEqual(server.end(), -9)
        with Server("--port", str(server.port), model=known()) as again:
            self.assertEqual(again.port, server.port)
            self.assertEqual(again.chat("hi").status, 200)
        events.close()

    def test_twenty_times(self):
        for index in range(20):
            server = Server("--drain-timeout", "0.2", model=known())
            one = server.socket()
            one.sendall(request("/v1/chat/completions", chat("long", stream=bool(index % 2))))
            time.sleep(0.005 * (index % 5))
            server.signal()
            self.assertEqual(server.end(8), 0)
            one.close()


class TimeLimit(unittest.TestCase):
    def test_answers_are_cut_and_requests_that_wait_are_refused(self):
        with Server("--request-timeout", "1", "--parallel", "1", "--max-queue", "8", model=known()) as server:
            begin = time.monotonic()
            replies = together(lambda _: server.chat("long"), 6)
            # Without the limit each has 32,000 tokens, and the last would wait for the others.
            self.assertLess(time.monotonic() - begin, 10)
            cut, late = [one for one in replies if one.status == 200], [one for one in replies if one.status != 200]
            self.assertTrue(cut and late, [str(one) for one in replies])
            for one in cut:
                self.assertEqual(one.json()["choices"][0]["finish_reason"], "length")
                self.assertIn("--request-timeout", one.json()["inferno"]["warnings"][0])
            for one in late:
                self.assertEqual((one.status, one.json()["error"]["code"]), (503, "request_timeout"), str(one))
                self.assertIn("retry-after", one.headers)
            self.assertEqual(server.chat("hi").status, 200)
            total = server.metrics()['vllm:e2e_request_latency_seconds_sum']
            self.assertGreater(total, 0.9 * len(cut))


if __name__ == "__main__":
    scene.main()
