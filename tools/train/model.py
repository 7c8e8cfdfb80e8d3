"""gpt-oss's architecture in PyTorch, small: what is trained here is what transformers and Inferno compute.

All experts are computed for every token and the unchosen ones weighted with zero: at this size that is faster than
gathering. `attention="flex"` needs a GPU and torch.compile; `"dense"` runs anywhere and is the reference.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

import mxfp4

try:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError:  # PyTorch before 2.5: dense attention only
    create_block_mask = flex_attention = None


@dataclasses.dataclass(frozen=True)
class Shape:
    vocabulary: int = 3584
    hidden: int = 256
    layers: int = 8
    heads: int = 8
    kv_heads: int = 2
    head_size: int = 32
    experts: int = 8
    active: int = 4
    expert_hidden: int = 192
    window: int = 128
    context: int = 2048
    limit: float = 7.0
    epsilon: float = 1e-5
    theta: float = 150000.0
    yarn_factor: float = 4.0
    yarn_original: int = 512
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def windowed(self, layer):
        return layer % 2 == 0


def stored(weight):
    """The weight as bfloat16 keeps it, straight through for the gradient.

    On the bits, because compilers take a conversion there and back for nothing.
    """
    bits = weight.detach().view(torch.int32)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000
    return weight + (bits.view(torch.float32) - weight.detach())


def rounds_nothing():
    """For weights that are already as they are stored: the forward pass computes the same without rounding them again."""
    global stored
    stored = mxfp4.fake = lambda weight: weight


def rotary_tables(shape, length):
    half, dim = shape.head_size // 2, shape.head_size
    frequency = shape.theta ** (torch.arange(0, dim, 2).float() / dim)

    def corner(turns):
        return dim * math.log(shape.yarn_original / (turns * 2 * math.pi)) / (2 * math.log(shape.theta))

    low, high = max(corner(shape.beta_fast), 0.0), min(corner(shape.beta_slow), dim - 1.0)
    keep = 1 - ((torch.arange(half).float() - low) / (high - low)).clamp(0, 1)
    inverse = (1 - keep) / (shape.yarn_factor * frequency) + keep / frequency
    angles = torch.arange(length).float()[:, None] * inverse[None]
    scale = 0.1 * math.log(shape.yarn_factor) + 1
    return angles.cos() * scale, angles.sin() * scale


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Norm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(shape.hidden)), shape.epsilon

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * stored(self.weight)


class Linear(nn.Linear):
    def forward(self, x):
        return F.linear(x, stored(self.weight), None if self.bias is None else stored(self.bias))


class Attention(nn.Module):
    def __init__(self, shape, layer):
        super().__init__()
        self.shape, self.window = shape, shape.window if shape.windowed(layer) else None
        width, kv_width = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        self.q, self.k, self.v = (Linear(shape.hidden, n) for n in (width, kv_width, kv_width))
        self.o = Linear(width, shape.hidden)
        self.sinks = nn.Parameter(torch.zeros(shape.heads))
        for linear, std in ((self.q, 0.04), (self.k, 0.04), (self.v, 0.04), (self.o, 0.04 / math.sqrt(2 * shape.layers))):
            nn.init.normal_(linear.weight, std=std)
            nn.init.zeros_(linear.bias)

    def forward(self, x, cos, sin, block_mask):
        batch, length, _ = x.shape
        shape = self.shape

        def split(y, heads):
            return y.view(batch, length, heads, shape.head_size).transpose(1, 2)

        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        q = rotate(split(self.q(x), shape.heads), cos, sin)
        k = rotate(split(self.k(x), shape.kv_heads), cos, sin)
        v = split(self.v(x), shape.kv_heads)
        if block_mask is None:
            out = self.dense(q, k, v)
        else:
            q, k, v = (y.to(torch.bfloat16) for y in (q, k, v))
            out, total = flex_attention(q, k, v, block_mask=block_mask, enable_gqa=True, return_lse=True)
            # One more key with a score of its own and nothing to give.
            out = out * torch.sigmoid(total - stored(self.sinks)[None, :, None]).unsqueeze(-1).to(out.dtype)
        return self.o(out.transpose(1, 2).reshape(batch, length, -1).to(x.dtype))

    def dense(self, q, k, v):
        groups = self.shape.heads // self.shape.kv_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        length = q.shape[2]
        at = torch.arange(length, device=q.device)
        seen = at[None, :] <= at[:, None]
        if self.window:
            seen &= at[None, :] > at[:, None] - self.window
        scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(self.shape.head_size)
        scores = scores.masked_fill(~seen, -1e30)
        sinks = stored(self.sinks)[None, :, None, None].expand(q.shape[0], -1, length, 1)
        return torch.cat([scores, sinks], -1).softmax(-1)[..., :-1].to(v.dtype) @ v


class Experts(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.router = Linear(shape.hidden, shape.experts)
        nn.init.normal_(self.router.weight, std=0.04)
        nn.init.zeros_(self.router.bias)
        e, f, h = shape.experts, shape.expert_hidden, shape.hidden
        self.gate_up = nn.Parameter(torch.randn(e, 2 * f, h) * 0.04)
        self.gate_up_bias = nn.Parameter(torch.zeros(e, 2 * f))
        self.down = nn.Parameter(torch.randn(e, h, f) * 0.06 / math.sqrt(2 * shape.layers))
        self.down_bias = nn.Parameter(torch.zeros(e, h))

    def forward(self, x):
        batch, length, hidden = x.shape
        e, f, limit = self.shape.experts, self.shape.expert_hidden, self.shape.limit
        x = x.reshape(-1, hidden)
        scores = self.router(x).float()
        best, chosen = scores.topk(self.shape.active, -1)
        weight = torch.zeros_like(scores).scatter(1, chosen, best.softmax(-1))
        wide = F.linear(x, mxfp4.fake(self.gate_up).reshape(e * 2 * f, hidden), stored(self.gate_up_bias).reshape(-1))
        mix = weight.to(wide.dtype)
        wide = wide.view(-1, e, f, 2)
        gate, linear = wide[..., 0].clamp(max=limit), wide[..., 1].clamp(-limit, limit)
        inner = gate * torch.sigmoid(1.702 * gate) * (linear + 1) * mix.unsqueeze(-1)
        down = mxfp4.fake(self.down).transpose(0, 1).reshape(hidden, e * f)
        out = F.linear(inner.reshape(-1, e * f), down) + mix @ stored(self.down_bias)
        balance = e * ((weight > 0).float().mean(0) / self.shape.active * scores.softmax(-1).mean(0)).sum()
        return out.view(batch, length, hidden), balance


class Layer(nn.Module):
    def __init__(self, shape, layer):
        super().__init__()
        self.windowed = shape.windowed(layer)
        self.before_attention, self.before_experts = Norm(shape), Norm(shape)
        self.attention, self.experts = Attention(shape, layer), Experts(shape)

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.before_attention(x), cos, sin, mask)
        out, balance = self.experts(self.before_experts(x))
        return x + out, balance


class Model(nn.Module):
    def __init__(self, shape=Shape()):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        nn.init.normal_(self.embedding.weight, std=0.05)
        self.layers = nn.ModuleList(Layer(shape, i) for i in range(shape.layers))
        self.norm = Norm(shape)
        self.head = Linear(shape.hidden, shape.vocabulary, bias=False)
        nn.init.normal_(self.head.weight, std=0.02)
        cos, sin = rotary_tables(shape, shape.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, tokens, masks=(None, None)):
        """What the head turns into logits, and how unevenly the experts are used (1 when evenly)."""
        length = tokens.shape[1]
        x = F.embedding(tokens, stored(self.embedding.weight))
        balance = 0.0
        for layer in self.layers:
            x, uneven = layer(x, self.cos[:length], self.sin[:length], masks[0 if layer.windowed else 1])
            balance = balance + uneven / len(self.layers)
        return self.norm(x), balance

    def forward(self, tokens, masks=(None, None)):
        """Logits, and how unevenly the experts are used."""
        x, balance = self.hidden(tokens, masks)
        return self.head(x), balance


def block_masks(shape, length, device):
    """Masks for flex attention: windowed and full."""
    def full(b, h, q, k):
        return q >= k

    def windowed(b, h, q, k):
        return (q >= k) & (q - k < shape.window)

    return tuple(create_block_mask(mask, None, None, length, length, device=device) for mask in (windowed, full))
