#!/usr/bin/env python3
"""What counts as broken output of a model, and what does not: faults_test.py INFERNO"""
import unittest

import scene
from scene import TOOLS, Server, known

FAULTS = "inferno_reply_parse_faults_total"


class Faults(unittest.TestCase):
    def faults(self, server, requests):
        """How many of the requests to /v1/chat/completions count as faults, and the warnings of each."""
        before = server.metrics()[FAULTS]
        warnings = []
        for word, fields in requests:
            answer = server.chat(word, **fields)
            self.assertEqual(answer.status, 200, answer)
            warnings.append(answer.json()["inferno"]["warnings"])
        server.wait_until_idle()
        return server.metrics()[FAULTS] - before, warnings

    def test_an_answer_that_is_cut_is_none(self):
        for harmony in (False, True):
            with Server(model=known(harmony)) as server:
                words = ("answer", "think", "tool", "result", "cut")
                # At every place, also inside headers, characters and calls.
                requests = [(word, {"max_tokens": limit, "tools": TOOLS}) for word in words for limit in range(1, 24)]
                count, warnings = self.faults(server, requests)
                self.assertEqual(count, 0, [(request, found) for request, found in zip(requests, warnings) if found])
                self.assertEqual([found for found in warnings if found], [])

    def test_broken_output_is_one(self):
        with Server("--no-harmony-mask", model=known(harmony=True)) as server:
            count, warnings = self.faults(server, [("headless", {}), ("stray", {}), ("answer", {})])
            self.assertEqual(count, 2)
            self.assertEqual([bool(found) for found in warnings], [True, True, False])
        with Server(model=known()) as server:
            count, warnings = self.faults(server, [("open", {"tools": TOOLS}), ("unknown", {"tools": TOOLS})])
            self.assertEqual(count, 2, warnings)

    def test_a_note_about_a_constraint_is_none(self):
        schema = {"type": "object", "properties": {"city": {"type": "string", "contentEncoding": "base64"}}, "unevaluatedProperties": False}
        tool = {"type": "function", "function": {"name": "get_weather", "parameters": schema}}
        with Server(model=known()) as server:
            count, warnings = self.faults(server, [("talk", {"tools": [tool], "tool_choice": "required", "max_tokens": 40})])
            self.assertIn("may be any JSON object", warnings[0][0])
            self.assertEqual(count, 0)


if __name__ == "__main__":
    scene.main()
