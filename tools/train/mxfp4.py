"""MXFP4: blocks of 32 four-bit numbers that share a power of two. Weights are trained as they will be stored.

Exponents are taken from and put into the bits of float32, so that every machine rounds alike.
"""
import torch

VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
BLOCK, BIAS, MANTISSA_BITS = 32, 127, 23


def _power_of_two(exponent):
    return ((exponent + BIAS) << MANTISSA_BITS).view(torch.float32)


def _scaled(weight):
    """Blocks along the last axis divided by their power of two, and the exponents (int32)."""
    blocks = weight.detach().float().reshape(*weight.shape[:-1], -1, BLOCK)
    largest = blocks.abs().amax(-1, keepdim=True).clamp(min=2.0 ** -100)
    exponent = (largest.view(torch.int32) >> MANTISSA_BITS) - BIAS - 2
    return blocks * _power_of_two(-exponent), exponent


def _magnitude(scaled):
    """The nearest of VALUES."""
    a = scaled.abs()
    coarse = torch.where(a < 4, torch.round(a), (2 * torch.round(a / 2)).clamp(max=6))
    return torch.where(a < 2, torch.round(2 * a) / 2, coarse)


def rounded(weight):
    """The numbers that storing and reading gives."""
    scaled, exponent = _scaled(weight)
    return (_magnitude(scaled) * scaled.sign() * _power_of_two(exponent)).reshape(weight.shape)


def fake(weight):
    """`rounded` in the forward pass, the identity in the backward pass."""
    return weight + (rounded(weight) - weight.detach())


def pack(weight):
    """[…, n] as gpt-oss stores it: blocks U8 […, n/32, 16], the first number of a pair in the low half, and scales U8 […, n/32]."""
    scaled, exponent = _scaled(weight)
    m = _magnitude(scaled)
    codes = torch.where(m <= 2, 2 * m, torch.where(m < 4, 5, torch.where(m < 6, 6, 7)).float())
    codes = (codes + 8 * (scaled < 0)).to(torch.uint8)
    return (codes[..., 0::2] | (codes[..., 1::2] << 4)).contiguous(), (exponent.squeeze(-1) + BIAS).to(torch.uint8).contiguous()


def unpack(blocks, scales):
    table = torch.tensor(VALUES + [-v for v in VALUES], device=blocks.device)
    numbers = torch.stack([table[(blocks & 15).long()], table[(blocks >> 4).long()]], -1).flatten(-2)
    return (numbers * _power_of_two(scales.int() - BIAS).unsqueeze(-1)).flatten(-2)
