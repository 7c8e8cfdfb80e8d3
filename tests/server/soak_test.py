#!/usr/bin/env python3
"""Mixed load for a while: answers, refusals, invalid requests and clients that leave. Memory must stay flat, descriptors and threads
must come back.

    soak_test.py PROGRAM [--seconds N]        (two minutes in CI, 15 s otherwise)
"""
import os
import random
import sys
import threading
import time

import load_test
import scene


def seconds_asked():
    if "--seconds" in sys.argv:
        at = sys.argv.index("--seconds")
        _, value = sys.argv.pop(at), sys.argv.pop(at)
        return float(value)
    return 120.0 if os.environ.get("CI") else 15.0


SECONDS = seconds_asked()


class Soak(scene.Scene):
    builtin = True
    flags = ("--log-format", "json")

    def round(self, number):
        """Steady load, or every third time overload."""
        flags = ("--concurrency", 24) if number % 3 else ("--rate", 400)
        return load_test.bench(self.server, *flags, "--requests", 200, "--input-len", 48, "--output-len", 24, "--endpoint",
                               "chat" if number % 2 else "completions", timeout=300)

    def work(self, end, results):
        number = 0
        while time.monotonic() < end:
            number += 1
            results += self.round(number)

    def disturb(self, end):
        dice, number = random.Random(1), 0
        while time.monotonic() < end:
            number += 1
            load_test.leave_at_random(self.server, number, dice)
            response = self.server.post("/v1/chat/completions", dice.choice([b"{", b"[]", {"messages": 3}, {"messages": [], "stop": 7}]),
                                        Content_Type="application/json")
            self.assertIn(response.status, (400, 429), str(response))  # a full queue is noticed first
            time.sleep(0.05)

    def test_memory_stays_flat(self):
        # Prompts fill the KV cache, which is memory that was never touched: on a slow machine this takes longer than the
        # first third.
        for number in (1, 2, 3, 4):
            self.round(number)
        begin = time.monotonic()
        end = begin + SECONDS
        results, memory, failures = [], [], []

        def run(work, *arguments):
            try:
                work(end, *arguments)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=arguments) for arguments in ((self.work, results), (self.disturb,))]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            memory.append((time.monotonic() - begin, self.server.memory()))
            time.sleep(0.25)
        if failures:
            raise failures[0]
        self.server.wait_until_idle(60)
        # The first third fills caches and pools.
        early = max(size for at, size in memory if SECONDS / 6 <= at < SECONDS / 3)
        late = max(size for at, size in memory if at >= SECONDS / 3)
        total = {key: sum(result[key] for result in results) for key in ("completed", "refused", "failed", "total_output_tokens")}
        print(f"{SECONDS:.0f} s: {total}, memory {early >> 20} MiB, later {late >> 20} MiB")
        self.assertEqual([result["first_failure"] for result in results if result["first_failure"]], [])
        self.assertGreater(total["completed"], 100)
        self.assertLessEqual(late, early + max(early // 20, 8 << 20))
        self.assertEqual(self.server.metrics()["vllm:kv_cache_usage_perc"], 0)


if __name__ == "__main__":
    scene.main()
