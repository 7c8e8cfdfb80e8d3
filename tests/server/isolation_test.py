"""Prefixes are shared within one API key and never across, and keys take turns in the queue: isolation_test.py INFERNO"""
import time

import scene
from scene import Scene, chat, together

TEXT = "A prefix that is long enough to fill several blocks of the cache. " * 12


class Keys(Scene):
    flags = ("--api-key", "one", "--api-key", "two", "--parallel", "2", "--max-queue", "1000")
    key = "one"

    def cached(self, text, key, **fields):
        body = self.server.post("/v1/chat/completions", chat(text, max_tokens=1, **fields), Authorization=f"Bearer {key}").json()
        counts = {body["usage"]["prompt_tokens_details"]["cached_tokens"], body["timings"]["cache_n"], body["inferno"]["cached_tokens"]}
        self.assertEqual(len(counts), 1, body)
        return counts.pop()

    def test_do_not_share_prefixes(self):
        self.assertEqual(self.cached("k " + TEXT, "one"), 0)
        self.assertGreater(self.cached("k " + TEXT, "one"), 500)
        self.assertEqual(self.cached("k " + TEXT, "two"), 0)
        self.assertGreater(self.cached("k " + TEXT, "two"), 500)

    def test_a_salt_is_a_scope_of_its_own_within_the_key(self):
        self.assertEqual(self.cached("s " + TEXT, "one", cache_salt="a"), 0)
        self.assertEqual(self.cached("s " + TEXT, "one", cache_salt="b"), 0)
        self.assertEqual(self.cached("s " + TEXT, "one"), 0)
        self.assertEqual(self.cached("s " + TEXT, "two", cache_salt="a"), 0)
        self.assertGreater(self.cached("s " + TEXT, "one", cache_salt="a"), 500)

    def test_salts_cannot_imitate_another_key(self):
        self.assertEqual(self.cached("i " + TEXT, "one"), 0)
        for salt in ("", "1", "one", "key1", "1:", "/1", "\x00", "1\x00"):
            self.assertEqual(self.cached("i " + TEXT, "two", cache_salt=salt) if salt else 0, 0, salt)

    def test_the_cache_can_be_left_alone(self):
        self.assertEqual(self.cached("c " + TEXT, "one"), 0)
        self.assertEqual(self.cached("c " + TEXT, "one", cache_prompt=False), 0)

    def test_take_turns_in_the_queue(self):
        # One key floods the queue; a request of the other must not wait for all of them.
        done = []

        def ask(index):
            key = "two" if index == 60 else "one"
            time.sleep(0.3 if key == "two" else 0)
            self.assertEqual(self.server.post("/v1/chat/completions", chat("long", max_tokens=300), Authorization=f"Bearer {key}").status, 200)
            done.append(key)

        together(ask, 61)
        self.assertLess(done.index("two"), 45, done)


class FullQueue(Scene):
    flags = ("--api-key", "one", "--api-key", "two", "--parallel", "1", "--max-queue", "2")
    key = "one"

    def ask(self, key):
        return self.server.post("/v1/chat/completions", chat("hi", max_tokens=1), Authorization=f"Bearer {key}").status

    def test_of_one_key_has_room_for_another(self):
        held = [self.server.stream("/v1/chat/completions", chat("long"))]
        for waiting in (1, 2):
            connection = self.server.connect()
            connection.request("POST", "/v1/chat/completions", scene.json.dumps(chat("long", stream=True)),
                               self.server.headers({"Content-Type": "application/json"}))
            held.append(connection)
            scene.until(lambda: self.server.metrics()["vllm:num_requests_waiting"] == waiting, 5, "it waits")
        self.assertEqual(self.ask("one"), 429)
        answers = []
        other = scene.threading.Thread(target=lambda: answers.append(self.ask("two")))
        other.start()
        scene.until(lambda: self.server.metrics()["vllm:num_requests_waiting"] == 3, 5, "the other key's request waits, too")
        self.assertEqual(self.ask("two"), 429, "a key that has a request in the full queue")
        for one in held:
            one.close()
        other.join()
        self.assertEqual(answers, [200])


if __name__ == "__main__":
    scene.main()
