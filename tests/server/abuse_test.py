"""What a server on a network meets: the abuse matrix A1 to A12. After every case the server still answers:
abuse_test.py INFERNO"""
import contextlib
import json
import math
import os
import re
import resource
import socket
import subprocess
import time
import unittest

import scene
from scene import Scene, Server, chat, environment, everything, known, responses_in, until

MEBIBYTE = 1 << 20
HOST = b"Host: localhost\r\n"
HEAD = b"POST /v1/completions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
HELLO = json.dumps({"prompt": "hi", "max_tokens": 1}).encode()


def sized(body, more=b""):
    return HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(body, size=16, more=b""):
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + size]), body[at:at + size]) for at in range(0, len(body), size))
    return HEAD + more + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"


GET = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"


class Abuse(Scene):
    def tearDown(self):
        begin = time.monotonic()
        self.assertEqual(self.server.get("/health").status, 200)
        self.assertLess(time.monotonic() - begin, 1.0)

    def statuses(self, data, **more):
        return [one.status for one in responses_in(self.server.exchange(data, **more))]


class A2Sizes(Abuse):
    def refused(self, data, status, memory=8 * MEBIBYTE):
        before = self.server.memory()
        found = responses_in(self.server.exchange(data))
        self.assertEqual([one.status for one in found], [status])
        self.assertIn("error", found[0].json())
        self.assertEqual(found[0].headers.get("connection"), "close")
        self.assertLess(self.server.memory() - before, memory)
        self.assert_logged(found[0])

    def assert_logged(self, response):
        """Every refusal has an id, and the log has it too."""
        lines = [line for line in self.server.log() if response.headers["x-request-id"] in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f" {response.status} ", lines[0])

    def test_a_header_a_line_and_a_count_beyond_the_limits(self):
        self.refused(b"GET /health HTTP/1.1\r\n" + HOST + b"X: " + b"a" * (17 << 10) + b"\r\n\r\n", 431)
        self.refused(b"GET /health HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % index for index in range(101)) + b"\r\n", 431)
        self.refused(b"GET /" + b"a" * (9 << 10) + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414)
        self.refused(b"GET /" + b"a" * (64 << 10) + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414)
        self.assertEqual(self.statuses(b"GET /health HTTP/1.1\r\nConnection: close\r\n" + HOST + b"".join(b"X-%d: 1\r\n" % index for index in range(97)) + b"\r\n"), [200])

    def test_refusals_under_anthropics_routes_have_its_shape(self):
        head = HEAD.replace(b"/v1/completions", b"/v1/messages")
        for more, status in ((b"Content-Length: 99999999999999\r\n", 413), (b"Content-Encoding: gzip\r\nContent-Length: 2\r\n", 415)):
            found = responses_in(self.server.exchange(head + more + b"\r\n"))[0]
            self.assertEqual(found.status, status)
            self.assertEqual(found.json()["type"], "error")
            self.assertEqual(found.json()["request_id"], found.headers["request-id"])
            self.assert_logged(found)

    def test_a_body_beyond_the_limit(self):
        limit = 8 * MEBIBYTE
        # Refused by its head alone: no byte of the body is sent.
        self.refused(HEAD + b"Content-Length: %d\r\n\r\n" % (limit + 1), 413)
        self.refused(HEAD + b"Content-Length: 99999999999999\r\n\r\n", 413)
        self.refused(chunked(b" " * (limit + 1), 65536), 413, 24 * MEBIBYTE)
        # At the limit it is read and refused for what it says.
        body = b'{"prompt": "' + b"a" * (limit - 14) + b'"}'
        self.assertEqual(self.statuses(sized(body, b"Connection: close\r\n")), [400])

    def test_a_hundred_thousand_tiny_chunks(self):
        body = b" " * 100_000 + HELLO
        begin = time.monotonic()
        self.assertIn(self.statuses(chunked(body, 1, b"Connection: close\r\n")), ([200], [413]))
        self.assertLess(time.monotonic() - begin, 5.0)

    def test_a_compressed_body_is_refused_before_it_is_read(self):
        for kind in (b"gzip", b"deflate", b"br"):
            self.assertEqual(self.statuses(HEAD + b"Content-Encoding: " + kind + b"\r\nContent-Length: 1000\r\n\r\n"), [415])


class A2Memory(Abuse):
    flags = ("--max-body", "4", "--max-body-memory", "16")

    def refused(self):
        return sum(value for name, value in self.server.metrics().items() if name.startswith("inferno_refused_requests_total{") and "body_memory" in name)

    def test_many_large_bodies_at_once_take_bounded_memory(self):
        before, size = self.server.memory(), 4 * MEBIBYTE  # of which 16 MiB hold four
        for path in (b"/v1/completions", b"/v1/messages"):
            head = HEAD.replace(b"/v1/completions", path) + b"Content-Length: %d\r\n\r\n" % size
            refused, held = self.refused(), [self.server.socket() for _ in range(40)]
            for one in held:
                # Those that are refused may be closed while they are written to.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    one.sendall(head + b" " * (size - 1))
            until(lambda: self.refused() == refused + 36, what="all but four are refused")
            # All would take 160 MiB. A string grows by doubling.
            self.assertLess(self.server.memory() - before, 64 * MEBIBYTE)
            refusal = responses_in(self.server.exchange(head))[0]
            self.assertEqual((refusal.status, refusal.headers["retry-after"], refusal.headers["connection"]), (503, "1", "close"), str(refusal))
            if path == b"/v1/messages":
                self.assertEqual(refusal.json()["error"]["type"], "overloaded_error")
            else:
                self.assert_error(refusal, 503, code="service_unavailable")
            self.assertEqual(self.server.chat("hi").status, 200)  # small requests are still answered
            for one in held:
                one.close()
        until(lambda: self.server.post("/v1/completions", b" " * size, Content_Type="application/json").status == 400, what="memory is given back")


    def test_responses_that_were_sent_take_no_memory_on_idle_connections(self):
        body = {"content": "a" * 1_000_000}  # a token for each letter: a response of 4 MB
        self.server.post("/tokenize", body)
        before, connections = self.server.memory(), [self.server.connect() for _ in range(40)]
        for connection in connections:
            self.assertGreater(len(self.server.post("/tokenize", body, connection=connection).body), 3_000_000)
        self.assertLess(self.server.memory() - before, 64 * MEBIBYTE)
        for connection in connections:
            connection.close()


class A3Framing(Abuse):
    CASES = {
        "length and chunked": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunked and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "two lengths": HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "list of lengths": HEAD + b"Content-Length: 5, 6\r\n\r\nhello!",
        "negative length": HEAD + b"Content-Length: -1\r\n\r\n",
        "signed length": HEAD + b"Content-Length: +5\r\n\r\nhello",
        "hexadecimal length": HEAD + b"Content-Length: 0x5\r\n\r\nhello",
        "no number": HEAD + b"Content-Length: five\r\n\r\nhello",
        "unknown coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "coding twice": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "coding by another name": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "negative chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n",
        "chunk size is no number": HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nab\r\n0\r\n\r\n",
        "huge chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n0\r\n\r\n",
        "chunk too long": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
        "bare line feeds in chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\nab\n0\n\n",
        "folded header": b"GET /health HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
        "space before the colon": b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "header without a colon": b"GET /health HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n",
        "control character in a value": b"GET /health HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
        "no request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        "bad version": b"GET /health HTTP/9.9\r\n" + HOST + b"\r\n",
        "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        "no host": b"GET /health HTTP/1.1\r\n\r\n",
    }

    def test_is_refused_and_what_follows_is_never_answered(self):
        for name, data in self.CASES.items():
            with self.subTest(case=name):
                # The second request is what a smuggler would slip past a proxy.
                found = responses_in(self.server.exchange(data + GET, timeout=12))
                self.assertEqual(len(found), 1, [str(one) for one in found])
                self.assertIn(found[0].status, (400, 403, 413, 501, 505))
                self.assertEqual(found[0].headers.get("connection"), "close")

    def test_trailers_are_not_headers(self):
        body = b"%x\r\n%s\r\n0\r\nX-Api-Key: k\r\nHost: evil\r\n\r\n" % (len(HELLO), HELLO)
        found = responses_in(self.server.exchange(HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + body))
        self.assertIn([one.status for one in found], ([200], [400]))

    def test_requests_in_one_piece_are_answered_in_order(self):
        found = responses_in(self.server.exchange(sized(HELLO) + GET + b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"))
        self.assertEqual([one.status for one in found], [200, 200, 404])


class A4Json(Abuse):
    DEEP = "[" * 65 + "]" * 65
    CASES = {
        "empty": b"", "no object": b"[]", "a string": b'"hi"', "null": b"null", "cut": b'{"prompt": "hi"', "trailing": HELLO + b"x", "two": HELLO + HELLO,
        "bad UTF-8": b'{"prompt": "\xff\xfe"}', "lone surrogate": b'{"prompt": "\\ud800"}', "NaN": b'{"prompt": "hi", "temperature": NaN}',
        "Infinity": b'{"prompt": "hi", "temperature": Infinity}', "overflow": b'{"prompt": "hi", "temperature": 1e999}',
        "many digits": b'{"prompt": "hi", "max_tokens": ' + b"9" * 100_000 + b"}", "deep": f'{{"prompt": "hi", "x": {DEEP}}}'.encode(),
        "very deep": b'{"prompt": ' + b"[" * 1_000_000, "comment": b'{"prompt": "hi" /* no */}', "single quotes": b"{'prompt': 'hi'}",
        "control character": b'{"prompt": "a\nb"}', "NUL": b'{"prompt": "hi"}\x00',
    }

    def test_is_refused_with_an_error_object(self):
        for path in ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/tokenize"):
            for name, body in self.CASES.items():
                with self.subTest(path=path, case=name):
                    begin = time.monotonic()
                    response = self.server.post(path, body, Content_Type="application/json")
                    if name in ("lone surrogate", "bad UTF-8", "control character", "overflow", "many digits", "deep") or path == "/v1/completions":
                        self.assertIn(response.status, (400, 413), str(response))
                    self.assertLess(response.status, 500, str(response))
                    self.assert_error(response, response.status) if response.status >= 400 else None
                    self.assertLess(time.monotonic() - begin, 2.0)

    def test_a_million_keys_and_repeated_keys(self):
        begin, before = self.server.cpu_seconds(), self.server.memory()
        body = b'{"prompt": "hi", ' + b", ".join(b'"%x": 1' % index for index in range(400_000)) + b"}"
        self.assertLess(self.server.post("/v1/completions", body, Content_Type="application/json").status, 500)
        self.assertLess(self.server.cpu_seconds() - begin, 2.0)
        self.assertLess(self.server.memory() - before, 256 * MEBIBYTE)
        repeated = self.server.post("/v1/completions", b'{"prompt": "hi", "max_tokens": 1, "max_tokens": 2}', Content_Type="application/json")
        self.assert_error(repeated, 400)

    def test_wrong_types_name_the_field(self):
        wrong = {"temperature": "hot", "max_tokens": "many", "stop": 5, "stream": "yes", "top_p": [], "seed": 1.5, "logit_bias": [7], "n": {}, "model": 5,
                 "user": None, "top_k": True, "stop_token_ids": "x", "ignore_eos": 1, "cache_salt": 5}
        for path, body in (("/v1/completions", {"prompt": "hi"}), ("/v1/chat/completions", chat("hi"))):
            for field, value in wrong.items():
                with self.subTest(path=path, field=field):
                    response = self.server.post(path, {**body, "max_tokens": 1, field: value})
                    if value is not None:
                        self.assertEqual(self.assert_error(response, 400)["param"], field)
        for messages in ("hi", {}, [], ["hi"], [{}], [{"role": 5, "content": "x"}], [{"role": "user", "content": 5}], [{"role": "user", "content": [{"type": "image_url"}]}],
                         [{"role": "assistant", "tool_calls": 5}], [{"role": "king", "content": "x"}]):
            with self.subTest(messages=messages):
                response = self.server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
                self.assertLess(response.status, 500, str(response))
        for tools in (5, {}, [5], [{}], [{"type": "function"}], [{"type": "function", "function": {"name": 5}}]):
            with self.subTest(tools=tools):
                self.assert_error(self.server.post("/v1/chat/completions", {**chat("hi"), "tools": tools}), 400)


class A5Numbers(Abuse):
    EDGES = [0, 1, -1, 0.5, -0.5, 2, 2.0001, 1e-40, 1e38, -1e38, 2**31 - 1, 2**31, 2**63, -2**63 - 1]
    RANGES = {"temperature": (0, 2), "top_p": (0, 1), "min_p": (0, 1), "typical_p": (0, 1), "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2),
              "repetition_penalty": None, "top_k": None, "seed": None, "max_tokens": None, "n": (1, 128), "min_tokens": None, "n_predict": None}

    def test_each_field_with_each_edge(self):
        for field, allowed in self.RANGES.items():
            for value in self.EDGES:
                with self.subTest(field=field, value=value):
                    fields = {"prompt": "hi", **({} if field in ("max_tokens", "n_predict") else {"max_tokens": 2}), field: value}
                    response = self.server.post("/v1/completions", fields)
                    self.assertIn(response.status, (200, 400), str(response))
                    if allowed and not allowed[0] <= value <= allowed[1]:
                        self.assertEqual(self.assert_error(response, 400)["param"], field)
                    elif allowed and field != "n" and math.isfinite(value):
                        self.assertEqual(response.status, 200, str(response))
        metrics = self.server.metrics()
        self.assertEqual(metrics["vllm:num_requests_running"], 0)


class A6Limits(Abuse):
    flags = ("--max-queue", "200")

    def ask(self, status, path="/v1/chat/completions", **fields):
        body = {**(chat("hi") if "chat" in path else {"prompt": "hi"}), "max_tokens": 1, **fields}
        response = self.server.post(path, body)
        self.assertEqual(response.status, status, str(response))
        return response

    def test_at_the_limit_and_one_beyond(self):
        tools = [{"type": "function", "function": {"name": f"f{index}", "parameters": {}}} for index in range(129)]
        bias = {str(index): 1 for index in range(256)}
        self.ask(200, top_logprobs=20, logprobs=True)
        self.ask(400, top_logprobs=21, logprobs=True)
        self.ask(400, top_logprobs=-1, logprobs=True)
        self.ask(200, n=128)
        self.ask(400, n=129)
        self.ask(400, n=0)
        self.ask(200, logit_bias=bias)
        self.ask(400, logit_bias={str(index): 1 for index in range(1025)})
        self.ask(400, logit_bias={"99999999": 1})
        self.ask(400, logit_bias={"5": 101})
        self.ask(200, stop=["x" * 256] * 16)
        self.ask(400, stop=["x"] * 17)
        self.ask(400, stop=["x" * 257])
        self.ask(200, tools=tools[:128])
        self.ask(400, tools=tools)
        self.ask(200, path="/v1/completions", prompt=["a"] * 64)
        self.ask(400, path="/v1/completions", prompt=["a"] * 65)
        self.ask(400, path="/v1/completions", prompt=[])
        self.ask(400, path="/v1/completions", best_of=21)
        self.ask(200, messages=[{"role": "user", "content": "x"}] * 2048)
        self.ask(400, messages=[{"role": "user", "content": "x"}] * 2049)
        self.ask(200, max_tokens=10**6, messages=[{"role": "user", "content": "hi"}])

    def test_all_limits_together_stay_within_memory(self):
        before = self.server.memory()
        self.ask(200, n=128, logprobs=True, top_logprobs=20, stop=["zz" + "x" * 254] * 16, max_tokens=2, messages=[{"role": "user", "content": "long"}] * 2048)
        self.assertLess(self.server.peak_memory() - before, 512 * MEBIBYTE)

    def test_log_probabilities_of_a_whole_response_are_bounded(self):
        before = self.server.memory()
        response = self.ask(400, n=128, logprobs=True, top_logprobs=20, max_tokens=1000, ignore_eos=True)
        self.assert_error(response, 400, param="logprobs")
        self.assertLess(self.server.peak_memory() - before, 512 * MEBIBYTE)
        self.ask(200, n=4, logprobs=True, top_logprobs=20, max_tokens=1000, ignore_eos=True)
        self.assertLess(self.server.peak_memory() - before, 512 * MEBIBYTE)


class A7Prompts(Abuse):
    def test_far_beyond_the_context_is_refused_at_once(self):
        worst = {"letters": "a" * (7 * MEBIBYTE), "spaces": " " * (7 * MEBIBYTE), "words": "assistant " * 700_000, "unicode": "\u00e9" * (3 * MEBIBYTE),
                 "control tokens": "<|im_start|>" * 500_000}
        for name, text in worst.items():
            for path, body in (("/v1/completions", {"prompt": text}), ("/v1/chat/completions", chat(text)), ("/v1/responses", {"input": text})):
                with self.subTest(text=name, path=path):
                    data = json.dumps(body, ensure_ascii=False).encode()
                    with self.server.socket() as one:
                        one.sendall(b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data) + data[:-1])
                        time.sleep(0.05)
                        begin, busy = time.monotonic(), self.server.cpu_seconds()
                        one.sendall(data[-1:])
                        response = responses_in(everything(one))[0]
                    error = self.assert_error(response, 400, code="context_length_exceeded")
                    self.assertEqual(error["n_ctx"], 32768)
                    self.assertGreaterEqual(error["n_prompt_tokens"], 32768)
                    self.assertLess(self.server.cpu_seconds() - busy, 0.3)  # the clock would measure other programs too
                    self.assertLess(time.monotonic() - begin, 3.0)

    def test_at_the_context(self):
        for length, status in ((32767, 200), (32768, 400)):
            response = self.server.post("/v1/completions", {"prompt": [97] * length, "max_tokens": 5, "cache_prompt": False})
            self.assertEqual(response.status, status, str(response)[:500])
            if status == 200:  # a limit beyond the context is cut to it
                self.assertEqual(response.json()["usage"]["completion_tokens"], 1)


def json_schema(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}}


def nested(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


class A8Constraints(scene.Scene):
    builtin = True
    ENFORCED = ((json_schema({"enum": ["x", 7]}), r'"x"|7'), ({"json_schema": {"const": [1, 2]}}, r"\[ ?1, ?2 ?\]"), ({"grammar": 'root ::= "a" [bc] "d"'}, "a[bc]d"),
                ({"guided_regex": "[0-9]{3}-[a-f]"}, "[0-9]{3}-[a-f]"), ({"guided_choice": ["red", "green"]}, "red|green"), ({"guided_json": {"const": 5}}, "5"),
                ({"structured_outputs": {"regex": "(ab){2}"}}, "abab"), ({"structured_outputs": {"choice": ["one"]}}, "one"),
                ({"format": {"const": 5}}, "5"), ({"schema": {"const": 6}}, "6"), ({"choices": ["red", "green"]}, "red|green"),
                ({"schema": {"const": [1, {"a": 2}]}, "whitespace": "compact"}, r'\[1,\{"a":2\}\]'))
    REFUSED = (json_schema({"type": "array", "uniqueItems": True}), json_schema(False), json_schema(nested(200)), json_schema({"$ref": "#/a"}),
               json_schema({"anyOf": [{"type": "string", "contentEncoding": "base64", "unevaluatedItems": False}]}), {"guided_regex": "(a"}, {"guided_regex": "(?=a)b"},
               {"guided_regex": "(" * 60_000}, {"grammar": "root ::= root \"a\""}, {"guided_choice": "red"},
               {"response_format": {"type": "yaml"}}, {"guided_regex": "a", "grammar": 'root ::= "a"'}, {"structured_outputs": {"structural_tag": "{}"}},
               {"guided_choice": []}, {"response_format": {}}, {"json_schema": []}, {"structured_outputs": {"regexp": "a"}}, {"structured_outputs": {}},
               {"guided_whitespace_pattern": " "}, {"schema": {}, "whitespace": "none"}, {"format": "yaml"}, {"guided_json": False},
               {"tool_choice": "required"}, {"tools": scene.TOOLS, "tool_choice": {"type": "function", "function": {"name": "no_such"}}}, {"tool_choice": "maybe"})

    def test_are_enforced_to_the_letter(self):
        for fields, pattern in self.ENFORCED:
            for path, body in (("/v1/chat/completions", chat("hi")), ("/v1/completions", {"prompt": "hi"})):
                with self.subTest(path=path, fields=fields):
                    whole = self.server.post(path, {**body, **fields, "max_tokens": 200, "temperature": 0})
                    self.assertEqual(whole.status, 200, str(whole))
                    choice = whole.json()["choices"][0]
                    text = choice["message"]["content"] if "message" in choice else choice["text"]
                    self.assertRegex(text, f"^(?:{pattern})$")
                    self.assertEqual(choice["finish_reason"], "stop")
                    pieces = [piece["choices"][0] for piece in self.server.stream(path, {**body, **fields, "max_tokens": 200, "temperature": 0}).json() if piece["choices"]]
                    self.assertEqual("".join((piece["delta"].get("content") or "") if "delta" in piece else piece["text"] for piece in pieces), text)

    def test_are_refused_in_time_where_they_cannot_be_enforced(self):
        for fields in self.REFUSED:
            with self.subTest(fields=str(fields)[:200]):
                before, begin = self.server.metrics().get("vllm:generation_tokens_total", 0), time.monotonic()
                for stream in (False, True):
                    error = self.assert_error(self.server.post("/v1/chat/completions", {**chat("hi"), **fields, "stream": stream}), 400)
                    if "nested" not in error["message"] and "levels" not in error["message"]:
                        self.assertIn(error["param"].split(".")[0], list(fields), error)
                self.assertLess(time.monotonic() - begin, 2.0)
                self.assertEqual(self.server.metrics().get("vllm:generation_tokens_total", 0), before)


class ForcedCalls(scene.Scene):
    def calls(self, **fields):
        response = self.server.chat("hi", tools=scene.TOOLS, max_tokens=400, temperature=0, **fields)
        self.assertEqual(response.status, 200, str(response))
        choice = response.json()["choices"][0]
        for call in choice["message"].get("tool_calls") or []:
            self.assertIsInstance(json.loads(call["function"]["arguments"]), dict)
        return choice["finish_reason"], [call["function"]["name"] for call in choice["message"].get("tool_calls") or []]

    def test_hold_where_the_model_would_not_call(self):
        self.assertEqual(self.calls(), ("stop", []))
        for name in ("get_weather", "get_time"):
            for choice in ({"type": "function", "function": {"name": name}}, name,
                           {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": name}}]}}):
                reason, names = self.calls(tool_choice=choice, parallel_tool_calls=False)
                self.assertEqual((reason, names), ("tool_calls", [name]), choice)
        reason, names = self.calls(tool_choice="required", parallel_tool_calls=False)
        self.assertEqual((reason, len(names)), ("tool_calls", 1))


class ForcedCallsInHarmony(ForcedCalls):
    harmony = True


def routes():
    """Every route of the server, as (method, path)."""
    table = (scene.ROOT / "src/server/routes.cpp").read_text().partition("table[] = {")[2].partition("};")[0]
    found = re.findall(r'\{"([A-Z]+)", "([^"]+)", ', table)
    assert len(found) == len([line for line in table.splitlines() if line.strip()]) > 20, table
    return [(method, path.replace("{id}", "known")) for method, path in found]


OPEN = [("GET", "/health"), ("GET", "/livez"), ("GET", "/readyz"), ("GET", "/")]
# Whatever is not meant to be open needs a key: also a route that is new.
ROUTES = [one for one in routes() if one not in OPEN] + [("GET", "/nowhere"), ("GET", "/v1/messages/nowhere")]


class A9Keys(Abuse):
    flags = ("--api-key", "first-key", "--api-key", "second-key")
    key = "first-key"

    def test_every_route_needs_one_of_the_keys(self):
        bodies = {"/v1/messages": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}, "/tokenize": {"content": "x"}, "/detokenize": {"tokens": [65]},
                  "/responses": {"input": "x", "max_output_tokens": 16}}
        bodies["/responses/input_tokens"] = bodies["/responses"]
        for method, path in ROUTES:
            body = bodies.get(path, bodies.get(path.removeprefix("/v1"), {**chat("x"), "prompt": "x", "max_tokens": 1}))
            body = body if method == "POST" else None
            for given in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer first-keyx"}, {"Authorization": "Bearer first-ke"},
                          {"Authorization": "Basic first-key"}, {"Authorization": "", "x-api-key": "wrong"}):
                with self.subTest(path=path, given=given):
                    response = self.server.request(method, path, body, **given)
                    self.assertEqual(response.status, 401, str(response))
                    self.assertNotIn("first-key", response.body.decode())
            for given in ({"Authorization": "Bearer first-key"}, {"Authorization": "Bearer second-key"}, {"Authorization": "", "x-api-key": "second-key"},
                          {"Authorization": "bearer first-key"}):
                with self.subTest(path=path, given=given):
                    response = self.server.request(method, path, body, **given)
                    self.assertEqual(response.status, 404 if path.endswith("/nowhere") else 200, str(response))

    def test_the_open_routes_need_none_and_tell_nothing(self):
        for method, path in OPEN:
            self.assertEqual(self.server.request(method, path, Authorization="").status, 200, path)

    def test_a_key_is_asked_for_before_the_body_is_read(self):
        found = responses_in(self.server.exchange(HEAD + b"Content-Length: 8000000\r\n\r\n", timeout=5))
        self.assertEqual([one.status for one in found], [401])

    def test_ways_around_the_route(self):
        for path in (b"//v1/models", b"/v1//models", b"/./v1/models", b"/health/../v1/models", b"/v1/models?x=/health", b"/%76%31/models", b"/V1/MODELS", b"/health%2f..%2fv1/models",
                     b"http://localhost/v1/models", b"/v1/models/", b"/v1/models#/health"):
            data = self.server.exchange(b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
            self.assertIn(responses_in(data)[0].status, (400, 401, 404), path)
        for host in (b"localhost/health?", b"localhost:80/health", b"health"):
            data = self.server.exchange(b"GET /v1/models HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n\r\n")
            self.assertIn(responses_in(data)[0].status, (400, 401, 403), host)


class A10Pages(Abuse):
    def test_foreign_hosts_and_origins_are_refused_without_a_token(self):
        before = self.server.metrics().get("vllm:generation_tokens_total", 0)
        for given in ({"Host": "evil.example"}, {"Host": f"evil.example:{self.server.port}"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                      {"Host": "localhost.evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Origin": "http://localhost.evil.example"}):
            with self.subTest(given=given):
                response = self.server.post("/v1/completions", {"prompt": "hi", "max_tokens": 1}, **given)
                self.assertEqual(response.status, 403, str(response))
                self.assertNotIn("access-control-allow-origin", response.headers)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            self.assertEqual(self.server.post("/v1/completions", HELLO, Content_Type=kind).status, 415, kind)
        self.assertEqual(self.server.metrics().get("vllm:generation_tokens_total", 0), before)

    def test_local_names_and_its_own_page_are_allowed(self):
        port = self.server.port
        for given in ({"Host": "localhost"}, {"Host": f"localhost:{port}"}, {"Host": f"127.0.0.1:{port}"}, {"Host": f"[::1]:{port}"},
                      {"Origin": f"http://localhost:{port}", "Host": f"localhost:{port}"}, {"Origin": f"http://127.0.0.1:{port}"}):
            with self.subTest(given=given):
                self.assertEqual(self.server.post("/v1/completions", {"prompt": "hi", "max_tokens": 1}, **given).status, 200)

    def test_preflights_are_refused_by_default(self):
        response = self.server.request("OPTIONS", "/v1/chat/completions", Origin="http://evil.example", Access_Control_Request_Method="POST")
        self.assertGreaterEqual(response.status, 400)
        self.assertFalse([name for name in response.headers if name.startswith("access-control")])


class A10Cors(Abuse):
    flags = ("--cors-origin", "https://app.example")

    def test_the_named_origin_alone_is_allowed(self):
        allowed = self.server.request("OPTIONS", "/v1/chat/completions", Origin="https://app.example", Access_Control_Request_Method="POST",
                                      Access_Control_Request_Headers="authorization,content-type")
        self.assertLess(allowed.status, 300)
        self.assertEqual(allowed.headers["access-control-allow-origin"], "https://app.example")
        answer = self.server.post("/v1/completions", {"prompt": "hi", "max_tokens": 1}, Origin="https://app.example")
        self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (200, "https://app.example"))
        for origin in ("https://app.example.evil", "http://app.example", "https://app.example:444", "null"):
            self.assertEqual(self.server.post("/v1/completions", {"prompt": "hi"}, Origin=origin).status, 403)


class A12Logs(unittest.TestCase):
    NASTY = "a\r\nb\x1b[31m\u202ec\x07\x00d"

    def test_every_line_is_escaped_and_holds_no_prompt(self):
        for form in ("json", "text"):
            with Server("--log-format", form, "--log-level", "debug", model=known()) as server:
                server.post("/v1/chat/completions", {**chat("secret-of-the-prompt " + self.NASTY), "model": self.NASTY})
                server.post("/v1/chat/completions", chat("secret-of-the-prompt " + self.NASTY, user=self.NASTY, unknown_field=1, **{self.NASTY: 1}))
                server.get("/secret-path%0d%0aX:1%1b[31m")
                server.exchange(b"GET /\x1b[31mred HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n")
                server.exchange(b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: \x1b[31m\r\n\r\n")
                server.get("/health", Authorization="Bearer sk-secret-key\x1b", User_Agent="x\x1b[2J")
                server.stop()
                lines = server.printed()
                self.assertNotRegex(lines, r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
                self.assertNotIn("secret-of-the-prompt", lines)
                self.assertNotIn("sk-secret-key", lines)
                self.assertNotIn("known model", lines)
                if form == "json":
                    found = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
                    self.assertGreaterEqual(len(found), 3)

    def test_an_ignored_field_is_named_safely(self):
        with Server(model=known()) as server:
            response = server.post("/v1/chat/completions", chat("hi", my_own_field=1, **{self.NASTY: 1}))
            self.assertEqual(response.status, 200, str(response))
            self.assertIn("my_own_field", response.headers["x-inferno-ignored"])
            self.assertNotRegex(response.headers["x-inferno-ignored"], r"[\x00-\x1f\x7f]")


class A1Slow(unittest.TestCase):
    """Time-outs at their real lengths would take minutes, so they are set."""
    FLAGS = ("--header-timeout", "1", "--body-timeout", "1", "--keep-alive-timeout", "1", "--write-timeout", "1")

    def test_slow_clients_are_closed_and_others_are_not_slowed(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        with Server(*self.FLAGS, model=known()) as server:
            quiet = sorted(self.seconds(server) for _ in range(9))[4]
            begin = time.monotonic()
            slow = [server.socket() for _ in range(500)]
            for index, one in enumerate(slow):
                one.sendall([b"GET /heal", HEAD + b"Content-Length: 100\r\n\r\n{", GET][index % 3])
            busy = sorted(self.seconds(server) for _ in range(9))[4]
            self.assertLess(busy, quiet * 1.5 + 0.05)
            for index, one in enumerate(slow):
                data = everything(one)
                statuses = [response.status for response in responses_in(data)] if data else []
                self.assertIn(statuses, ([[408], []], [[408], []], [[200]])[index % 3], index)
                one.close()
            self.assertLess(time.monotonic() - begin, 6)

    def test_a_byte_now_and_then_does_not_keep_a_head_open(self):
        with Server(*self.FLAGS, model=known()) as server, server.socket() as one:
            begin = time.monotonic()
            with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                while time.monotonic() < begin + 9:
                    one.sendall(b"G" if time.monotonic() < begin + 0.1 else b"E")
                    time.sleep(0.1)
            self.assertLess(time.monotonic() - begin, 6)

    def test_a_client_that_does_not_read_is_disconnected_and_its_request_cancelled(self):
        with Server(*self.FLAGS, model=known()) as server:
            with server.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.sendall(sized(json.dumps({"prompt": "<|to:long|>", "parse_special": True, "stream": True, "max_tokens": 32000, "logprobs": 5}).encode()))
                time.sleep(0.5)
                server.wait_until_idle(120)

    @staticmethod
    def seconds(server):
        begin = time.monotonic()
        assert server.post("/v1/completions", {"prompt": "hi", "max_tokens": 1}).status == 200
        return time.monotonic() - begin


class A11Floods(unittest.TestCase):
    def test_connections_beyond_the_limit_are_refused(self):
        with Server("--max-connections", "50", model=known()) as server:
            held = [server.socket() for _ in range(50)]
            for one in held:
                one.sendall(GET)
                self.assertIn(b"200", one.recv(4096))
            for _ in range(200):
                with server.socket(5) as one:
                    one.settimeout(5)
                    try:
                        one.sendall(GET)
                        data = everything(one)
                    except OSError:
                        data = b""
                    self.assertTrue(data == b"" or b" 503 " in data.split(b"\r\n")[0], data[:100])
            for one in held:
                one.close()
            until(lambda: self.answers(server), 2, "recovered")
            before = server.cpu_seconds()
            time.sleep(1)
            self.assertLess(server.cpu_seconds() - before, 0.05)

    def test_clients_that_send_and_leave(self):
        """Their requests are dropped: others wait neither for them nor for memory that they hold."""
        body = json.dumps({"content": "a b c d e f g h " * (7 * MEBIBYTE // 16)}).encode()
        with Server(model=known()) as server:
            for _ in range(60):
                with server.socket() as one:
                    one.sendall(b"POST /tokenize HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            begin = time.monotonic()
            self.assertEqual(server.get("/v1/models").status, 200)
            self.assertLess(time.monotonic() - begin, 10)
            self.assertGreater(server.metrics()["inferno_cancelled_by_disconnect_total"], 40)

    def test_few_descriptors(self):
        with Server(model=known(), wrapper=("prlimit", "--nofile=64")) as server:
            held = []
            for _ in range(100):
                held.append(server.socket())
            time.sleep(0.5)
            before = server.cpu_seconds()
            time.sleep(1)
            self.assertLess(server.cpu_seconds() - before, 0.3)
            for one in held:
                one.close()
            until(lambda: self.answers(server), 3, "recovered")

    @staticmethod
    def answers(server):
        try:
            return server.get("/health", timeout=2).status == 200
        except OSError:
            return False


class Starts(unittest.TestCase):
    def run_it(self, *flags, env=None):
        flags = flags if "--port" in flags else ("--port", "0", *flags)
        done = subprocess.run([scene.PROGRAM, "serve", str(known()), *flags], capture_output=True, timeout=20, env=environment(**(env or {})))
        return done.returncode, done.stderr.decode()

    def test_a_public_address_needs_a_key(self):
        code, text = self.run_it("--host", "0.0.0.0")
        self.assertEqual(code, 2, text)
        self.assertIn("key", text)
        with Server("--host", "0.0.0.0", "--no-key", model=known()) as server:
            self.assertEqual(server.get("/health").status, 200)

    def test_it_says_how_many_requests_fit_and_that_the_context_is_cut(self):
        for flags, fits, is_cut in (((), "holds 16 requests of this length", False),
                                    (("--kv-cache-memory-bytes", "20000000"), "holds 3 requests of this length", False),
                                    (("-c", "2048", "--kv-cache-memory-bytes", "2000000"), "holds one request of this length", True)):
            with self.subTest(flags=flags), Server(*flags) as server:
                until(lambda: "at once" in server.printed(), what="the lines at the start")
                self.assertIn(fits, server.printed())
                self.assertEqual("instead of 2048" in server.printed(), is_cut)

    def test_the_type_of_the_cache_is_told_and_measured(self):
        for flags, kind, share in (((), "f32", 1), (("-ctk", "q8_0", "--ctv", "f16"), "q8_0,f16", 49 / 128)):
            with self.subTest(flags=flags), Server(*flags) as server:
                until(lambda: "KV cache  " in server.printed(), what="the lines at the start")
                token_bytes = int(4096 * share)
                self.assertIn(f"KV cache    {kind}, {token_bytes} bytes a token", server.printed())
                self.assertEqual(server.metrics()["inferno_kv_cache_bytes_per_token"], token_bytes)
        code, text = self.run_it("--cache-type", "q4_0")
        self.assertEqual(code, 2, text)
        self.assertIn("expected auto, f32, f16, bf16, q8_0 or fp8", text)

    def test_flags_that_could_have_no_effect_are_refused(self):
        for flags, word in ((("--cors-origin", "chat.example"), "not an origin"), (("--cors-origin", "https://chat.example/"), "not an origin"),
                            (("--logprobs", "3"), "requests ask for"), (("--max-body", "300"), "--max-body-memory 256")):
            with self.subTest(flags=flags):
                code, text = self.run_it(*flags)
                self.assertEqual(code, 2, text)
                self.assertIn(word, text)

    def test_keys_come_from_files_and_the_environment(self):
        path = scene.FOLDER / "keys"
        path.write_text("file-key-1\nfile-key-2\n")
        os.chmod(path, 0o600)
        for flags, env, key in ((("--api-key-file", path), {}, "file-key-2"), ((), {"INFERNO_API_KEY": "from-env"}, "from-env"),
                                ((), {"INFERNO_API_KEY_FILE": str(path)}, "file-key-1")):
            with Server(*flags, model=known(), env=env) as server:
                self.assertEqual(server.get("/v1/models").status, 401)
                self.assertEqual(server.get("/v1/models", Authorization=f"Bearer {key}").status, 200)
                self.assertNotIn(key, server.printed())
                self.assertNotIn("can read the keys", server.printed())
        os.chmod(path, 0o644)
        with Server("--api-key-file", path, model=known()) as server:
            self.assertIn(f"every user of this machine can read the keys in {path}", server.printed())

    def test_a_used_port_is_an_error_that_names_it(self):
        with Server(model=known()) as server:
            code, text = self.run_it("--port", str(server.port))
            self.assertNotEqual(code, 0)
            self.assertIn(str(server.port), text)


if __name__ == "__main__":
    scene.main()
