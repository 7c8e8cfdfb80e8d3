#!/usr/bin/env python3
"""A tiny checkpoint whose answers are known: known_model.py [--harmony] DIRECTORY

Its answers are the chains below, token by token. The prompt's template picks a chain by the first word of the last user
message ("tool", "think", "long", …); every other message gets the answer "Hello! I am the known model.".

How it works. Every token has a one-hot embedding, and the output matrix is a table of successors. The single layer has one
attention head for each of the four previous tokens (RoPE makes a sharp peak at a fixed distance), which copies the class of
that token into the residual stream, so that a token with several successors is followed by the right one. The MLP is zero.
The model needs no learning and is exact: margins are far larger than the rounding of any backend.
"""
import json
import math
import pathlib
import struct
import sys

HEAD_DIM, OFFSETS, CONTEXT = 64, 4, 32768
SUCCESSOR, VOTE = 12.0, 2.0  # of the output matrix; four votes weigh less than being a successor

FACES = [" one", " two", " three", " four", " five", " six"]
WORDS = [" and", " so", " on", " it", " goes", " without", " an", " end", " in", " sight,"]
EMOJI = [b"\xf0", b"\x9f", b"\x98", b"\x80"]  # U+1F600, one token for each byte
PAGE = ["# A ", "page\n\n", "- **bo", "ld** and `co", "de`\n", "- <script>", "alert(1)</script>\n\n", "```python\n", "print(", "'hi')\n",
        "```\n", "\n| a | b |\n|---|---|\n| 1 | 2 |\n"]
CALL_A = ["\n{\"name\": ", "\"get_weather\", ", "\"arguments\": ", "{\"city\": \"Pa", "ris\"", "}}", "\n"]
CALL_B = ["{\"name\": \"get_", "time\", \"argu", "ments\": {\"zone\": ", "\"Europe/P", "aris\", \"h24\": true}", "}\n "]
CALL_C = ["{\"name\": \"get_", "weather\", \"arguments\": ", "{\"city\":\"Ro", "me\"}", " }"]  # without line breaks
CALL_D = ["{\"name\": \"get_", "weather\", \"arguments\": ", "{\"city\": \"R", "ome\"", "} }"]  # text follows
GREETING = ["Hello", "!", " I", " am", " the known", " model."]

# word: the tokens of the answer. bytes are single byte tokens, <…> names tokens of the same name.
SCENES = {
    "answer": [*GREETING, "<|im_end|>"],
    "think": ["<think>", "\nThe user", " wants a", " number.", "\n", "</think>", "\n\n", "Forty", "-two", ".", "<|im_end|>"],
    "mull": ["Let me", " see", ".\n", "</think>", "\n\n", "I saw", " it.", "<|im_end|>"],  # the prompt ends with <think>
    "tool": ["<tool_call>", *CALL_A, "</tool_call>", "\n", "<tool_", "call>", *CALL_B, "</tool_call>", "<|im_end|>"],
    "talk": ["Let me", " look it", " up.\n", "<tool_call>", *CALL_C, "</tool_call>", "<|im_end|>"],
    "plan": ["<think>", "I need", " the weather.", "</think>", "<tool_call>", *CALL_C, "</tool_call>", "<|im_end|>"],
    "order": ["<think>", "I need", " the weather.", "</think>", "Let me", " look it", " up.", "<tool_call>", *CALL_D, "</tool_call>", " Then", " I am",
              " done.", "<|im_end|>"],  # every kind of part, and text after a call
    "result": ["It is", " 21 ", b"\xc2", b"\xb0", "C in", " Paris.", "<|im_end|>"],
    "broken": ["<tool_call>", "{\"name\": \"get_wea", "ther\", \"arguments\": ", "{\"city\": [", "</tool_call>", " Sorry.", "<|im_end|>"],
    "open": ["<tool_call>", "{\"name\": \"get_weat", "<|im_end|>"],
    "unknown": ["<tool_call>", "{\"name\": \"no_such\", ", "\"arguments\": {}", "}", "</tool_call>", "<|im_end|>"],
    "cut": ["Look: ", *EMOJI, " done", "<|im_end|>"],
    "bytes": ["a", b"\xff", "b", b"\xc3", "(", b"\xe2", b"\x82", "<|im_end|>"],
    "stop": ["one", ", two", ", ST", "OP ", "three", "<|im_end|>"],
    "control": ["safe", "<|odd|>", " and", "<|im_start|>", " sound", "<|im_end|>"],
    "spaces": ["  in", "dented", "\n\n", "  text ", "\n", "<|im_end|>"],
    "empty": ["<|im_end|>"],
    "page": [*PAGE, "<|im_end|>"],
    "thoughts": ["<think>", "\nNothing but", " thoughts", "\n", "</think>", "<|im_end|>"],
    "low": ["A short", " answer.", "<|im_end|>"],
    "high": ["<think>", "Long", " thoughts.", "</think>", "A long", " answer.", "<|im_end|>"],
    # A coding agent's task in three steps: read a file, change it, report.
    "agent1": ["<think>", "First I", " read it.", "</think>", "<tool_call>", "{\"name\": \"read_file\"", ", \"arguments\": {\"path\"", ": \"main.c\"", "}}",
               "</tool_call>", "<|im_end|>"],
    "agent2": ["Now I", " change it.", "\n", "<tool_call>", "{\"name\": \"write_", "file\", \"arguments\": {\"path\": \"main.c\"", ", \"text\": \"int main() {\\n",
               "  return 0;\\n", "}\\n\"", "}}", "</tool_call>", "<|im_end|>"],
    "agent3": ["Done: ", "main.c", " returns 0.", "<|im_end|>"],
    "long": [WORDS],          # a list: repeated for ever
    "dice": ["I rolled", FACES],  # the last is FACES: one of them at random, for ever
}
FALLBACK = [" some", " known", " text.", "<|im_end|>"]  # what follows any other text

HARMONY_FINAL = ["<|channel|>", "final", "<|message|>"]
HARMONY = {
    "answer": [*HARMONY_FINAL, *GREETING, "<|return|>"],
    "think": ["<|channel|>", "ana", "lysis", "<|message|>", "The user", " greets.", "<|end|>", "<|start|>", "assist", "ant", "<|channel|>", "fi", "nal",
              "<|message|>", "Forty", "-two", ".", "<|return|>"],
    "tool": ["<|channel|>", "anal", "ysis", "<|message|>", "I need", " a tool.", "<|end|>", "<|start|>", "assis", "tant", "<|channel|>", "comm", "entary",
             " to=functions", ".get_weather", " ", "<|constrain|>", "json", "<|message|>", "{\"city\": \"Pa", "ris\"", "}", "<|call|>"],
    "role": [" to=", "functions.get_weather", "<|channel|>", "commentary", " json", "<|message|>", "{\"city\"", ": \"Rome\"}", "<|call|>"],
    "preamble": ["<|channel|>", "commen", "tary", "<|message|>", "First, ", "a plan.", "<|end|>", "<|start|>", "assi", "stant", "<|channel|>", "fin", "al",
                 "<|message|>", "And now", " the answer.", "<|return|>"],
    "result": ["<|channel|>", "f", "inal", "<|message|>", "It is", " 21 ", b"\xc2", b"\xb0", "C in", " Paris.", "<|return|>"],
    "headless": ["<|channel|>", "final", " without a", " message", " token", "<|return|>"],
    "unknown": ["<|channel|>", "mys", "tery", "<|message|>", "What is", " this?", "<|return|>"],
    "twice": ["<|channel|>", "anali", "<|channel|>", "fina", "l", "<|message|>", "Still", " here.", "<|return|>"],
    "stray": ["<|channel|>", "fi", "n", "al", "<|message|>", "before", "<|constrain|>", " after", "<|message|>", " the end", "<|return|>"],
    "badcall": ["<|channel|>", "comment", "ary", " to=fun", "ctions.get_weather", "<|message|>", "{\"city\": ", "[oops", "<|call|>"],
    "bare": ["Just", " text.", "<|return|>"],
    "cut": ["<|channel|>", "f", "ina", "l", "<|message|>", "Look: ", *EMOJI, " done", "<|return|>"],
    "long": ["<|channel|>", "f", "in", "al", "<|message|>", WORDS],
    "empty": ["<|return|>"],
}

WEATHER_PARIS, TIME_PARIS = ("get_weather", {"city": "Paris"}), ("get_time", {"zone": "Europe/Paris", "h24": True})
WEATHER_ROME = ("get_weather", {"city": "Rome"})
WHOLE_PAGE = "".join(PAGE)
HELLO = "".join(GREETING)

# What a client must see: content, reasoning and calls of each scene that ends, when tools are offered.
ANSWERS = {
    "answer": (HELLO, "", []),
    "think": ("Forty-two.", "The user wants a number.", []),
    "mull": ("I saw it.", "Let me see.", []),
    "tool": ("", "", [WEATHER_PARIS, TIME_PARIS]),
    "talk": ("Let me look it up.\n", "", [WEATHER_ROME]),
    "plan": ("", "I need the weather.", [WEATHER_ROME]),
    "order": ("Let me look it up. Then I am done.", "I need the weather.", [WEATHER_ROME]),
    "broken": (" Sorry.", "", [("get_weather", "{\"city\": [")]),  # a call whose arguments are no JSON
    "open": ("<tool_call>{\"name\": \"get_weat", "", []),
    "unknown": ("", "", [("no_such", {})]),
    "cut": ("Look: \U0001f600 done", "", []),
    "bytes": ("a\ufffdb\ufffd(\ufffd", "", []),
    "stop": ("one, two, STOP three", "", []),
    "control": ("safe and sound", "", []),
    "spaces": ("  indented\n\n  text \n", "", []),
    "empty": ("", "", []),
    "page": (WHOLE_PAGE, "", []),
    "thoughts": ("", "Nothing but thoughts", []),
}
HARMONY_ANSWERS = {
    "answer": (HELLO, "", []),
    "think": ("Forty-two.", "The user greets.", []),
    "tool": ("", "I need a tool.", [WEATHER_PARIS]),
    "role": ("", "", [WEATHER_ROME]),
    "cut": ("Look: \U0001f600 done", "", []),
    "empty": ("", "", []),
}
# Broken output: this text must be in the content, and no control token.
HARMONY_FAULTS = {"headless": "without a message token", "unknown": "What is this?", "twice": "Still here.", "stray": "before", "badcall": "[oops",
                  "bare": "Just text.", "preamble": "the answer."}

TEMPLATE = """\
{%- set ns = namespace(word='answer', results=0) -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}
{%- set ns.word = (message.content or 'answer').split(' ')[0] -%}
{%- set ns.results = 0 -%}
{%- elif message.role == 'tool' -%}
{%- set ns.results = ns.results + 1 -%}
{%- endif -%}
{%- endfor -%}
{%- if tools -%}
OPEN_system
# Tools
{{ tools | tojson }}
Answer with <tool_call>{...}</tool_call>.CLOSE
{% endif -%}
{%- for message in messages -%}
OPEN_{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif -%}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{{ call.function | tojson }}
</tool_call>
{%- endfor -%}
CLOSE
{% endfor -%}
{%- if add_generation_prompt -%}
{%- if ns.word == 'agent' and ns.results == 0 -%}{%- set ns.word = 'agent1' -%}
{%- elif ns.word == 'agent' and ns.results == 1 -%}{%- set ns.word = 'agent2' -%}
{%- elif ns.word == 'agent' -%}{%- set ns.word = 'agent3' -%}
{%- elif ns.results > 0 -%}{%- set ns.word = 'result' -%}
{%- elif ns.word == 'effort' -%}{%- set ns.word = 'low' if reasoning_effort is defined and reasoning_effort == 'low' else 'high' -%}
{%- elif ns.word == 'think' and enable_thinking is defined and not enable_thinking -%}{%- set ns.word = 'answer' -%}
{%- endif -%}
BEGIN
{%- endif -%}
"""


def spelled(token):
    return token.encode() if isinstance(token, str) else token


def byte_alphabet():
    """GPT-2's letters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + len(letters) - len(plain)))
    return letters


class Vocabulary:
    def __init__(self, control, marks):
        letters = byte_alphabet()
        self.letters = lambda data: "".join(letters[byte] for byte in data)
        self.ids = {}      # bytes of a token, or the name of an added one: id
        self.control = control
        self.marks = marks  # added tokens that are not special, as Qwen's <think>
        for byte in range(256):
            self.add(bytes([byte]))
        self.merges = []
        for end in range(2, len("assistant") + 1):  # the only word of prompts that is one token
            self.merges.append(("assistant"[:end - 1], "assistant"[end - 1]))
            self.add(b"assistant"[:end])

    def add(self, token):
        key = token if isinstance(token, str) and self.is_added(token) else spelled(token)
        return self.ids.setdefault(key, len(self.ids))

    def is_added(self, token):
        return token in self.control or token in self.marks

    def json(self):
        # Added tokens come after the others, as in the files of models; their ids may be anywhere.
        added = [{"id": id, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                  "special": name in self.control} for name, id in self.ids.items() if isinstance(name, str)]
        vocab = {self.letters(name): id for name, id in self.ids.items() if isinstance(name, bytes)}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
                "post_processor": None, "decoder": level,
                "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                          "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab,
                          "merges": [f"{left} {right}" for left, right in self.merges]}}


class Chains:
    """Who follows whom, and which of the four previous tokens decide where a token has several successors."""

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary
        self.steps = []       # (ids of the previous tokens, nearest first; id; successor)
        self.random = {}      # id: equally likely successors
        self.successors, self.votes, self.classes = {}, {}, {}

    def add(self, before, chain):
        before = [self.vocabulary.add(token) for token in before]
        loop = chain[-1] if isinstance(chain[-1], list) else None
        ids = [self.vocabulary.add(token) for token in (chain[:-1] if loop else chain)]
        if loop == FACES:
            faces = [self.vocabulary.add(token) for token in loop]
            self.random |= {id: faces for id in [ids[-1], *faces]}
        elif loop:
            ring = [self.vocabulary.add(token) for token in loop]
            ids += ring + ring[:OFFSETS + 1]
        all_ids = before + ids
        for at in range(len(before) - 1, len(all_ids) - 1):
            self.steps.append((all_ids[max(0, at - OFFSETS):at][::-1], all_ids[at], all_ids[at + 1]))

    def solve(self, otherwise):
        for _, token, successor in self.steps:
            self.successors.setdefault(token, set()).add(successor)
        for token, chosen in self.random.items():
            self.successors[token] = set(chosen)
        for before, token, successor in self.steps:
            if len(self.successors[token]) > 1 and token not in self.random:
                for offset, earlier in enumerate(before):
                    classes = self.classes.setdefault(offset, {})
                    classes.setdefault(earlier, len(classes))
                    assert len(classes) <= HEAD_DIM, f"too many classes at distance {offset + 1}"
                    self.votes.setdefault((offset, earlier), set()).add(successor)
        for id in range(len(self.vocabulary.ids)):
            self.successors.setdefault(id, {otherwise})
        names = {id: name for name, id in self.vocabulary.ids.items()}
        for before, token, successor in self.steps:
            scores = {one: sum(one in self.votes.get((offset, earlier), ()) for offset, earlier in enumerate(before))
                      for one in self.successors[token]}
            best = max(scores.values())
            if token not in self.random and [one for one in scores if scores[one] == best] != [successor]:
                raise ValueError(f"ambiguous: {[names[one] for one in before]} {names[token]} is followed by {[names[one] for one in scores]}")


class Tensors:
    """Matrices of bf16 that are mostly zero."""

    def __init__(self):
        self.header, self.data = {}, bytearray()

    def add(self, name, rows, columns, entries):
        begin, shape = len(self.data), [rows, columns] if columns else [rows]
        self.data += bytes(2 * rows * (columns or 1))
        for (row, column), value in entries.items():
            rounded = struct.unpack("<I", struct.pack("<f", value))[0] + 0x8000  # to the nearest bf16
            struct.pack_into("<H", self.data, begin + 2 * (row * (columns or 1) + column), rounded >> 16)
        self.header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, len(self.data)]}

    def file(self):
        text = json.dumps(self.header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + bytes(self.data)


def attention(width, constant, slots, chains):
    """Heads that look one, two, three and four tokens back, whatever the tokens are."""
    half, scale = HEAD_DIM // 2, math.sqrt(width / 2)  # RMSNorm multiplies the two ones of an embedding by this
    sharpness = 16.0  # the nearest neighbours of the peak score 35 less
    q, k, v, o = {}, {}, {}, {}
    for offset in range(OFFSETS):
        row = offset * HEAD_DIM
        for pair in range(half):
            angle = -(offset + 1) * 10000.0 ** (-pair / half)
            q[row + pair, constant] = sharpness * math.cos(angle) / scale
            q[row + half + pair, constant] = sharpness * math.sin(angle) / scale
            k[row + pair, constant] = sharpness / scale
        for token, index in chains.classes.get(offset, {}).items():
            v[row + index, token] = 1.0
            o[slots + row + index, row + index] = 1.0 / scale
    return q, k, v, o


def weights_of(chains, width, heads_width):
    size = len(chains.vocabulary.ids)
    constant, slots = size, size + 1
    tensors, layer = Tensors(), "model.layers.0."
    q, k, v, o = attention(width, constant, slots, chains)
    ones = {(row, 0): 1.0 for row in range(width)}
    head = {(successor, token): SUCCESSOR for token, found in chains.successors.items() for successor in found}
    for (offset, token), found in chains.votes.items():
        for successor in found:
            head[successor, slots + offset * HEAD_DIM + chains.classes[offset][token]] = VOTE
    tensors.add("model.embed_tokens.weight", size, width,
                {(id, id): 1.0 for id in range(size)} | {(id, constant): 1.0 for id in range(size)})
    for name in ("input_layernorm", "post_attention_layernorm"):
        tensors.add(f"{layer}{name}.weight", width, 0, ones)
    for name, entries in (("q", q), ("k", k), ("v", v)):
        tensors.add(f"{layer}self_attn.{name}_proj.weight", heads_width, width, entries)
    tensors.add(f"{layer}self_attn.o_proj.weight", width, heads_width, o)
    for name, shape in (("gate", (64, width)), ("up", (64, width)), ("down", (width, 64))):
        tensors.add(f"{layer}mlp.{name}_proj.weight", *shape, {})
    tensors.add("model.norm.weight", width, 0, ones)
    tensors.add("lm_head.weight", size, width, head)
    return tensors.file()


def template_of(scenes, harmony):
    chosen = []
    for word in scenes:
        mark = f"<|to:{word}|>"
        begin = f"{mark}<|start|>assistant" if harmony else f"<|im_start|>assistant\n{mark}" + ("<think>" if word == "mull" else "")
        chosen.append(f"{{%- {'elif' if chosen else 'if'} ns.word == '{word}' -%}}{begin}")
    otherwise = "<|to:answer|><|start|>assistant" if harmony else "<|im_start|>assistant\n<|to:answer|>"
    begin = "\n".join([*chosen, "{%- else -%}" + otherwise, "{%- endif -%}"])
    text = TEMPLATE.replace("BEGIN", begin)
    if harmony:
        return text.replace("OPEN_{{ message.role }}\n", "<|start|>{{ message.role }}<|message|>").replace("OPEN_system\n", "<|start|>system<|message|>").replace("CLOSE\n", "<|end|>").replace("CLOSE", "<|end|>")
    return text.replace("OPEN_", "<|im_start|>").replace("CLOSE", "<|im_end|>")


def write(directory, harmony=False):
    scenes = HARMONY if harmony else SCENES
    ends = ["<|return|>", "<|endoftext|>", "<|call|>"] if harmony else ["<|im_end|>", "<|endoftext|>"]
    control = [*ends, "<|odd|>", *(f"<|to:{word}|>" for word in scenes)]
    control += ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>"] if harmony else ["<|im_start|>"]
    vocabulary = Vocabulary(control, [] if harmony else ["<think>", "</think>", "<tool_call>", "</tool_call>"])
    for name in [*control, *vocabulary.marks]:
        vocabulary.add(name)
    chains = Chains(vocabulary)
    for word, chain in scenes.items():
        mark = f"<|to:{word}|>"
        prompt = ["<|end|>", mark, "<|start|>", "assistant"] if harmony else ["assistant", "\n", mark, *(["<think>"] if word == "mull" else [])]
        chains.add(prompt, chain)
    fallback = [*FALLBACK[:-1], ends[0]]
    chains.add([fallback[0]], fallback[1:])
    chains.solve(otherwise=vocabulary.add(fallback[0]))
    size = len(vocabulary.ids)
    heads_width = OFFSETS * HEAD_DIM
    width = -(-(size + 1 + heads_width) // 64) * 64
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": width, "intermediate_size": 64, "num_hidden_layers": 1,
              "num_attention_heads": OFFSETS, "num_key_value_heads": OFFSETS, "head_dim": HEAD_DIM, "vocab_size": size, "rms_norm_eps": 1e-06,
              "rope_theta": 10000.0, "max_position_embeddings": CONTEXT, "tie_word_embeddings": False, "hidden_act": "silu",
              "eos_token_id": vocabulary.ids[ends[0]], "torch_dtype": "bfloat16"}
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    files = {"config.json": config, "tokenizer.json": vocabulary.json(),
             "generation_config.json": {"eos_token_id": [vocabulary.ids[name] for name in ends], "temperature": 1.0},
             "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": ends[0], "model_max_length": CONTEXT}}
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content, indent=1, ensure_ascii=False))
    (directory / "chat_template.jinja").write_text(template_of(scenes, harmony))
    (directory / "model.safetensors").write_bytes(weights_of(chains, width, heads_width))
    return directory


def raw_text(word, harmony=False):
    """The whole text of a chain without its end, for chains that end."""
    chain = (HARMONY if harmony else SCENES)[word]
    return b"".join(spelled(token) for token in chain[:-1]).decode(errors="replace")


if __name__ == "__main__":
    arguments = [one for one in sys.argv[1:] if one != "--harmony"]
    if len(arguments) != 1:
        sys.exit(__doc__.splitlines()[0])
    write(arguments[0], harmony="--harmony" in sys.argv)
