#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make bench-peers` calls a missed floor. Prints ok/not ok lines (see tests/run)."""
import contextlib
import io
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from peers import judge  # noqa: E402

ROWS = [{"what": "mlp, 2 threads", "peer": "PyTorch eager", "ratios": (2.0, 2.0)},
        {"what": "mlp, 2 threads", "peer": "TensorFlow", "ratios": (1.05, 1.4)},
        {"what": "lenet, 2 threads", "peer": "PyTorch eager", "ratios": (1.2, 0.9)}]
BOTH = {"mlp, 2 threads": None, "lenet, 2 threads": None}


def say(holds, name):
    print(f"{'ok' if holds else 'not ok'} {name}")


def ends(code, words, *arguments):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = judge(*arguments)
    return found == code and words in said.getvalue()


say(ends(1, "mlp, 2 threads: 1.05 x TensorFlow", ROWS, BOTH, 0.01), "one peer that is too near misses the floor")
say(ends(0, "was not quiet", ROWS, BOTH, 0.2), "a busy machine judges nobody, and says so")
say(ends(0, "All 1 floors hold", ROWS, {"lenet, 2 threads": None}, 0.01), "floors go by the clock")
say(ends(1, "gpt-bytes, 2 threads: no figures of ours", ROWS, {"gpt-bytes, 2 threads": "no figures of ours"}, 0.01),
    "a model without figures misses its floor")
