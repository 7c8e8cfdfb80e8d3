"""A long prompt slows the streams of others by its share of a step and stalls none: stall_test.py INFERNO"""
import threading
import time
import unittest

import scene
from scene import Scene, chat, until

STEP = 256  # rows of prompts in a step while answers are generated: EngineOptions::max_prompt_tokens


class LongPrompt(Scene):
    def test_stalls_no_stream(self):
        arrivals, over = [], threading.Event()

        def read():
            events = self.server.stream("/v1/chat/completions", chat("long", max_tokens=20000))
            for _ in events:
                arrivals.append(time.monotonic())
                if over.is_set():
                    break
            events.close()

        reader = threading.Thread(target=read)
        reader.start()
        until(lambda: len(arrivals) > 10)
        prompt = {"prompt": list(range(65, 91)) * 500, "max_tokens": 1, "cache_prompt": False}
        before = time.monotonic()
        answer = self.server.post("/v1/completions", prompt)
        after = time.monotonic()
        over.set()
        reader.join()
        self.assertEqual(answer.status, 200, answer)
        tokens, prefill = answer.json()["usage"]["prompt_tokens"], answer.json()["inferno"]["prefill_ms"] / 1e3
        self.assertEqual(tokens, 13000)
        during = [one for one in arrivals if before < one < after]
        gaps = [second - first for first, second in zip(during, during[1:])]
        # The prompt takes fifty steps, and each has a token of the stream.
        self.assertGreater(len(during), tokens / STEP * 0.9)
        self.assertLess(max(gaps), prefill / 4)


if __name__ == "__main__":
    scene.main()
