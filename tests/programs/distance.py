# SPDX-License-Identifier: Apache-2.0
"""Prints how far two exports are apart: the largest difference of any value, as a part of the largest value of its tensor.

    distance.py A.safetensors B.safetensors
"""

import sys

import numpy as np
from safetensors.numpy import load_file

one, other = load_file(sys.argv[1]), load_file(sys.argv[2])
assert one.keys() == other.keys()
print(f"{max(np.abs(one[name] - other[name]).max() / (np.abs(one[name]).max() + 1e-9) for name in one):.2e}")
