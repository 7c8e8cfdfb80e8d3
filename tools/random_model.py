"""Random weights of a true shape, made on the GPU: as files hold them, and as transformers computes on them.

In a mixture of experts, every token chooses its experts by a wide margin: its embedding leans towards directions that
the routers look for. Choices are spread evenly (or unevenly, by `skew`), but rounding to bf16 does not change any of them, so
that results of two programs can be compared through 24 layers. With plain random routers one choice in twenty is a near tie,
and after 24 layers of such choices no two programs agree.
"""
import concurrent.futures
import json
import shutil
import struct

import torch

GROUPS = 6  # sets of router directions; layers share them, each in an order of its own
LEANING, ROUTER_GAIN = 16.0, 1.5
DTYPES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.uint8: "U8"}
CODES = [0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6]


class Weights:
    """`stored` as files hold them, `plain` as transformers computes on them; `routers` by layer, for mixtures."""

    def __init__(self, seed):
        self.random = torch.Generator(device="cuda").manual_seed(seed)
        self.stored, self.plain = {}, {}

    def add(self, name, tensor):
        self.stored[name] = self.plain[name] = tensor

    def draw(self, *shape):
        return torch.randn(shape, generator=self.random, device="cuda", dtype=torch.float32)

    def normal(self, name, shape, deviation):
        self.add(name, (self.draw(*shape) * deviation).to(torch.bfloat16))

    def linear(self, name, rows, cols, bias, gain=1.0):
        self.normal(name + ".weight", (rows, cols), gain * cols ** -0.5)
        if bias:
            self.normal(name + ".bias", (rows,), 0.02)

    def ones(self, name, size):
        self.add(name, torch.ones(size, device="cuda", dtype=torch.bfloat16))

    def mxfp4(self, name, experts, rows, cols, exponent):
        """Codes at random and scales of two neighbouring powers; -8 together deviates by about 1/sqrt(2880)."""
        blocks = torch.randint(0, 256, (experts, rows, cols // 32, 16), generator=self.random, device="cuda", dtype=torch.uint8)
        scales = torch.randint(127 + exponent, 129 + exponent, (experts, rows, cols // 32), generator=self.random, device="cuda",
                               dtype=torch.uint8)
        self.stored[name + "_blocks"], self.stored[name + "_scales"] = blocks, scales
        values = torch.tensor(CODES, device="cuda", dtype=torch.bfloat16)
        pairs = torch.stack((values[(blocks & 15).int()], values[(blocks >> 4).int()]), dim=-1)
        scale = torch.exp2(scales.float() - 127).to(torch.bfloat16)[..., None, None]
        # [experts, rows, cols] on disk, [experts, cols, rows] in transformers
        self.plain[name] = (pairs * scale).reshape(experts, rows, cols).transpose(1, 2).contiguous()
        self.normal(name + "_bias", (experts, rows), 0.02)


def attention(weights, prefix, c, bias, query_gain, out_gain):
    heads, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    weights.linear(prefix + "q_proj", heads, c["hidden_size"], bias, query_gain)
    weights.linear(prefix + "k_proj", kv, c["hidden_size"], bias)
    weights.linear(prefix + "v_proj", kv, c["hidden_size"], bias)
    weights.linear(prefix + "o_proj", c["hidden_size"], heads, bias, out_gain)


def dense_layer(weights, prefix, c):
    attention(weights, prefix + "self_attn.", c, False, 1.0, 1.0)
    weights.linear(prefix + "mlp.gate_proj", c["intermediate_size"], c["hidden_size"], False)
    weights.linear(prefix + "mlp.up_proj", c["intermediate_size"], c["hidden_size"], False)
    weights.linear(prefix + "mlp.down_proj", c["hidden_size"], c["intermediate_size"], False)


def mixture_layer(weights, prefix, c, directions):
    # Queries a little longer, so that a few of 8,192 positions count and not their mean alone.
    attention(weights, prefix + "self_attn.", c, True, 1.4, 0.5)
    weights.normal(prefix + "self_attn.sinks", (c["num_attention_heads"],), 1.0)
    weights.add(prefix + "mlp.router.weight", (ROUTER_GAIN * directions).to(torch.bfloat16))
    weights.normal(prefix + "mlp.router.bias", (c["num_local_experts"],), 0.02)
    experts, width, hidden = c["num_local_experts"], c["hidden_size"], c["intermediate_size"]
    weights.mxfp4(prefix + "mlp.experts.gate_up_proj", experts, 2 * hidden, width, -8)
    weights.mxfp4(prefix + "mlp.experts.down_proj", experts, width, hidden, -9)


def lean(weights, embedding, c, skew):
    """Makes rows lean to `active` directions of every group; returns the directions [groups, experts, width]."""
    experts, width = c["num_local_experts"], c["hidden_size"]
    directions = torch.linalg.qr(weights.draw(width, GROUPS * experts)).Q.T.reshape(GROUPS, experts, width)
    for group in directions:
        noise = torch.rand((c["vocab_size"], experts), generator=weights.random, device="cuda")
        liking = -(-noise.clamp(1e-9, 1 - 1e-7).log()).log() + skew * weights.draw(experts)
        chosen = torch.zeros_like(noise).scatter_(1, liking.topk(c["num_experts_per_tok"]).indices, LEANING)
        embedding += chosen @ group
    return directions


def make_weights(c, seed=1, skew=0.0):
    weights = Weights(seed)
    width, is_mixture, tied = c["hidden_size"], "num_local_experts" in c, c["tie_word_embeddings"]
    # A head three times as large: the logits then deviate by 3, and a distribution has something to say.
    embedding = weights.draw(c["vocab_size"], width) * (3.0 * width ** -0.5 if tied else 1.0)
    directions = lean(weights, embedding, c, skew) if is_mixture else None
    weights.add("model.embed_tokens.weight", embedding.to(torch.bfloat16))
    del embedding
    if not tied:
        head = weights.draw(c["vocab_size"], width) * (3.0 * width ** -0.5)
        if is_mixture:  # which does not see what the embedding leans to: logits are about the layers
            flat = directions.reshape(-1, width)
            head -= (head @ flat.T) @ flat
        weights.add("lm_head.weight", head.to(torch.bfloat16))
        del head
    for layer in range(c["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        weights.ones(prefix + "input_layernorm.weight", width)
        weights.ones(prefix + "post_attention_layernorm.weight", width)
        if is_mixture:
            order = torch.randperm(c["num_local_experts"], generator=weights.random, device="cuda")
            mixture_layer(weights, prefix, c, directions[layer % GROUPS][order])
        else:
            dense_layer(weights, prefix, c)
    weights.ones("model.norm.weight", width)
    return weights


def write_shard(path, tensors):
    header, at = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb", buffering=0) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            rest = memoryview(tensor.contiguous().view(-1).view(torch.uint8).cpu().numpy())
            while rest:  # a write takes no more than 2 GB
                rest = rest[file.write(rest[:1 << 30]):]


def write_model(folder, c, weights, shards=12):
    """A Hugging Face folder, its shards written side by side."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = dict(c)
    if "num_local_experts" in c:
        config["quantization_config"] = {"quant_method": "mxfp4"}
    (folder / "config.json").write_text(json.dumps(config))
    parts, sizes = [{} for _ in range(shards)], [0] * shards
    for name, tensor in sorted(weights.stored.items(), key=lambda item: -item[1].numel() * item[1].element_size()):
        least = sizes.index(min(sizes))
        parts[least][name] = tensor
        sizes[least] += tensor.numel() * tensor.element_size()
    parts = [part for part in parts if part]
    names = [f"model-{i:05}-of-{len(parts):05}.safetensors" for i in range(1, len(parts) + 1)]
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(write_shard, [folder / name for name in names], parts))
    index = {tensor: name for name, part in zip(names, parts) for tensor in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": sum(sizes)}, "weight_map": index}))
    return sum(sizes)
