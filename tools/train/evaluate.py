#!/usr/bin/env python3
"""Lets a stored model speak and computes what it must say.  evaluate.py INFERNO MODEL_FOLDER OUT_FOLDER

OUT gets transcript.json (stories, questions with verdicts, conversations), as the program generates them, and builtin_greedy.json (for the tests):
greedy tokens of transformers in float32, or of model.py where transformers is not installed.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

import torch

import export
import mxfp4
import tensor_file
from chats import harmony
from model import rounds_nothing
from model_ids import ID
from story.grammar import read_lines

STOPS = {ID["<|return|>"], ID["<|endoftext|>"], ID["<|call|>"]}
GREEDY_TOKENS = 64
QUESTIONS = ["dev_questions", "heldout_questions"]


class Speaker:
    def __init__(self, inferno, folder):
        self.inferno, self.folder = inferno, str(folder)

    def said(self, *arguments, stdin=""):
        return subprocess.run([self.inferno, *arguments], input=stdin, capture_output=True, text=True, check=True).stdout

    def prompt(self, text):
        """The token ids of a question in Harmony's form."""
        rendered = re.sub(r"<\|return\|>$", "<|end|>", harmony([("user", text)])) + "<|start|>assistant"
        return json.loads(self.said("tokenize", self.folder, "--json", "--no-special", "--text", rendered))["ids"]

    def decode(self, ids):
        return self.said("detokenize", self.folder, *map(str, ids)).removesuffix("\n")

    def answers(self, conversations, temperature=0.7, seed=0):
        """(text, ended properly) for each conversation, a list of (role, text)."""
        lines = [{"id": number, "messages": [{"role": role, "content": text} for role, text in conversation],
                  "temperature": temperature, "top_p": 0.95, "seed": seed + number, "max_tokens": 420}
                 for number, conversation in enumerate(conversations)]
        printed = self.said("generate", "-m", self.folder, "--batch", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
        rows = sorted(map(json.loads, printed.splitlines()), key=lambda row: row["id"])
        return [(row["text"], row["finish_reason"] == "stop") for row in rows]


def graded(name, given):
    rows = [line.rsplit(" => ", 1) for line in read_lines(name)]
    return [{"question": q, "answer": text, "right": bool(re.search(wanted, text)), "ended": ended}
            for (q, wanted), (text, ended) in zip(rows, given)]


def single_turns(speaker, temperature, seed):
    """Stories and questions, all in one batch."""
    sets = {"stories": read_lines("eval_stories.txt")}
    for name in QUESTIONS:
        sets[name] = [line.rsplit(" => ", 1)[0] for line in read_lines(name + ".txt")]
    asked = [text for texts in sets.values() for text in texts]
    given = iter(speaker.answers([[("user", text)] for text in asked], temperature, seed))
    result = {name: [next(given) for _ in texts] for name, texts in sets.items()}
    graded_sets = {name: graded(name + ".txt", result[name]) for name in QUESTIONS}
    graded_sets["stories"] = [{"request": r, "story": text, "words": len(text.split()), "ended": ended}
                              for r, (text, ended) in zip(sets["stories"], result["stories"])]
    return graded_sets


def talks(speaker, seed):
    talks_ = [line.split(" || ") for line in read_lines("eval_other.txt")]
    said = [[] for _ in talks_]
    for turn in range(max(map(len, talks_))):
        active = [i for i, talk in enumerate(talks_) if turn < len(talk)]
        for i in active:
            said[i].append(("user", talks_[i][turn]))
        for i, (text, _) in zip(active, speaker.answers([said[i] for i in active], seed=seed + turn)):
            said[i].append(("assistant", text))
    return said


def transformers_model(folder):
    """transformers' own gpt-oss with the stored weights in float32."""
    from transformers import GptOssConfig, GptOssForCausalLM
    keys = json.loads((folder / "config.json").read_text())
    for name in ("quantization_config", "torch_dtype", "architectures", "model_type"):
        keys.pop(name)
    settings = GptOssConfig(**keys)
    settings._attn_implementation = "eager"
    model = GptOssForCausalLM(settings).float().eval()
    tensors, state = tensor_file.load(folder / "model.safetensors"), {}
    for name, tensor in tensors.items():
        if name.endswith("_blocks"):
            base = name[:-len("_blocks")]
            state[base] = mxfp4.unpack(tensor, tensors[base + "_scales"]).transpose(1, 2).contiguous()
        elif not name.endswith("_scales"):
            state[name] = tensor.float()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all("rotary" in name for name in missing), (missing, unexpected)
    return lambda tokens: model(tokens).logits


def reference(folder):
    """Who computes the logits, and a function from tokens to logits in float32."""
    rounds_nothing()  # the weights are as stored
    ours = export.load(folder)
    try:
        theirs = transformers_model(folder)
    except ImportError:
        return "model.py, float32 on the weights as stored", lambda tokens: ours(tokens)[0]
    probe = torch.arange(64)[None] * 31 % ours.shape.vocabulary
    distance = ((theirs(probe) - ours(probe)[0]).norm() / ours(probe)[0].norm()).item()
    print(f"logits of model.py against transformers: relative distance {distance:.1e}", flush=True)
    return "transformers, float32 on the weights as stored", theirs


@torch.no_grad()
def greedy(speaker, folder):
    """Greedy continuations: for each prompt ids, continuation and the smallest distance to the next best."""
    made_by, logits = reference(folder)
    rows = []
    for text in read_lines("greedy_prompts.txt"):
        prompt, reply, margins = speaker.prompt(text), [], []
        while len(reply) < GREEDY_TOKENS and not STOPS & set(reply):
            best = logits(torch.tensor([prompt + reply]))[0, -1].topk(2)
            margins.append((best.values[0] - best.values[1]).item())
            reply.append(best.indices[0].item())
        rows.append({"prompt": text, "ids": prompt, "greedy": reply, "min_margin": round(min(margins), 5), "text": speaker.decode(reply)})
    return {"made_by": made_by, "prompts": rows}


def main():
    inferno, folder, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    speaker, begin = Speaker(inferno, folder), time.time()
    settings = {"at 0.7": (0.7, 1), "greedy": (0.0, 0)}
    result = {name: single_turns(speaker, *setting) for name, setting in settings.items()}
    result["talks"] = talks(speaker, 5)
    out.mkdir(parents=True, exist_ok=True)
    (out / "transcript.json").write_text(json.dumps(result, indent=1, ensure_ascii=False))
    for name in settings:
        for kind in QUESTIONS:
            rows = result[name][kind]
            print(f"{name}, {kind}: {sum(r['right'] for r in rows)} of {len(rows)} right, {sum(r['ended'] for r in rows)} ended", flush=True)
        rows = result[name]["stories"]
        print(f"{name}, stories: words {sorted(r['words'] for r in rows)}, {sum(r['ended'] for r in rows)} ended", flush=True)
    found = greedy(speaker, folder)
    (out / "builtin_greedy.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(f"margins {[r['min_margin'] for r in found['prompts']]}; {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
