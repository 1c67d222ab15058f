# SPDX-License-Identifier: Apache-2.0
"""Exports a convolutional network of Keras for digits of 28 x 28 pixels: python3 digits.py FOLDER"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers

from coxswain_train import export


def digits() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, use_bias=False, name="convolution1"),
            layers.BatchNormalization(name="norm1"),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, use_bias=False, name="convolution2"),
            layers.BatchNormalization(name="norm2"),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.4),
            layers.Dense(10, name="out"),
        ],
        name="digits",
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: digits.py FOLDER")
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    # Pixels that only show the shape, and try the export: the worker has the data.
    pixels = random.random((16, 28, 28, 1), np.float32)
    labels = np.arange(16, dtype=np.int32) % 10
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    export(sys.argv[1], digits(), loss, pixels, labels, batch=16)
