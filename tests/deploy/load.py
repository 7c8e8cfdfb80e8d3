"""Load on a server or a balancer for tests: every fault is counted and nothing is retried."""
import asyncio
import collections
import dataclasses
import json
import random
import time
from urllib.parse import urlsplit


@dataclasses.dataclass
class Result:
    begin: float
    stream: bool
    session: int
    end: float = 0
    first: float = 0  # when the head of the response came; 0: never
    last: float = 0  # when the last piece came
    ok: bool = False
    why: str = ""
    worker: str = ""
    gaps: list = dataclasses.field(default_factory=list)  # seconds between two pieces of a stream

    @property
    def failed_before_first_byte(self):
        return not self.ok and (not self.first or self.why.startswith("status"))


@dataclasses.dataclass
class Request:
    stream: bool = False
    session: int = 0
    tokens: int = 24
    turn: int = 0  # earlier messages of the conversation
    size: int = 200  # bytes of the first message

    def body(self):
        # Words of one's own from the first message on: conversations share the system prompt and nothing else.
        words = random.Random(self.session)
        first = " ".join(words.choice(WORDS) for _ in range(self.size // 6))
        messages = [{"role": "system", "content": "You tell stories."}, {"role": "user", "content": f"{self.session}: {first}"}]
        for turn in range(self.turn):
            messages += [{"role": "assistant", "content": f"Yes, {words.choice(WORDS)}."}, {"role": "user", "content": f"And {words.choice(WORDS)}?"}]
        return json.dumps({"messages": messages, "stream": self.stream, "max_tokens": self.tokens, "ignore_eos": True, "temperature": 0}).encode()


WORDS = "river stone garden winter little horse window bread candle forest morning silver apple shadow letter bridge".split()


async def ask(url, request, key, results, patience=60):
    to, result = urlsplit(url), Result(time.time(), request.stream, request.session)
    results.append(result)
    body, writer = request.body(), None
    try:
        reader, writer = await asyncio.open_connection(to.hostname, to.port, limit=1 << 22)
        writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nhost: {to.netloc}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n"
                     f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        async with asyncio.timeout(patience):
            status = await reader.readline()
            if not status:
                raise ConnectionError("closed without a response")
            while (field := await reader.readline()) not in (b"\r\n", b""):
                name, _, value = field.decode().partition(":")
                if name.lower() == "x-inferno-worker":
                    result.worker = value.strip()
            result.first = result.last = time.time()
            text = b""
            while piece := await reader.read(65536):
                now = time.time()
                result.gaps.append(now - result.last)
                result.last = now
                text += piece
        code = int(status.split()[1])
        if code != 200:
            result.why = f"status {code}"
        elif request.stream:
            result.ok = b"data: [DONE]" in text and text.endswith(b"0\r\n\r\n")
            result.why = "" if result.ok else "stream cut"
        else:
            result.ok = "choices" in json.loads(text)
    except Exception as problem:  # every fault is a result
        result.why = f"{type(problem).__name__} {problem}"[:80]
    finally:
        if writer:
            writer.close()
    result.end = time.time()


async def open_loop(url, key, rate, is_over, make, results, most=48):
    """A request every 1/rate seconds, whatever happened to the others, until is_over(). On a machine that is too slow for the
    rate no more than `most` run at once: the tests are about failures, not about overload."""
    number, running = 0, set()
    while not is_over():
        if len(running) < most:
            task = asyncio.create_task(ask(url, make(number), key, results))
            running.add(task)
            task.add_done_callback(running.discard)
            number += 1
        await asyncio.sleep(1 / rate)
    await asyncio.gather(*running)


async def burst(url, key, requests, results):
    await asyncio.gather(*(ask(url, request, key, results) for request in requests))


def summary(results):
    bad = [result for result in results if not result.ok]
    return {"requests": len(results), "failed before the first byte": sum(result.failed_before_first_byte for result in bad),
            "begun streams cut": sum(not result.failed_before_first_byte for result in bad),
            "why": dict(collections.Counter(result.why for result in bad)), "by worker": dict(collections.Counter(result.worker for result in results)),
            "slowest s": round(max((result.end - result.begin for result in results), default=0), 2)}
