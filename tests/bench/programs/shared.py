# SPDX-License-Identifier: Apache-2.0
"""The two models of `make bench-programs`, their data, and the loop in which Python trains them. Imports no framework."""
import json
import os
import time
from collections import namedtuple

import numpy as np

# units: examples or tokens of one example; parameters: what every framework must count, so that all train the same model
Work = namedtuple("Work", "batch optimizer rate units parameters")
WORKS = {
    "lenet": Work(128, "sgd", 0.05, 1, 225_034),
    "llama": Work(16, "adamw", 3e-4, 128, 1_115_264),
}
# Llama: RMSNorm, rotary positions, SwiGLU, attention to earlier positions, no biases, an output of its own.
VOCABULARY, DEPTH, WIDTH, HEADS, HIDDEN, CONTEXT, THETA, EPSILON = 256, 4, 128, 4, 512, 128, 10000.0, 1e-5
EXAMPLES, TEXT_BYTES = 1024, 1 << 20
TELL_EVERY = 0.1  # seconds


def write_data(folder):
    """Noise, in the formats of MNIST and of plain text."""
    random = np.random.default_rng(1)
    for name, magic, shape, below in (("images", 0x803, (EXAMPLES, 28, 28), 256), ("labels", 0x801, (EXAMPLES,), 10)):
        header = np.array([magic, *shape], ">u4").tobytes()
        values = random.integers(0, below, shape, np.uint8)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(header + values.tobytes())
    with open(os.path.join(folder, "text"), "wb") as file:
        file.write(random.integers(0, VOCABULARY, TEXT_BYTES, np.uint8).tobytes())


def read(folder, name, header):
    with open(os.path.join(folder, name), "rb") as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def arrays(work, folder):
    """Inputs and targets of all examples, as the worker reads them."""
    if work == "lenet":
        return read(folder, "images", 16).reshape(-1, 28, 28, 1).astype(np.float32) / 255, read(folder, "labels", 8).astype(np.int32)
    text = read(folder, "text", 0).astype(np.int32)
    windows = (len(text) - 1) // CONTEXT
    return text[: windows * CONTEXT].reshape(-1, CONTEXT), text[1 : windows * CONTEXT + 1].reshape(-1, CONTEXT)


def rotations():
    """Cosines and sines [CONTEXT, WIDTH / HEADS / 2] of rotary positions."""
    half = WIDTH // HEADS // 2
    angles = np.outer(np.arange(CONTEXT), THETA ** (-np.arange(half) / half))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class Batches:
    """Batches in a random order of each epoch; of several processes each takes its share of every batch."""

    def __init__(self, work, folder, rank=0, size=1):
        self.inputs, self.targets = arrays(work, folder)
        self.random, self.batch, self.share = np.random.default_rng(7), WORKS[work].batch, WORKS[work].batch // size
        self.rank, self.order = rank, np.empty(0, int)

    def next(self):
        if len(self.order) < self.batch:
            self.order = self.random.permutation(len(self.inputs))
        batch, self.order = self.order[: self.batch], self.order[self.batch :]
        mine = batch[self.rank * self.share : (self.rank + 1) * self.share]
        return self.inputs[mine], self.targets[mine]


class Teller:
    """Prints the number of the step as a line of JSON, as the worker does: the first one, then after each TELL_EVERY seconds."""

    def __init__(self, work, parameters):
        assert parameters == WORKS[work].parameters, f"{work} has {parameters} parameters, not {WORKS[work].parameters}"
        self.step, self.told = 0, 0.0

    def count(self, loss):
        """`loss` waits until the step has been computed, and returns its loss."""
        self.step += 1
        if self.step == 1 or time.monotonic() - self.told >= TELL_EVERY:
            print(json.dumps({"step": self.step, "loss": loss()}), flush=True)
            self.told = time.monotonic()
