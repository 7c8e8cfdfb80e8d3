"""Safetensors files: the length of a JSON header, the header, and the tensors' bytes."""
import json
import struct

import torch

TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "U8": torch.uint8}
NAMES = {kind: name for name, kind in TYPES.items()}


def load(file):
    """{name: tensor}"""
    data = bytearray(file.read_bytes())
    (length,) = struct.unpack_from("<Q", data)
    header, start, tensors = json.loads(data[8:8 + length]), 8 + length, {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            flat = torch.frombuffer(data, dtype=torch.uint8, count=end - begin, offset=start + begin).clone()
            tensors[name] = flat.view(TYPES[about["dtype"]]).reshape(about["shape"])
    return tensors


def save(tensors, file):
    """Wider types first, so that every tensor is aligned."""
    header, parts, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
