"""Random requests at every door: never a 5xx, never a hang: random_test.py INFERNO (INFERNO_RANDOM_SECONDS, INFERNO_RANDOM_SEED)"""
import json
import os
import random
import time

import known_model
import scene
from doors import anthropic
from scene import TOOLS, Scene

SECONDS = float(os.environ.get("INFERNO_RANDOM_SECONDS", "8"))
SEED = int(os.environ.get("INFERNO_RANDOM_SEED", "1"))
VALUES = [None, True, False, 0, 1, -1, 2, 0.5, 1e3, "", "x", "auto", "none", [], {}, ["a"], [1, 2], {"a": 1}, "\0", [[1]], {"type": "text"}, {"type": "function"},
          [{}], [None], {"type": "enabled"}, "high", -2**31, "A" * 500]
KEYS = ["role", "content", "type", "text", "tool_calls", "name", "id", "call_id", "output", "arguments", "tool_call_id", "summary"]
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
MESSAGES = [{"role": "user", "content": "tool"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "21"}]
INPUT = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "tool"}]},
         {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]},
         {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
         {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "1"}]}]
BLOCKS = [{"role": "user", "content": [{"type": "text", "text": "tool"}]},
          {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}}]},
          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "1"}]}]}]
SAMPLING = ("model max_tokens temperature top_p stream seed logit_bias stop_token_ids ignore_eos min_tokens cache_salt chat_template_kwargs add_generation_prompt "
            "continue_final_message include_reasoning top_k min_p typical_p repetition_penalty cache_prompt parse_special").split()
# path: the field of the prompt, a long example of it, tools, and further fields
DOORS = {
    "/v1/chat/completions": ("messages", MESSAGES, TOOLS, SAMPLING + ("max_completion_tokens n stop stream_options tool_choice logprobs top_logprobs reasoning_effort "
                                                                      "response_format parallel_tool_calls user functions reasoning").split()),
    "/v1/completions": ("prompt", ["a", "b"], None, SAMPLING + "echo suffix best_of logprobs n stop stream_options".split()),
    "/v1/responses": ("input", INPUT, TOOLS, SAMPLING + ("instructions tool_choice reasoning text store include metadata previous_response_id conversation background "
                                                         "truncation parallel_tool_calls top_logprobs max_tool_calls").split()),
    "/v1/messages": ("messages", BLOCKS, anthropic(TOOLS), SAMPLING + "system tool_choice thinking stop_sequences metadata mcp_servers context_management".split()),
    "/v1/messages/count_tokens": ("messages", BLOCKS, anthropic(TOOLS), ["system", "thinking"]),
    "/tokenize": ("content", "text", None, "prompt messages add_special with_pieces parse_special".split()),
    "/detokenize": ("tokens", [65, 66], None, ["model"]),
    "/apply-template": ("messages", MESSAGES, TOOLS, ["add_generation_prompt", "chat_template_kwargs"]),
}


class Requests:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def mutated(self, value):
        """Another value, or one that differs somewhere inside."""
        chance = self.random
        if isinstance(value, dict) and value and chance.random() < 0.7:
            key = chance.choice(list(value))
            more = {chance.choice(KEYS): chance.choice(VALUES)} if chance.random() < 0.2 else {}
            return {**value, key: self.mutated(value[key]), **more}
        if isinstance(value, list) and value and chance.random() < 0.7:
            at = chance.randrange(len(value))
            return [*value[:at], self.mutated(value[at]), *value[at + 1:]]
        return chance.choice(VALUES)

    def one(self, words):
        chance = self.random
        path = chance.choice(list(DOORS))
        field, example, tools, fields = DOORS[path]
        prompt = chance.choice(words)
        body = {field: example if chance.random() < 0.3 or field == "tokens" else [{"role": "user", "content": prompt}] if field == "messages" else prompt}
        body["max_output_tokens" if "responses" in path else "max_tokens"] = 24
        if tools and chance.random() < 0.3:
            body["tools"] = tools
        for _ in range(chance.randrange(4)):
            name = chance.choice([*fields, field])
            body[name] = self.mutated(body.get(name, chance.choice(VALUES)))
        return path, body


class Random(Scene):
    scenes = known_model.ANSWERS

    def test_requests_never_break_the_server(self):
        requests, statuses, end = Requests(SEED), {}, time.monotonic() + SECONDS / 2
        while time.monotonic() < end:
            path, body = requests.one(list(self.scenes))
            response = self.server.post(path, body, timeout=30)
            statuses[response.status] = statuses.get(response.status, 0) + 1
            self.assertLess(response.status, 500, f"{path} {json.dumps(body)}\n{response}")
            self.assertNotIn(b"internal error", response.body, f"{path} {json.dumps(body)}")
        self.assertGreater(statuses.get(200, 0), 20, statuses)
        self.assertGreater(statuses.get(400, 0), 20, statuses)


class RandomInChannels(Random):
    harmony = True
    scenes = known_model.HARMONY_ANSWERS


if __name__ == "__main__":
    scene.main()
