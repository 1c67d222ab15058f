# SPDX-License-Identifier: Apache-2.0
"""Keras with JAX as its backend, by fit, in one process or several that share each batch: train_keras.py MODEL FOLDER [RANK SIZE ADDRESS]"""
import sys

import jax
import keras
import numpy as np
from keras import layers, ops

import shared
from shared import DEPTH, EPSILON, HEADS, HIDDEN, VOCABULARY, WIDTH


def lenet():
    return keras.Sequential([keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
                             layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
                             layers.Dense(128, activation="relu"), layers.Dense(10)])


class Attention(layers.Layer):
    def __init__(self):
        super().__init__()
        self.parts = [layers.Dense(WIDTH, use_bias=False) for _ in range(3)]
        self.out = layers.Dense(WIDTH, use_bias=False)

    def call(self, x):
        cosines, sines = (part[:, None, :] for part in shared.rotations())

        def rotate(part):  # [batch, position, head, value]
            first, second = ops.split(part, 2, -1)
            return ops.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)

        query, key, value = (ops.reshape(part(x), (-1, shared.CONTEXT, HEADS, WIDTH // HEADS)) for part in self.parts)
        attended = ops.dot_product_attention(rotate(query), rotate(key), value, is_causal=True)
        return self.out(ops.reshape(attended, (-1, shared.CONTEXT, WIDTH)))


def llama():
    tokens = keras.Input((shared.CONTEXT,), dtype="int32")
    x = layers.Embedding(VOCABULARY, WIDTH)(tokens)
    for _ in range(DEPTH):
        x = x + Attention()(layers.RMSNormalization(epsilon=EPSILON)(x))
        normed = layers.RMSNormalization(epsilon=EPSILON)(x)
        gate, up = (layers.Dense(HIDDEN, activation=activation, use_bias=False)(normed) for activation in ("silu", None))
        x = x + layers.Dense(WIDTH, use_bias=False)(gate * up)
    return keras.Model(tokens, layers.Dense(VOCABULARY, use_bias=False)(layers.RMSNormalization(epsilon=EPSILON)(x)))


class Steps(keras.callbacks.Callback):
    def __init__(self, teller):
        super().__init__()
        self.teller = teller

    def on_train_batch_end(self, batch, logs=None):
        self.teller.count(lambda: float(logs["loss"]))


class Examples(keras.utils.PyDataset):
    """What every process gives to fit: the batch that it computes on."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return self.batches.next()


work, folder, *crew = sys.argv[1:]
rank, size = map(int, crew[:2]) if crew else (0, 1)
if size > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(crew[2], size, rank)
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=keras.distribution.list_devices(), auto_shard_dataset=False))
keras.utils.set_random_seed(7)
model = {"lenet": lenet, "llama": llama}[work]()
given = shared.WORKS[work]
optimizer = {"sgd": keras.optimizers.SGD, "adamw": keras.optimizers.AdamW}[given.optimizer](given.rate)
model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
teller = shared.Teller(work, sum(int(np.prod(value.shape)) for value in model.trainable_variables))
model.fit(Examples(shared.Batches(work, folder, rank, size)), epochs=1, verbose=0, callbacks=[Steps(teller)])
