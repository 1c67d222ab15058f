# SPDX-License-Identifier: Apache-2.0
"""Prints how far two exports are apart: the largest difference of any value, beyond its last bit, as a part of the largest value of
its tensor. With a third file, from which both runs began, how far apart their changes are, but for running statistics, which have
changed in that file, too. A tensor that hardly changes (the bias before a batch normalisation, whose gradient is zero but for rounding)
counts as a thousandth of the one that changes most.

    distance.py ONE.safetensors OTHER.safetensors [START.safetensors]
"""

import sys

import numpy as np
from safetensors.numpy import load_file

one, other = load_file(sys.argv[1]), load_file(sys.argv[2])
start = {name: np.zeros_like(values) for name, values in one.items()}
if len(sys.argv) > 3:
    start.update((name, values) for name, values in load_file(sys.argv[3]).items() if ".running_" not in name)
assert one.keys() == other.keys() == start.keys()


def apart(name: str) -> float:
    assert one[name].shape == other[name].shape == start[name].shape
    assert np.isfinite(one[name]).all() and np.isfinite(other[name]).all(), name
    last_bits = np.finfo(np.float32).eps * np.abs(one[name])
    beyond = np.maximum(np.abs(one[name] - other[name]) - last_bits, 0)
    return float(beyond.max() / max(change(name), most / 1000))


def change(name: str) -> float:
    return float(np.abs(one[name] - start[name]).max())


most = max(change(name) for name in one if ".running_" not in name)
print(f"{max(apart(name) for name in one):.2e}")
