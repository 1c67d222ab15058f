# SPDX-License-Identifier: Apache-2.0
"""LeNet and a small Llama in JAX: what train_jax.py trains, and what is exported for the worker.

    models_jax.py MODEL FOLDER BATCH    exports the model as a program
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np

import shared
from shared import DEPTH, EPSILON, HEADS, HIDDEN, VOCABULARY, WIDTH, WORKS


def matrices(random, **shapes):
    """Of what is multiplied by a matrix, all but the last dimension are summed over."""
    return {name: jnp.asarray(random.normal(0, np.prod(shape[:-1]) ** -0.5, shape), jnp.float32) for name, shape in shapes.items()}


def lenet_parameters():
    values = matrices(np.random.default_rng(1), conv1=(3, 3, 1, 32), conv2=(3, 3, 32, 64), dense1=(1600, 128), dense2=(128, 10))
    return {**values, **{f"{name}_bias": jnp.zeros(value.shape[-1], jnp.float32) for name, value in values.items()}}


def lenet(parameters, images):
    x = images
    for name in ("conv1", "conv2"):
        x = jax.lax.conv_general_dilated(x, parameters[name], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + parameters[f"{name}_bias"])
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(x.reshape(len(x), -1) @ parameters["dense1"] + parameters["dense1_bias"])
    return x @ parameters["dense2"] + parameters["dense2_bias"]


def llama_parameters():
    random = np.random.default_rng(1)
    squares = dict.fromkeys(("query", "key", "value", "out"), (WIDTH, WIDTH))

    def block():
        norms = {name: jnp.ones(WIDTH, jnp.float32) for name in ("norm1", "norm2")}
        return {**norms, **matrices(random, **squares, gate=(WIDTH, HIDDEN), up=(WIDTH, HIDDEN), down=(HIDDEN, WIDTH))}

    ends = {**matrices(random, output=(WIDTH, VOCABULARY)), "norm": jnp.ones(WIDTH, jnp.float32)}
    table = jnp.asarray(random.normal(0, 1, (VOCABULARY, WIDTH)), jnp.float32)
    return {"table": table, "blocks": {str(i): block() for i in range(DEPTH)}, **ends}


def rms_norm(x, weight):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPSILON) * weight


def rotate(x):
    """x: [batch, position, head, value]"""
    cosines, sines = (part[:, None, :] for part in shared.rotations())
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)


def llama(parameters, tokens):
    x = parameters["table"][tokens]
    for i in range(DEPTH):
        block = parameters["blocks"][str(i)]
        normed = rms_norm(x, block["norm1"])
        query, key, value = ((normed @ block[name]).reshape(*tokens.shape, HEADS, -1) for name in ("query", "key", "value"))
        attended = jax.nn.dot_product_attention(rotate(query), rotate(key), value, is_causal=True)
        x = x + attended.reshape(x.shape) @ block["out"]
        normed = rms_norm(x, block["norm2"])
        x = x + (jax.nn.silu(normed @ block["gate"]) * (normed @ block["up"])) @ block["down"]
    return rms_norm(x, parameters["norm"]) @ parameters["output"]


MODELS = {"lenet": (lenet, lenet_parameters), "llama": (llama, llama_parameters)}


def losses_of(model, parameters, inputs, targets):
    """The loss of each target, and whether it was predicted."""
    logits = model(parameters, inputs)
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)[..., 0], logits.argmax(-1) == targets


def export(work, folder, batch):
    import coxswain_train

    model, first = MODELS[work]

    def loss(parameters, state, inputs, targets, seed_key, training):
        return *losses_of(model, parameters, inputs, targets), state

    random = np.random.default_rng(2)
    if work == "lenet":
        inputs, targets = random.random((4, 28, 28, 1), np.float32), random.integers(0, 10, 4, np.int32)
    else:
        inputs, targets = (random.integers(0, VOCABULARY, (4, shared.CONTEXT), np.int32) for _ in range(2))
    parameters = first()
    assert sum(leaf.size for leaf in jax.tree.leaves(parameters)) == WORKS[work].parameters
    coxswain_train.export(folder, loss, parameters, inputs, targets, batch=batch, classes=10 if work == "lenet" else VOCABULARY)


if __name__ == "__main__":
    export(sys.argv[1], sys.argv[2], int(sys.argv[3]))
