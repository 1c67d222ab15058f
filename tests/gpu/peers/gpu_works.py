# SPDX-License-Identifier: Apache-2.0
"""bench_trainee.c's works, as PyTorch is given them."""
from collections import namedtuple

# model and its sizes; optimizer and its rate; precision; examples of a step; units (tokens, images) an example
Work = namedtuple("Work", "model sizes optimizer rate precision batch units")
GPT_BYTES = dict(depth=4, width=128, heads=4, context=256, vocabulary=256)
# PyTorch's vocabulary is rounded up to a multiple of 64, as its users do; ours is as published.
WORKS = {
    "gpt2-124m": Work("gpt2", dict(depth=12, width=768, heads=12, context=1024, vocabulary=50304), "adamw", 3e-4, "bfloat16", 512, 1024),
    "resnet50": Work("resnet", dict(blocks=(3, 4, 6, 3), width=64, side=224, classes=1000), "momentum", 0.1, "bfloat16", 256, 1),
    "mlp": Work("mlp", {}, "sgd", 0.1, "float32", 128, 1),
    "lenet": Work("lenet", {}, "sgd", 0.05, "float32", 128, 1),
    "gpt-bytes": Work("gpt", GPT_BYTES, "adamw", 3e-4, "float32", 16, 256),
    "mlp-4096": Work("mlp", {}, "sgd", 0.1, "float32", 4096, 1),
    "lenet-2048": Work("lenet", {}, "sgd", 0.05, "float32", 2048, 1),
    "gpt-bytes-128": Work("gpt", GPT_BYTES, "adamw", 3e-4, "float32", 128, 256),
    "tiny-gpt2": Work("gpt2", dict(depth=1, width=8, heads=2, context=8, vocabulary=50304), "adamw", 3e-4, "bfloat16", 4, 8),
    "tiny-resnet": Work("resnet", dict(blocks=(1, 1), width=4, side=32, classes=10), "momentum", 0.1, "bfloat16", 2, 1),
    "tiny-mlp": Work("mlp", {}, "sgd", 0.1, "float32", 4, 1),
}
