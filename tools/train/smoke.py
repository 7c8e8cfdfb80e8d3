#!/usr/bin/env python3
"""A quick check on a GPU before a long run: both attentions agree, packing is exact, a step learns, and how fast it is."""
import time

import torch

import mxfp4
from model import Model, Shape, block_masks
from model import stored as model_stored


def main():
    torch.manual_seed(0)
    weight = torch.randn(4, 64, 96, device="cuda")
    blocks, scales = mxfp4.pack(weight)
    stored = mxfp4.unpack(blocks, scales)
    assert torch.equal(stored, mxfp4.rounded(weight)) and torch.equal(mxfp4.rounded(stored), stored)
    for name, parameter in (("random", weight), ("tiny", weight * 1e-4)):
        assert torch.equal(model_stored(parameter), parameter.bfloat16().float()), name
    print("mxfp4: relative error", ((stored - weight).norm() / weight.norm()).item(), flush=True)
    shape = Shape()
    model = Model(shape).cuda()
    with torch.no_grad():
        for layer in model.layers:
            layer.attention.sinks.normal_()
            layer.attention.q.weight.mul_(4)
    tokens = torch.randint(0, shape.vocabulary, (2, 512), device="cuda")
    masks = block_masks(shape, 512, "cuda")
    gradients = []
    for chosen in ((None, None), masks):
        run = torch.compile(lambda t: model(t, chosen)[0]) if chosen[0] is not None else (lambda t: model(t)[0])
        begin = time.time()
        with torch.autocast("cuda", torch.bfloat16):
            logits = run(tokens)
            logits.float().square().mean().backward()
        gradients.append((logits.detach().float(), model.layers[0].attention.sinks.grad.clone(), model.layers[0].attention.k.weight.grad.clone()))
        model.zero_grad()
        print("first run", round(time.time() - begin, 1), "s", flush=True)
    for name, a, b in zip(("logits", "gradient of sinks", "gradient of k"), *gradients):
        difference = ((a - b).norm() / a.norm()).item()
        print(name, "differ by", difference, flush=True)
        assert difference < 0.03


if __name__ == "__main__":
    main()
