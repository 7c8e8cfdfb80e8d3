#!/usr/bin/env python3
"""Teaches a stored model new answers on a CPU, in half an hour.  finetune.py INFERNO MODEL_FOLDER OUT --minutes M

Needs PyTorch and numpy only: `inferno tokenize` encodes the text. Conversations come from chats.py: questions about the program, and as many
stories, small talk and refusals as keep the model from forgetting them. OUT/model gets the result, at every checkpoint and at the end.
"""
import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import time

import torch
import torch.nn.functional as F

import chats
import export
import model as architecture
import mxfp4
from model_ids import ID

STEP_TOKENS, PEAK_RATE, WARM_UP, BALANCE, KEPT_LAYERS, BEGINNING = 1024, 1e-3, 20, 0.01, 3, 12
# Lengths of rows; a conversation is padded to the next, so that little is computed in vain.
LENGTHS = [24, 28, 32, 36, 40, 48, 56, 64, 80, 104, 128, 144, 160, 192, 224, 256, 320, 384]


def encode(inferno, texts):
    """The tokens of conversations, each of which ends with <|return|>."""
    done = subprocess.run([inferno, "tokenize", "builtin", "--json", "--no-special"], input="".join(texts).encode(), capture_output=True, check=True)
    rows, row = [], []
    for token in json.loads(done.stdout)["ids"]:
        row.append(token)
        if token == ID["<|return|>"]:
            rows.append(row)
            row = []
    assert len(rows) == len(texts)
    return rows


def conversations(inferno, tokens, seed):
    """Enough conversations for so many tokens, those that fit a row."""
    rng, rows, total = random.Random(seed), [], 0
    while total < tokens:
        texts = [chats.framed(chats.refresher(rng), rng, share=0.1) for _ in range(4000)]
        for row in encode(inferno, texts):
            if len(row) <= LENGTHS[-1] and total < tokens:
                rows.append(begun(row, rng))
                total += len(rows[-1])
    return rows


def begun(row, rng):
    """Of most short answers only the beginning, which decides what they say: the rest is soon known by heart."""
    answer = len(row) - row[::-1].index(ID["<|message|>"])
    return row[:answer + BEGINNING] if len(row) - answer < 60 and rng.random() < 0.75 else row


def steps(rows, seed):
    """Rows in steps of about STEP_TOKENS, each with its share of every length, in batches of equal length."""
    random.Random(seed).shuffle(rows)
    step, size = {}, 0
    for row in rows:
        length = next(length for length in LENGTHS if length >= len(row))
        step.setdefault(length, []).append(row)
        size += length
        if size >= STEP_TOKENS:
            yield list(step.items())
            step, size = {}, 0


def padded(rows, length, assistant):
    """Tokens, targets, and how much each target counts: short answers twice, what others say nothing."""
    tokens, weight = torch.zeros(len(rows), length, dtype=torch.long), torch.zeros(len(rows), length)
    for at, row in enumerate(rows):
        tokens[at, :len(row)] = torch.tensor(row)
        starts = [i for i, token in enumerate(row) if token == ID["<|start|>"]] + [len(row)]
        for begin, end in zip(starts, starts[1:]):
            if row[begin + 1] == assistant:
                weight[at, begin + 2:end] = 2 if end - begin < 80 else 1
    targets = torch.where((tokens == ID["<|end|>"]) & (weight > 0), ID["<|return|>"], tokens)
    return tokens[:, :-1], targets[:, 1:], weight[:, 1:]


def routed(self, x):
    """Experts.forward with only the experts that a token has chosen, which is faster on a CPU."""
    shape, limit = self.shape, self.shape.limit
    flat = x.reshape(-1, shape.hidden)
    scores = self.router(flat)
    best, chosen = scores.topk(shape.active, -1)
    order = chosen.flatten().argsort()
    token, counts = order // shape.active, torch.bincount(chosen.flatten(), minlength=shape.experts)
    parts = []
    for expert, part in enumerate(flat[token].split(counts.tolist())):
        wide = F.linear(part, self.gate_up[expert], self.gate_up_bias[expert]).view(-1, shape.expert_hidden, 2)
        gate, linear = wide[..., 0].clamp(max=limit), wide[..., 1].clamp(-limit, limit)
        parts.append(F.linear(gate * torch.sigmoid(1.702 * gate) * (linear + 1), self.down[expert], self.down_bias[expert]))
    mixed = torch.cat(parts) * best.softmax(-1).flatten()[order].unsqueeze(-1)
    out = torch.zeros_like(flat).index_add(0, token, mixed)
    balance = shape.experts * (counts / order.numel() * scores.softmax(-1).mean(0)).sum()
    return out.view(x.shape), balance


class Tuner:
    """The model holds weights as they will be stored; the optimizer moves exact ones, with the gradients of the stored."""

    def __init__(self, folder, threads):
        architecture.rounds_nothing()  # `store` does, once for each step
        architecture.Experts.forward = routed
        # Batches in threads of their own wait for each other once in a step, threads of one product always.
        torch.set_num_threads(1)
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.folder, self.done = folder, 0
        self.model = export.load(folder).train()
        # Nothing new has to be learned about words: the embedding and the first layers stay, which saves a fifth of the time.
        kept = ("embedding.", *(f"layers.{layer}." for layer in range(KEPT_LAYERS)))
        self.stored = {name: weight for name, weight in self.model.named_parameters() if not name.startswith(kept)}
        for name, weight in self.model.named_parameters():
            weight.requires_grad_(name in self.stored)
        self.exact = {name: weight.detach().clone().requires_grad_() for name, weight in self.stored.items()}
        self.optimizer = torch.optim.AdamW(self.exact.values(), lr=PEAK_RATE, betas=(0.9, 0.95), weight_decay=0.0)

    def update(self, batches, progress):
        """One step; progress goes from 0 to 1 and takes the learning rate down."""
        counted = sum(weight.sum().item() for _, _, weight in batches)
        everything = sum(tokens.numel() for tokens, _, _ in batches)

        def gradients(batch):
            tokens, targets, weight = batch
            hidden, balance = self.model.hidden(tokens)
            learned = weight > 0
            each = F.cross_entropy(self.model.head(hidden[learned]), targets[learned], reduction="none")
            loss = (each * weight[learned]).sum() / counted
            (loss + BALANCE * balance * tokens.numel() / everything).backward()
            return loss.item()

        loss = sum(self.pool.map(gradients, sorted(batches, key=lambda batch: -batch[0].numel())))
        torch.nn.utils.clip_grad_norm_(self.stored.values(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = PEAK_RATE * min((self.done + 1) / WARM_UP, 1 - progress)
        for name, weight in self.stored.items():
            self.exact[name].grad, weight.grad = weight.grad, None
        self.optimizer.step()
        self.done += 1
        list(self.pool.map(self.store, self.stored))
        return loss

    @torch.no_grad()
    def store(self, name):
        packed, exact = name.endswith((".gate_up", ".down")), self.exact[name]
        self.stored[name].copy_(mxfp4.rounded(exact) if packed else exact.to(torch.bfloat16).float())

    def write(self, out):
        export.write(self.model.state_dict(), self.model.shape, self.folder / "tokenizer.json", out / "model")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inferno", help="the program, which encodes the text")
    parser.add_argument("folder", type=pathlib.Path, help="the model to begin with")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=2_500_000, help="to have ready; as many are used as there is time for")
    parser.add_argument("--minutes", type=float, default=35.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", type=float, default=5.0, help="minutes between two checkpoints")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    rows = conversations(arguments.inferno, arguments.tokens, arguments.seed)
    plan = list(steps(rows, arguments.seed))
    (assistant,) = {row[i - 1] for row in rows for i, token in enumerate(row) if token == ID["<|channel|>"]}
    print(f"{len(rows)} conversations, {sum(map(len, rows))} tokens, {len(plan)} steps", flush=True)
    tuner, running, begin = Tuner(arguments.folder, arguments.threads), None, time.time()
    saved, computed = begin, 0
    for step in plan:
        batches = [padded(rows, length, assistant) for length, rows in step]
        progress = max(tuner.done / len(plan), (time.time() - begin) / (60 * arguments.minutes))
        if progress >= 1:
            break
        loss = tuner.update(batches, progress)
        computed += sum(tokens.numel() for tokens, _, _ in batches)
        running = loss if running is None else 0.9 * running + 0.1 * loss
        if tuner.done % 10 == 0:
            spent = time.time() - begin
            print(f"step {tuner.done} of {len(plan)}  {spent:.0f} s  loss {running:.3f}  {computed / spent:.0f} tokens/s", flush=True)
        if time.time() - saved > 60 * arguments.checkpoint:
            tuner.write(arguments.out)
            saved = time.time()
    tuner.write(arguments.out)


if __name__ == "__main__":
    main()
