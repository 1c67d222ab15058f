# SPDX-License-Identifier: Apache-2.0
"""Trains a Keras model of three inputs with two workers, in the current folder: python3 recommender.py

It needs cox, a worker with XLA, and a plugin (docs/programs.md).
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from numpy.typing import NDArray

from coxswain_train import TrainingJob, export, load

USERS, ITEMS = 40, 30


def recommender() -> keras.Model:
    """Two towers, of the user and of the item with its price; the logits of not buying and buying."""
    user = keras.Input((), dtype="int32", name="user")
    item = keras.Input((), dtype="int32", name="item")
    price = keras.Input((1,), name="price")
    left = layers.Embedding(USERS, 8, name="users")(user)
    right = layers.Embedding(ITEMS, 8, name="items")(item)
    match = layers.Dot(1)([layers.Dense(8, name="left")(left), layers.Dense(8, name="right")(right)])
    return keras.Model([user, item, price], layers.Dense(2, name="out")(layers.Concatenate()([match, price])), name="recommender")


def offers(count: int) -> tuple[dict[str, NDArray[np.int64] | NDArray[np.float32]], NDArray[np.int64]]:
    """Users and items are each of one of two kinds; users buy what is of their kind and cheap."""
    random = np.random.default_rng(1)
    user, item = random.integers(0, USERS, count), random.integers(0, ITEMS, count)
    price = random.normal(size=(count, 1)).astype(np.float32)
    bought = 2.0 * (user % 2 == item % 2) - 1 > price[:, 0]
    return {"user": user, "item": item, "price": price}, bought.astype(np.int64)


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    inputs, bought = offers(2000)
    model = recommender()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    example = {name: values[:16] for name, values in inputs.items()}
    vocabularies = {"user": USERS, "item": ITEMS}
    export("recommender", model, loss, example, bought[:16], batch=25, vocabularies=vocabularies)
    for name, values in {**inputs, "bought": bought}.items():
        np.save(f"{name}.npy", values)
    files = {"inputs": {name: f"{name}.npy" for name in inputs}, "labels": "bought.npy"}
    job = TrainingJob(
        "recommender",
        program="recommender",
        data={"format": "NPY", "storage": "data", "train": files, "validation": {"last": 200}},
        storage={"data": "."},
        batch_size=100,
        epochs=20,
        optimizer={"type": "AdamW", "learningRate": 0.01},
        workers=2,
    )
    job.run(fresh=True)  # whatever an earlier run of this script left
    load(job.result(), model)
    held_out = [inputs[name][-200:] for name in ("user", "item", "price")]
    right = model.predict(held_out, verbose=0).argmax(-1) == bought[-200:]
    print(f"{100 * right.mean():.1f} % of the held-out offers are right")
