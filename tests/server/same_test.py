"""An answer is the same through every door, streamed or not, alone or among forty, and the same as `generate --json`; usage,
metrics and log agree about its tokens: same_test.py INFERNO"""
import json
import unittest

import known_model
import scene
from doors import DOORS
from known_model_test import calls_of
from scene import TOOLS, Scene, Server, generate, known, together, until

SAMPLING = {"temperature": 0.9, "top_p": 0.95, "seed": 7, "max_tokens": 24}
FLAGS = ("--temperature", "0.9", "--top-p", "0.95", "-s", "7", "-n", "24")


class EveryDoor(Scene):
    def test_gives_the_known_answers(self):
        for word, (content, reasoning, calls) in known_model.ANSWERS.items():
            for name, door in DOORS.items():
                with self.subTest(word=word, door=name):
                    seen = door(self.server, word, TOOLS)
                    if word == "broken" and "messages" in name:  # input must be an object there, so its text is content
                        self.assertEqual((seen.content, seen.calls[0][0]), ("{\"city\": [ Sorry.", "get_weather"))
                        continue
                    self.assertEqual(seen.key(), (content, reasoning, calls))
                    self.assertEqual(seen.reason, "tool_calls" if calls else "stop")
                    self.assertEqual(seen.completion_tokens, len(known_model.SCENES[word]))

    # The end of the text before the call could begin the stop string: it is not held back beyond the call.
    ORDERS = ({}, {"stop": [" up. Then"]})

    def order(self, path, body, kind):
        """The kinds of the events in their order, each once for any number in a row."""
        kinds = [kind(event) for event in self.server.stream(path, body).json()]
        return [one for one, before in zip(kinds, [None, *kinds]) if one != before]

    def test_streams_the_parts_of_a_chat_answer_in_order(self):
        def kind(chunk):
            choice = chunk["choices"][0]
            return choice["finish_reason"] or next(name for name in ("role", "reasoning", "tool_calls", "content") if name in choice["delta"])
        for fields in self.ORDERS:
            body = {**scene.chat("order"), "tools": TOOLS, **fields}
            self.assertEqual(self.order("/v1/chat/completions", body, kind), ["role", "reasoning", "content", "tool_calls", "content", "tool_calls"])

    def test_streams_the_items_of_a_response_in_order(self):
        def of(*types):
            return ["response.output_item.added", *types, "response.output_item.done"]

        def part(name):
            return of("response.content_part.added", f"response.{name}.delta", f"response.{name}.done", "response.content_part.done")
        call = of("response.function_call_arguments.delta", "response.function_call_arguments.done")
        for fields in self.ORDERS:
            body = {"input": "order", "tools": [{"type": "function", **one["function"]} for one in TOOLS], **fields}
            self.assertEqual(self.order("/v1/responses", body, lambda event: event["type"]),
                             ["response.created", "response.in_progress", *part("reasoning_text"), *part("output_text"), *call, *part("output_text"),
                              "response.completed"])
            items = self.server.post("/v1/responses", body).json()["output"]
            self.assertEqual([item["type"] for item in items], ["reasoning", "message", "function_call", "message"])
            self.assertEqual([items[at]["content"][0]["text"] for at in (1, 3)], ["Let me look it up.", " Then I am done."])

    def test_streams_the_blocks_of_a_message_in_order(self):
        def kind(event):
            return event.get("content_block", event.get("delta", {})).get("type") or event["type"]
        tools = [{"name": one["function"]["name"], "input_schema": one["function"]["parameters"]} for one in TOOLS]
        for fields in ({}, {"stop_sequences": self.ORDERS[1]["stop"]}):
            body = {"messages": [{"role": "user", "content": "order"}], "max_tokens": 1000, "tools": tools, **fields}
            text = ["text", "text_delta", "content_block_stop"]
            self.assertEqual(self.order("/v1/messages", body, kind),
                             ["message_start", "ping", "thinking", "thinking_delta", "signature_delta", "content_block_stop", *text,
                              "tool_use", "input_json_delta", "content_block_stop", *text, "message_delta", "message_stop"])
            blocks = self.server.post("/v1/messages", body).json()["content"]
            self.assertEqual([blocks[at]["text"] for at in (1, 3)], ["Let me look it up.", " Then I am done."])

    def test_gives_what_generate_gives(self):
        for word in ("answer", "think", "cut", "long", "dice", "page"):
            expected = generate(word, "--chat", "-m", known(), *FLAGS)
            for name, door in DOORS.items():
                with self.subTest(word=word, door=name):
                    seen = door(self.server, word, **SAMPLING)
                    self.assertEqual(seen.key(), (expected["text"], expected.get("reasoning", ""), calls_of(expected)))
                    self.assertEqual((seen.reason, seen.prompt_tokens, seen.completion_tokens),
                                     (expected["finish_reason"], expected["prompt_tokens"], expected["completion_tokens"]))

    def test_enforces_strict_tools(self):
        schema = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"], "additionalProperties": False}
        for strict, city in ((False, "Rome"), (True, "Oslo")):
            tool = {"name": "get_weather", "description": "The weather", "parameters": schema, "strict": strict}
            for name, door in DOORS.items():
                with self.subTest(strict=strict, door=name):
                    seen = door(self.server, "talk", [{"type": "function", "function": tool}])
                    # Off its chains the model may go on, but no call differs.
                    self.assertEqual({(name, given["city"]) for name, given in seen.key()[2]}, {("get_weather", city)})

    def test_completions_of_a_rendered_prompt_are_the_same_text(self):
        for word in ("answer", "dice", "page"):
            rendered = self.server.post("/apply-template", scene.chat(word)).json()["prompt"]
            tokens = self.server.post("/tokenize", scene.chat(word)).json()["tokens"]
            expected = DOORS["chat_whole"](self.server, word, **SAMPLING)
            for prompt in (rendered, tokens, [tokens], [rendered]):
                body = self.server.post("/v1/completions", {"prompt": prompt, "parse_special": True, **SAMPLING}).json()
                self.assertEqual(body["choices"][0]["text"], expected.content)
                self.assertEqual(body["usage"]["prompt_tokens"], expected.prompt_tokens)

    def test_alone_or_among_forty(self):
        words = [*known_model.ANSWERS, "long", "dice"]
        work = [(words[index % len(words)], list(DOORS.values())[index % len(DOORS)], {"seed": index, "max_tokens": 40}) for index in range(40)]
        alone = [door(self.server, word, TOOLS, **fields) for word, door, fields in work]
        crowd = together(lambda index: work[index][1](self.server, work[index][0], TOOLS, **work[index][2]), len(work))
        for one, other in zip(alone, crowd):
            self.assertEqual((one.key(), one.reason, one.completion_tokens), (other.key(), other.reason, other.completion_tokens))

    def test_cut_characters(self):
        for limit in range(1, 8):
            expected = generate("cut", "--chat", "-m", known(), "-n", limit)
            for name, door in DOORS.items():
                with self.subTest(limit=limit, door=name):
                    self.assertEqual(door(self.server, "cut", max_tokens=limit).content, expected["text"])


    def test_fields_beyond_openai_mean_the_same(self):
        ids = json.loads((known() / "tokenizer.json").read_text())["model"]["vocab"]
        hello = known_model.HELLO
        cases = [("stop", {"stop": ["STOP"]}, "one, two, "), ("stop", {"stop": ["P t", "never"]}, "one, two, STO"),
                 ("think", {"chat_template_kwargs": {"enable_thinking": False}}, hello),
                 ("answer", {"ignore_eos": True, "max_tokens": 9}, hello + " some known"),
                 ("answer", {"min_tokens": 9, "max_tokens": 9, "seed": 1}, None),
                 ("answer", {"stop_token_ids": [ids["\u0120am"]]}, None),
                 ("answer", {"logit_bias": {str(ids["Hello"]): -100, str(ids["A\u0120short"]): 100}, "temperature": 0}, None),
                 ("long", {"repetition_penalty": 1.5, "max_tokens": 12, "top_k": 5, "min_p": 0.01, "typical_p": 0.9, "temperature": 1.0}, None),
                 ("dice", {"seed": 3, "top_k": 2, "max_tokens": 12}, None), ("dice", {"seed": 3, "n_predict": 12}, None)]
        for word, fields, expected in cases:
            answers = {name: door(self.server, word, **fields).content for name, door in DOORS.items()
                       if not ("messages" in name and "n_predict" in fields)}  # max_tokens is required there
            with self.subTest(word=word, fields=fields):
                self.assertEqual(len(set(answers.values())), 1, answers)
                if expected is not None:
                    self.assertEqual(answers["chat_whole"], expected)
        self.assertIn("stop", {DOORS[name](self.server, "stop", stop=["STOP"]).reason for name in DOORS})


class Channels(Scene):
    harmony = True

    def test_give_the_known_answers(self):
        for word, (content, reasoning, calls) in known_model.HARMONY_ANSWERS.items():
            for name, door in DOORS.items():
                with self.subTest(word=word, door=name):
                    self.assertEqual(door(self.server, word, TOOLS).key(), (content, reasoning, calls))

    def test_broken_output_keeps_its_text_and_leaks_no_control_token(self):
        for word, text in known_model.HARMONY_FAULTS.items():
            for name, door in DOORS.items():
                with self.subTest(word=word, door=name):
                    seen = door(self.server, word, TOOLS)
                    self.assertIn(text, seen.content + seen.reasoning + json.dumps(seen.calls))
                    self.assertNotIn("<|", seen.content + seen.reasoning)


class Builtin(Scene):
    builtin = True
    PROMPT = "Tell me about the sea."

    def test_every_door_gives_what_generate_gives(self):
        for flags, fields in ((FLAGS, SAMPLING), (("--temperature", "0", "-n", "24"), {"temperature": 0, "max_tokens": 24})):
            expected = generate(self.PROMPT, "--chat", *flags)
            for name, door in DOORS.items():
                with self.subTest(door=name):
                    seen = door(self.server, self.PROMPT, **fields)
                    self.assertEqual((seen.content, seen.reason, seen.prompt_tokens, seen.completion_tokens),
                                     (expected["text"], expected["finish_reason"], expected["prompt_tokens"], expected["completion_tokens"]))

    def test_alone_or_among_forty(self):
        fields = [{"temperature": 0.9, "seed": index, "max_tokens": 16} for index in range(40)]
        doors = list(DOORS.values())
        alone = [doors[index % len(doors)](self.server, f"{index} {self.PROMPT}", **fields[index]).content for index in range(40)]
        crowd = together(lambda index: doors[index % len(doors)](self.server, f"{index} {self.PROMPT}", **fields[index]).content, 40)
        self.assertEqual(alone, crowd)


class Counts(unittest.TestCase):
    def test_usage_metrics_and_log_agree(self):
        with Server("--log-format", "json", model=known()) as server:
            before = server.metrics()
            words = ["answer", "think", "tool", "long", "empty", "dice"]
            seen = [door(server, word, TOOLS, max_tokens=30) for word in words for door in DOORS.values()]
            after = until(lambda: self.settled(server, before, len(seen)), 10, "all requests are counted")
            prompts, completions = sum(one.prompt_tokens for one in seen), sum(one.completion_tokens for one in seen)
            self.assertEqual(after["vllm:prompt_tokens_total"] - before.get("vllm:prompt_tokens_total", 0), prompts)
            self.assertEqual(after["vllm:generation_tokens_total"] - before.get("vllm:generation_tokens_total", 0), completions)
            until(lambda: {one.request for one in seen} <= set(self.lines(server)), 10, "all requests are logged")
            lines = self.lines(server)
            for one in seen:
                line = lines[one.request]
                self.assertEqual((line["prompt_tokens"], line["generated_tokens"]), (one.prompt_tokens, one.completion_tokens), line)

    @staticmethod
    def lines(server):
        records = [json.loads(line) for line in server.log() if line.startswith("{") and line.endswith("}")]
        return {one.get("id"): one for one in records}

    @staticmethod
    def settled(server, before, count):
        after = server.metrics()
        name = "vllm:request_success_total"
        return after if after.get(name, 0) - before.get(name, 0) >= count else None


if __name__ == "__main__":
    scene.main()
