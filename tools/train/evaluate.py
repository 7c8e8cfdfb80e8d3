#!/usr/bin/env python3
"""Generates answers with a stored model and compares it with transformers.  evaluate.py MODEL_FOLDER OUT_FOLDER

OUT gets transcript.json (stories, questions with verdicts, conversations) and builtin_greedy.json (for the tests).
"""
import json
import pathlib
import random
import re
import sys
import time

import torch
from tokenizers import Tokenizer

import export
import mxfp4
from chats import harmony, system_text
from model_ids import ID
from story.grammar import read_lines

STOPS = {ID["<|return|>"], ID["<|endoftext|>"], ID["<|call|>"]}
GREEDY_TOKENS = 64
QUESTIONS = ["dev_questions", "heldout_questions"]


class Speaker:
    def __init__(self, folder, device):
        self.model = export.load(folder).to(device)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.device = device

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    @torch.no_grad()
    def generate(self, prompts, limit, temperature=0.0, top_p=0.95, seed=0):
        """Continuations of token lists, all at once; each ends with its stop token if it came to one."""
        generator = torch.Generator(self.device).manual_seed(seed)
        lengths = torch.tensor([len(p) for p in prompts], device=self.device)
        room = self.model.shape.context - int(lengths.max())
        tokens = torch.zeros(len(prompts), int(lengths.max()) + min(limit, room), dtype=torch.long, device=self.device)
        for row, prompt in enumerate(prompts):
            tokens[row, :len(prompt)] = torch.tensor(prompt)
        rows, done = torch.arange(len(prompts), device=self.device), torch.zeros(len(prompts), dtype=torch.bool, device=self.device)
        stops, begin = torch.tensor(sorted(STOPS), device=self.device), lengths.clone()
        for _ in range(min(limit, room)):
            at = rows[~done]
            logits = self.model(tokens[at, :int(lengths[at].max())])[0][torch.arange(len(at), device=self.device), lengths[at] - 1].float()
            chosen = logits.argmax(-1) if temperature == 0 else self._sample(logits / temperature, top_p, generator)
            tokens[at, lengths[at]] = chosen
            lengths[at] += 1
            done[at] = torch.isin(chosen, stops)
            if done.all():
                break
        return [tokens[row, begin[row]:lengths[row]].tolist() for row in range(len(prompts))]

    @staticmethod
    def _sample(logits, top_p, generator):
        shares, order = logits.softmax(-1).sort(-1, descending=True)
        shares = shares.masked_fill(shares.cumsum(-1) - shares > top_p, 0)
        return order.gather(-1, torch.multinomial(shares, 1, generator=generator))[:, 0]

    def prompt(self, messages, system=None):
        text = harmony(messages, system) if messages else ""
        return self.encode(re.sub(r"<\|return\|>$", "<|end|>", text) + "<|start|>assistant")

    def answers(self, conversations, limit=420, temperature=0.7, seed=0, system=None):
        """(text, ended properly) for each conversation."""
        found = []
        for ids in self.generate([self.prompt(c, system) for c in conversations], limit, temperature, seed=seed):
            text = self.tokenizer.decode(ids, skip_special_tokens=False)
            proper = text.startswith("<|channel|>final<|message|>") and text.endswith("<|return|>")
            found.append((re.sub(r"^<\|channel\|>final<\|message\|>|<\|\w+\|>$", "", text), proper))
        return found


def graded(name, given):
    rows = [line.rsplit(" => ", 1) for line in read_lines(name)]
    return [{"question": q, "answer": text, "right": bool(re.search(wanted, text)), "ended": ended}
            for (q, wanted), (text, ended) in zip(rows, given)]


def single_turns(speaker, temperature, seed, system=None):
    """Stories and questions, all in one batch."""
    sets = {"stories": read_lines("eval_stories.txt")}
    for name in QUESTIONS:
        sets[name] = [line.rsplit(" => ", 1)[0] for line in read_lines(name + ".txt")]
    asked = [text for texts in sets.values() for text in texts]
    given = iter(speaker.answers([[("user", text)] for text in asked], temperature=temperature, seed=seed, system=system))
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
    from safetensors.torch import load_file
    from transformers import GptOssConfig, GptOssForCausalLM
    keys = json.loads((folder / "config.json").read_text())
    for name in ("quantization_config", "torch_dtype", "architectures", "model_type"):
        keys.pop(name)
    settings = GptOssConfig(**keys)
    settings._attn_implementation = "eager"
    model = GptOssForCausalLM(settings).float().eval()
    tensors, state = load_file(str(folder / "model.safetensors")), {}
    for name, tensor in tensors.items():
        if name.endswith("_blocks"):
            base = name[:-len("_blocks")]
            state[base] = mxfp4.unpack(tensor, tensors[base + "_scales"]).transpose(1, 2).contiguous()
        elif not name.endswith("_scales"):
            state[name] = tensor.float()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all("rotary" in name for name in missing), (missing, unexpected)
    return model


def greedy(speaker, folder, device):
    """Greedy continuations with transformers' margins: for each prompt ids, continuation and the smallest distance to the next best."""
    reference = transformers_model(folder).to(device)
    prompts = [speaker.prompt([("user", text)]) for text in read_lines("greedy_prompts.txt")]
    rows, worst = [], 0.0
    for text, prompt, reply in zip(read_lines("greedy_prompts.txt"), prompts, speaker.generate(prompts, GREEDY_TOKENS)):
        with torch.no_grad():
            theirs = reference(torch.tensor([prompt + reply], device=device)).logits[0].float()
            ours = speaker.model(torch.tensor([prompt + reply], device=device))[0][0].float()
        worst = max(worst, ((theirs - ours).norm() / theirs.norm()).item())
        steps = theirs[len(prompt) - 1:-1]
        best = steps.topk(2, -1)
        assert best.indices[:, 0].tolist() == reply, f"transformers continues {text!r} differently"
        rows.append({"prompt": text, "ids": prompt, "greedy": reply, "min_margin": round((best.values[:, 0] - best.values[:, 1]).min().item(), 5),
                     "text": speaker.tokenizer.decode(reply, skip_special_tokens=False)})
    print(f"logits against transformers in float32: relative distance {worst:.1e}", flush=True)
    return rows


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("highest")
    speaker, begin = Speaker(folder, device), time.time()
    settings = {"at 0.7": (0.7, 1, None), "greedy, with gpt-oss's system message": (0.0, 0, system_text(random.Random(1)))}
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
    rows = greedy(speaker, folder, device)
    (out / "builtin_greedy.json").write_text(json.dumps({"made_by": "transformers, float32 on the weights as stored", "prompts": rows},
                                                        indent=1, ensure_ascii=False) + "\n")
    print(f"margins {[r['min_margin'] for r in rows]}; {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
