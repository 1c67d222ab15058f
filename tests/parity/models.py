# SPDX-License-Identifier: Apache-2.0
"""Our models as plain functions of PyTorch: parameters are a dictionary under our names, images are N H W C.

Nothing here is shared with the worker: a mistake would have to be made twice.
"""
import math

import torch
from torch.nn import functional as F


def dense(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def conv(p, name, x, stride=1, padding=0):
    return F.conv2d(x, p[name + ".weight"], p.get(name + ".bias"), stride, padding)


def norm(p, name, x, training):
    """Batch normalisation; in training the running values in `p` are replaced."""
    return F.batch_norm(x, p[name + ".running_mean"], p[name + ".running_var"], p[name + ".weight"], p[name + ".bias"], training, 0.1, 1e-5)


def mlp(p, x, training):
    return dense(p, "output", F.relu(dense(p, "dense1", x.flatten(1))))


def lenet(p, x, training):
    x = x.permute(0, 3, 1, 2)
    x = F.max_pool2d(F.relu(conv(p, "conv1", x)), 2)
    x = F.max_pool2d(F.relu(conv(p, "conv2", x)), 2)
    x = x.permute(0, 2, 3, 1).flatten(1)
    return dense(p, "output", F.relu(dense(p, "dense1", x)))


def resnet20(p, x, training, depth=3):
    x = F.relu(norm(p, "conv1.norm", conv(p, "conv1", x.permute(0, 3, 1, 2), padding=1), training))
    for group in (1, 2, 3):
        for block in range(1, depth + 1):
            name, stride = f"group{group}.block{block}", 2 if group > 1 and block == 1 else 1
            y = F.relu(norm(p, name + ".conv1.norm", conv(p, name + ".conv1", x, stride, 1), training))
            y = norm(p, name + ".conv2.norm", conv(p, name + ".conv2", y, 1, 1), training)
            if stride > 1:
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]))
            x = F.relu(x + y)
    return dense(p, "output", x.mean((2, 3)))


def layer_norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], 1e-5)


def gpt_features(p, tokens, heads=4):
    """What the classes are made of: [tokens, width]."""
    x = p["embedding.weight"][tokens] + p["embedding.position"][: tokens.shape[1]]
    for block in range(sum(name.endswith(".norm1.weight") for name in p)):
        h, (b, t, c) = f"h{block}", x.shape
        q, k, v = dense(p, h + ".attention.qkv", layer_norm(p, h + ".norm1", x)).view(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(c // heads)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
        x = x + dense(p, h + ".attention.output", (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        x = x + dense(p, h + ".mlp.output", F.gelu(dense(p, h + ".mlp.input", layer_norm(p, h + ".norm2", x)), approximate="tanh"))
    return layer_norm(p, "norm", x).flatten(0, 1)


def gpt_head(p):
    return "output.weight" if "output.weight" in p else "embedding.weight"


def gpt(p, tokens, training, heads=4):
    return F.linear(gpt_features(p, tokens, heads), p[gpt_head(p)])


def loss(logits, targets):
    return F.cross_entropy(logits, targets.flatten())


# ---------------------------------------------------------------- fresh parameters


def _affine(p, name, width):
    p[name + ".weight"], p[name + ".bias"] = 1 + 0.1 * torch.randn(width), 0.1 * torch.randn(width)


def _dense(p, name, units, inputs, bias=True):
    p[name + ".weight"] = torch.randn(units, inputs) / math.sqrt(inputs)
    if bias:
        p[name + ".bias"] = 0.1 * torch.randn(units)


def _conv(p, name, filters, channels, kernel, bias=True):
    p[name + ".weight"] = torch.randn(filters, channels, kernel, kernel) * math.sqrt(2 / (channels * kernel * kernel))
    if bias:
        p[name + ".bias"] = 0.1 * torch.randn(filters)


def _normalised(p, name, filters, channels):
    _conv(p, name, filters, channels, 3, bias=False)
    _affine(p, name + ".norm", filters)
    p[name + ".norm.running_mean"], p[name + ".norm.running_var"] = 0.1 * torch.randn(filters), 1 + torch.rand(filters)


def mlp_parameters():
    p = {}
    _dense(p, "dense1", 512, 784)
    _dense(p, "output", 10, 512)
    return p


def lenet_parameters():
    p = {}
    _conv(p, "conv1", 32, 1, 3)
    _conv(p, "conv2", 64, 32, 3)
    _dense(p, "dense1", 128, 1600)
    _dense(p, "output", 10, 128)
    return p


def resnet20_parameters(width=16, depth=3, channels=3, classes=10):
    p = {}
    _normalised(p, "conv1", width, channels)
    before = width
    for group in (1, 2, 3):
        filters = width << (group - 1)
        for block in range(1, depth + 1):
            _normalised(p, f"group{group}.block{block}.conv1", filters, before)
            _normalised(p, f"group{group}.block{block}.conv2", filters, filters)
            before = filters
    _dense(p, "output", classes, before)
    return p


def gpt_parameters(width, depth, context, vocabulary, tied):
    p = {"embedding.weight": 0.1 * torch.randn(vocabulary, width), "embedding.position": 0.1 * torch.randn(context, width)}
    for block in range(depth):
        h = f"h{block}"
        _affine(p, h + ".norm1", width)
        _dense(p, h + ".attention.qkv", 3 * width, width)
        _dense(p, h + ".attention.output", width, width)
        _affine(p, h + ".norm2", width)
        _dense(p, h + ".mlp.input", 4 * width, width)
        _dense(p, h + ".mlp.output", width, 4 * width)
    _affine(p, "norm", width)
    if not tied:
        _dense(p, "output", vocabulary, width, bias=False)
    return p


# ---------------------------------------------------------------- Hugging Face's GPT-2

GPT2 = {
    "norm1": "ln_1",
    "norm2": "ln_2",
    "attention.qkv": "attn.c_attn",
    "attention.output": "attn.c_proj",
    "mlp.input": "mlp.c_fc",
    "mlp.output": "mlp.c_proj",
}


def to_hugging_face(p):
    """Its names, and Conv1D's weights as [in, out]."""
    out = {}
    for name, value in p.items():
        if name.startswith("embedding"):
            out["wte.weight" if name.endswith("weight") else "wpe.weight"] = value
        elif name.startswith("norm."):
            out["ln_f." + name.split(".")[1]] = value
        elif name == "output.weight":
            out["lm_head.weight"] = value
        else:
            block, rest = name.split(".", 1)
            layer, kind = rest.rsplit(".", 1)
            turned = value.t() if value.dim() == 2 else value
            out[f"h.{block[1:]}.{GPT2[layer]}.{kind}"] = turned.contiguous()
    return out


def from_hugging_face(foreign):
    back = {value: key for key, value in GPT2.items()}
    out = {}
    for name, value in foreign.items():
        parts = name.split(".")
        if parts[0] == "wte":
            out["embedding.weight"] = value
        elif parts[0] == "wpe":
            out["embedding.position"] = value
        elif parts[0] == "ln_f":
            out["norm." + parts[1]] = value
        elif parts[0] == "lm_head":
            out["output.weight"] = value
        else:
            layer = ".".join(parts[2:-1])
            out[f"h{parts[1]}.{back[layer]}.{parts[-1]}"] = value.t() if value.dim() == 2 else value
    return out
