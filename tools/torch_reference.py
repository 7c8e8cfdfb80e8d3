"""transformers as the reference for whole models: in float32 even if not all layers fit at once, recording router choices."""
import contextlib
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def build(c, plain=None):
    settings = {key: value for key, value in c.items() if key != "model_type"}
    config = AutoConfig.for_model(c["model_type"], **settings)
    more = {"attn_implementation": "eager"} if "num_local_experts" in c else {}  # the one that knows sinks everywhere
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, **more).eval()
    if plain is not None:
        shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
        if any(name.endswith("gate_up_proj") and shapes[name] != tensor.shape for name, tensor in plain.items()):
            plain = {name: tensor.transpose(1, 2) if name.endswith(("experts.gate_up_proj", "experts.down_proj")) else tensor
                     for name, tensor in plain.items()}
        missing, unexpected = model.load_state_dict(plain, strict=False, assign=True)
        if c["tie_word_embeddings"]:
            model.lm_head.weight = model.model.embed_tokens.weight
            missing = [name for name in missing if name != "lm_head.weight"]
        assert not missing and not unexpected, f"missing {missing[:5]}, unexpected {unexpected[:5]}"
    with torch.device("cuda"):  # its frequencies in float32, whatever the model is in
        model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model, config


@contextlib.contextmanager
def in_float32(model):
    """The weights of a layer are float32 only while it runs, because the whole model would not fit."""
    kept, handles = {}, []

    def widen(module, _):
        kept[module] = [(parameter, parameter.data) for parameter in module.parameters()]
        module.float()

    def narrow(module, *_):
        for parameter, data in kept.pop(module):
            parameter.data = data

    outside = [model.model.embed_tokens, model.model.norm, model.lm_head]
    for module in outside:
        module.float()
    for layer in model.model.layers:
        handles += [layer.register_forward_pre_hook(widen), layer.register_forward_hook(narrow)]
    yield
    for handle in handles:
        handle.remove()
    for module in outside:
        module.to(torch.bfloat16)


@contextlib.contextmanager
def piecewise_attention(model, piece=1024):
    """transformers' eager attention for some queries at a time: 8,192 x 8,192 scores of 64 heads would take 17 GB, five times."""
    module = sys.modules[type(model).__module__]
    original = getattr(module, "eager_attention_forward", None)
    if original is None or model.config._attn_implementation != "eager":
        yield
        return

    def attend(layer, query, key, value, mask, scaling, dropout=0.0, **more):
        parts = []
        for at in range(0, query.shape[2], piece):
            seen = None if mask is None else mask[:, :, at:at + piece]
            parts.append(original(layer, query[:, :, at:at + piece], key, value, seen, scaling, dropout, **more)[0])
        return torch.cat(parts, dim=1), None

    module.eager_attention_forward = attend
    yield
    module.eager_attention_forward = original


class Routers:
    """Watches routers: how often each expert is chosen, and how close the fourth and fifth of a row were."""

    def __init__(self, model, c):
        self.counts = torch.zeros(c["num_hidden_layers"], c["num_local_experts"], device="cuda")
        self.margins, active = [], c["num_experts_per_tok"]

        def hook(layer):
            def look(module, inputs, _):
                rows = inputs[0].reshape(-1, c["hidden_size"])
                best = torch.nn.functional.linear(rows, module.weight, module.bias).topk(active + 1)
                self.counts[layer] += torch.bincount(best.indices[:, :active].flatten(), minlength=c["num_local_experts"])
                self.margins.append(best.values[:, active - 1] - best.values[:, active])
            return look

        self.handles = [block.mlp.router.register_forward_hook(hook(i)) for i, block in enumerate(model.model.layers)]

    def take_margins(self):
        """Of every row of the pass that just ended, the smallest of all layers."""
        out, self.margins = torch.stack(self.margins).min(0).values.float().cpu(), []
        return out

    def remove(self):
        for handle in self.handles:
            handle.remove()


@torch.no_grad()
def last_rows(model, tokens, rows):
    """Logits at `rows`, pairs of sequence and position; shorter sequences are padded at the end, and the padding is ignored."""
    longest = max(map(len, tokens))
    others = [token for line in tokens for token in line]  # varied tokens, because the experts of padding are counted too
    ids = torch.tensor([line + others[-(longest - len(line)):] if len(line) < longest else line for line in tokens], device="cuda")
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    return model.lm_head(hidden[[row[0] for row in rows], [row[1] for row in rows]]).float().cpu()
