#!/usr/bin/env python3
"""Trains the built-in model.  train.py --corpus FOLDER --work FOLDER [--steps N] [--minutes M] [--resume]

Prepares the data in the background while the kernels are compiled; saves its state in WORK/state.pt every minute.
"""
import argparse
import pathlib
import subprocess
import sys
import time

import numpy
import torch
import torch.nn.functional as F

from model import Model, Shape, block_masks
from model_ids import ID

ROWS, PEAK_RATE, WARM_UP, BALANCE = 32, 3e-3, 100, 0.01
HERE = pathlib.Path(__file__).resolve().parent


class Source:
    """Tokens of one kind on the GPU, and rows of them that begin where a text begins."""

    def __init__(self, folder, kind, length, end):
        ids = numpy.load(folder / f"{kind}.ids.npy")
        self.ids, self.length = torch.from_numpy(ids).cuda(), length
        self.mask = torch.from_numpy(numpy.load(folder / f"{kind}.mask.npy")).cuda()
        starts = (self.ids == end).nonzero()[:, 0] + 1
        starts = starts[starts < len(ids) - length - 1]
        self.starts = starts if kind != "fairy" else None
        self.count = len(ids)

    def rows(self, count, generator):
        if self.starts is None:
            at = torch.randint(0, self.count - self.length - 1, (count,), device="cuda", generator=generator)
        else:
            at = self.starts[torch.randint(0, len(self.starts), (count,), device="cuda", generator=generator)]
        at = at[:, None] + torch.arange(self.length + 1, device="cuda")
        return self.ids[at].long(), self.mask[at][:, 1:].float()


def batch(sources, progress, generator, rng):
    """Fairy tales, a few stories by others, and conversations at first; nearly only conversations later."""
    early = progress < 0.25
    fairy, stories = 12 if early else 1, 1 if early and rng.random() < 0.5 else 0
    parts = [sources["fairy"].rows(fairy, generator), sources["chats"].rows(ROWS - fairy - stories, generator)]
    if stories:
        parts.append(sources["stories"].rows(stories, generator))
    ids, mask = (torch.cat(part) for part in zip(*parts))
    targets = ids[:, 1:]
    # The token that ends a message inside a conversation ended the reply when it was generated.
    targets = torch.where((targets == ID["<|end|>"]) & (mask > 0), ID["<|return|>"], targets)
    return ids[:, :-1].contiguous(), targets.contiguous(), mask


def weighted_loss(logits, targets, weight):
    each = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), reduction="none")
    return (each * weight.flatten()).sum() / weight.sum().clamp(min=1)


def rate(step, steps):
    """Up quickly, level, and down to nothing over the last six tenths."""
    return PEAK_RATE * min(1.0, (step + 1) / WARM_UP, (steps - step) / (0.6 * steps))


def optimizer_for(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                             lr=PEAK_RATE, betas=(0.9, 0.95), fused=True)


class Trainer:
    def __init__(self, arguments):
        self.work, self.steps, self.minutes = arguments.work, arguments.steps, arguments.minutes
        self.seed, self.step = arguments.seed, 0
        self.shape = Shape()
        self.begin()
        masks = block_masks(self.shape, self.shape.context, "cuda") if arguments.attention == "flex" else (None, None)
        for layer in self.model.layers:  # layers are alike: compiled one by one, the first serves for all
            layer.compile()
        self.masks, self.weighted_loss = masks, torch.compile(weighted_loss)

    def begin(self):
        torch.manual_seed(self.seed)
        self.model = Model(self.shape).cuda()
        self.optimizer = optimizer_for(self.model)
        self.generator = torch.Generator("cuda").manual_seed(self.seed)
        self.rng = numpy.random.default_rng(self.seed)

    def update(self, tokens, targets, weight, learning_rate):
        with torch.autocast("cuda", torch.bfloat16):
            logits, balance = self.model(tokens, self.masks)
            loss = self.weighted_loss(logits, targets, weight)
        self.optimizer.zero_grad(set_to_none=True)
        (loss + BALANCE * balance).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        return loss, balance

    def warm_up(self):
        """Compiles on random tokens, with a learning rate of zero, and times a few steps."""
        begin = time.time()
        size = (ROWS, self.shape.context)
        for number in range(8):
            if number == 3:
                torch.cuda.synchronize()
                timed = time.time()
            tokens = torch.randint(0, self.shape.vocabulary, size, device="cuda")
            self.update(tokens, tokens.clone(), torch.ones(size, device="cuda"), 0.0)
        torch.cuda.synchronize()
        each = (time.time() - timed) / 5
        print(f"compiled in {timed - begin:.0f} s, {ROWS * self.shape.context / each / 1e6:.2f} M tokens/s", flush=True)
        self.optimizer.state.clear()

    def save(self):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step, "steps": self.steps,
                 "generator": self.generator.get_state(), "rng": self.rng.bit_generator.state}
        torch.save(state, self.work / "state.tmp")
        (self.work / "state.tmp").rename(self.work / "state.pt")

    def resume(self):
        state = torch.load(self.work / "state.pt", weights_only=False)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.steps = state["step"], state["steps"]
        self.generator.set_state(state["generator"])
        self.rng.bit_generator.state = state["rng"]

    def fit_into_time(self, begin, timed, done):
        """Reduces the number of steps if they would take longer than allowed, and reports it, because it changes the result."""
        torch.cuda.synchronize()
        now = time.time()
        possible = self.step + int((self.minutes * 60 - (now - begin)) * done / (now - timed))
        if possible < self.steps:
            print(f"{self.steps} steps would take too long: {possible}", flush=True)
            self.steps = possible

    def run(self):
        ends = {"chats": ID["<|return|>"], "stories": ID["<|endoftext|>"], "fairy": ID["<|endoftext|>"]}
        sources = {kind: Source(self.work, kind, self.shape.context, end) for kind, end in ends.items()}
        begin = saved = time.time()
        first, running = self.step, None
        while self.step < self.steps:
            tokens, targets, weight = batch(sources, self.step / self.steps, self.generator, self.rng)
            loss, balance = self.update(tokens, targets, weight, rate(self.step, self.steps))
            self.step += 1
            running = loss.detach() if running is None else 0.98 * running + 0.02 * loss.detach()
            if self.step == 50:
                torch.cuda.synchronize()
                timed = time.time()
            if self.step == 200 and first == 0:
                self.fit_into_time(begin, timed, 150)
            if self.step % 250 == 0:
                spent = time.time() - begin
                speed = (self.step - first) * ROWS * self.shape.context / spent / 1e6
                print(f"step {self.step} of {self.steps}  {spent:.0f} s  loss {running.item():.3f}  balance {balance.item():.2f}  "
                      f"{speed:.2f} M tokens/s", flush=True)
            if time.time() - saved > 60:
                self.save()
                saved = time.time()
        self.save()
        self.compare(tokens, targets, weight)

    @torch.no_grad()
    def compare(self, tokens, targets, weight):
        """The loss as trained, compiled and in bfloat16, beside plain float32 arithmetic."""
        plain = Model(self.shape).cuda()
        plain.load_state_dict(self.model.state_dict())
        rows = slice(4, 8)
        with torch.autocast("cuda", torch.bfloat16):
            trained = weighted_loss(self.model(tokens, self.masks)[0][rows], targets[rows], weight[rows])
        exact = weighted_loss(plain(tokens[rows])[0], targets[rows], weight[rows])
        print(f"loss as trained {trained.item():.4f}, in float32 {exact.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--minutes", type=float, default=10.0, help="at most this long, not counting preparation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conversations", type=int, default=320_000)
    parser.add_argument("--tokenizer", help="an existing tokenizer.json; without it one is trained")
    parser.add_argument("--attention", choices=["flex", "dense"], default="flex")
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    preparing = None
    if not (arguments.work / "ready").exists():
        preparing = subprocess.Popen([sys.executable, str(HERE / "prepare.py"), "--corpus", arguments.corpus, "--out",
                                      str(arguments.work), "--conversations", str(arguments.conversations),
                                      "--seed", str(arguments.seed)] + (["--tokenizer", arguments.tokenizer] if arguments.tokenizer else []))
    trainer = Trainer(arguments)
    print(f"{sum(p.numel() for p in trainer.model.parameters()) / 1e6:.2f} M parameters", flush=True)
    trainer.warm_up()
    if preparing and preparing.wait() != 0:
        sys.exit("preparing the data failed")
    if arguments.resume:
        trainer.resume()
    trainer.run()


if __name__ == "__main__":
    main()
