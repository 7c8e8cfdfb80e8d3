"""The same question through every door, and what each answer says: content, reasoning, calls, why it ended, and usage."""
import json

from known_model_test import parsed
from scene import chat


class Seen:
    """An answer, whichever door it came through."""

    def __init__(self, content="", reasoning="", calls=(), reason=None, prompt_tokens=None, completion_tokens=None, request=None):
        self.content, self.reasoning, self.calls, self.reason = content, reasoning, list(calls), reason
        self.prompt_tokens, self.completion_tokens, self.request = prompt_tokens, completion_tokens, request

    def key(self):
        return self.content, self.reasoning, [(name, parsed(arguments) if isinstance(arguments, str) else arguments) for name, arguments in self.calls]

    def __repr__(self):
        return f"{self.key()} {self.reason} {self.prompt_tokens}+{self.completion_tokens}"


def flat(tools):
    return [{"type": "function", **one["function"]} for one in tools]


def anthropic(tools):
    functions = [dict(one["function"]) for one in tools]
    return [{"input_schema": function.pop("parameters"), **function} for function in functions]


def checked(response):
    if response.status != 200:
        raise AssertionError(str(response))
    return response


def chat_whole(server, word, tools=None, **fields):
    response = checked(server.post("/v1/chat/completions", chat(word, **({"tools": tools} if tools else {}), **fields)))
    body = response.json()
    choice = body["choices"][0]
    message = choice["message"]
    assert message.get("reasoning") == message.get("reasoning_content"), message
    return Seen(message["content"] or "", message.get("reasoning") or "",
                [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []], choice["finish_reason"],
                body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"], response.headers["x-request-id"])


def chat_stream(server, word, tools=None, **fields):
    events = checked(server.stream("/v1/chat/completions", chat(word, **({"tools": tools} if tools else {}), stream_options={"include_usage": True}, **fields)))
    lines = events.all()
    assert lines[-1][1] == "[DONE]", lines[-1]
    seen, calls = Seen(request=events.headers["x-request-id"]), {}
    for chunk in (json.loads(data) for _, data in lines[:-1]):
        assert "error" not in chunk, chunk
        for choice in chunk["choices"]:
            delta = choice["delta"]
            seen.content += delta.get("content") or ""
            seen.reasoning += delta.get("reasoning") or ""
            seen.reason = choice["finish_reason"] or seen.reason
            for call in delta.get("tool_calls") or []:
                one = calls.setdefault(call["index"], ["", ""])
                one[0] += call["function"].get("name") or ""
                one[1] += call["function"].get("arguments") or ""
        if chunk.get("usage"):
            seen.prompt_tokens, seen.completion_tokens = chunk["usage"]["prompt_tokens"], chunk["usage"]["completion_tokens"]
    seen.calls = [tuple(calls[index]) for index in sorted(calls)]
    return seen


def responses_fields(word, tools, fields):
    fields = dict(fields)
    if "max_tokens" in fields:
        fields["max_output_tokens"] = fields.pop("max_tokens")
    return {"input": word, **({"tools": flat(tools)} if tools else {}), **fields}


def seen_response(body, request):
    seen = Seen(request=request)
    for item in body["output"]:
        if item["type"] == "message":
            seen.content += "".join(part["text"] for part in item["content"])
        elif item["type"] == "reasoning":
            seen.reasoning += "".join(part["text"] for part in item["content"])
        elif item["type"] == "function_call":
            seen.calls.append((item["name"], item["arguments"]))
    seen.reason = "length" if body["status"] == "incomplete" else "tool_calls" if seen.calls else "stop"
    seen.prompt_tokens, seen.completion_tokens = body["usage"]["input_tokens"], body["usage"]["output_tokens"]
    return seen


def responses_whole(server, word, tools=None, **fields):
    response = checked(server.post("/v1/responses", responses_fields(word, tools, fields)))
    return seen_response(response.json(), response.headers["x-request-id"])


def responses_stream(server, word, tools=None, **fields):
    events = checked(server.stream("/v1/responses", responses_fields(word, tools, fields)))
    built, last = Seen(), None
    for name, data in events.all():
        if data == "[DONE]":
            continue
        event = last = json.loads(data)
        assert name == event["type"], (name, event)
        if name == "response.output_text.delta":
            built.content += event["delta"]
        elif name == "response.reasoning_text.delta":
            built.reasoning += event["delta"]
        elif name == "response.function_call_arguments.done":
            built.calls.append((event["item_id"], event["arguments"]))
    assert last["type"] in ("response.completed", "response.incomplete"), last
    seen = seen_response(last["response"], events.headers["x-request-id"])
    assert (built.content, built.reasoning) == (seen.content, seen.reasoning), (built, seen)
    assert [arguments for _, arguments in built.calls] == [arguments for _, arguments in seen.calls]
    return seen


REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}


def messages_fields(word, tools, fields):
    fields = dict(fields)
    if "stop" in fields:
        fields["stop_sequences"] = fields.pop("stop")
    return {"messages": [{"role": "user", "content": word}], "max_tokens": 30000, **({"tools": anthropic(tools)} if tools else {}), **fields}


def input_tokens(usage):
    return usage["input_tokens"] + (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)


def messages_whole(server, word, tools=None, **fields):
    response = checked(server.post("/v1/messages", messages_fields(word, tools, fields), anthropic_version="2023-06-01"))
    body, seen = response.json(), Seen(request=response.headers.get("request-id") or response.headers["x-request-id"])
    for block in body["content"]:
        if block["type"] == "text":
            seen.content += block["text"]
        elif block["type"] == "thinking":
            seen.reasoning += block["thinking"]
        else:
            seen.calls.append((block["name"], block["input"]))
    seen.reason = REASONS[body["stop_reason"]]
    seen.prompt_tokens, seen.completion_tokens = input_tokens(body["usage"]), body["usage"]["output_tokens"]
    return seen


def messages_stream(server, word, tools=None, **fields):
    events = checked(server.stream("/v1/messages", messages_fields(word, tools, fields), anthropic_version="2023-06-01"))
    seen, calls = Seen(request=events.headers.get("request-id") or events.headers["x-request-id"]), {}
    for name, data in events.all():
        event = json.loads(data)
        assert name == event["type"], (name, event)
        if name == "message_start":
            seen.prompt_tokens = input_tokens(event["message"]["usage"])
        elif name == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls[event["index"]] = [event["content_block"]["name"], ""]
        elif name == "content_block_delta":
            delta = event["delta"]
            seen.content += delta.get("text", "")
            seen.reasoning += delta.get("thinking", "")
            if delta["type"] == "input_json_delta":
                calls[event["index"]][1] += delta["partial_json"]
        elif name == "message_delta":
            seen.reason, seen.completion_tokens = REASONS[event["delta"]["stop_reason"]], event["usage"]["output_tokens"]
    seen.calls = [(name, arguments or "{}") for name, arguments in calls.values()]
    return seen


DOORS = {one.__name__: one for one in (chat_whole, chat_stream, responses_whole, responses_stream, messages_whole, messages_stream)}
