# SPDX-License-Identifier: Apache-2.0
"""bench_train.c's works, as models.py and models_tf.py give them to their frameworks."""
from collections import namedtuple

# optimizer and its rate; data (images, pictures, tokens); global batch; units (examples or tokens) an example
Work = namedtuple("Work", "optimizer rate data batch units")
WORKS = {
    "mlp": Work("sgd", 0.1, "images", 128, 1),
    "lenet": Work("sgd", 0.05, "images", 128, 1),
    "resnet20": Work("sgd", 0.05, "pictures", 64, 1),
    "gpt-bytes": Work("adamw", 3e-4, "tokens", 16, 256),
    "gpt-6x384": Work("adamw", 3e-4, "tokens", 4, 256),
}

GPT_BYTES = dict(depth=4, width=128, heads=4, context=256)
GPT_6X384 = dict(depth=6, width=384, heads=6, context=256)

# Filters before and behind, and the stride, of each block.
RESNET20 = [(8 << group if group and block == 0 else 16 << group, 16 << group, 2 if group and block == 0 else 1)
            for group in range(3) for block in range(3)]
