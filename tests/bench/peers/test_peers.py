#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make bench-peers` calls a missed floor, and a missed aim, and whom it does without. Prints ok/not ok lines (see tests/run)."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from peers import judge, judge_aims  # noqa: E402
from process import Ended, Process  # noqa: E402
from turns import free_addresses  # noqa: E402

ROWS = [{"what": "mlp, 2 threads", "peer": "PyTorch eager", "ratios": (2.0, 2.0)},
        {"what": "mlp, 2 threads", "peer": "TensorFlow", "ratios": (1.05, 1.4)},
        {"what": "lenet, 2 threads", "peer": "PyTorch eager", "ratios": (1.2, 0.9)}]
BOTH = {"mlp, 2 threads": None, "lenet, 2 threads": None}


def say(holds, name):
    print(f"{'ok' if holds else 'not ok'} {name}")


def ends(code, words, *arguments, by=judge):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = by(*arguments)
    return found == code and words in said.getvalue()


say(ends(1, "mlp, 2 threads: 1.05 x TensorFlow", ROWS, BOTH, 0.01), "one peer that is too near misses the floor")
say(ends(0, "was not quiet", ROWS, BOTH, 0.2), "a busy machine judges nobody, and says so")
say(ends(0, "All 1 floors hold", ROWS, {"lenet, 2 threads": None}, 0.01), "floors go by the clock")
say(ends(1, "gpt-bytes, 2 threads: no figures of ours", ROWS, {"gpt-bytes, 2 threads": "no figures of ours"}, 0.01),
    "a model without figures misses its floor")

AIMED = [{"what": "mlp, 2 processes", "peer": "DDP over gloo", "ratios": (2.2, 3.5), "memory": None, "share": None,
          "verdict": lambda ratio, _: ("3 x", ratio >= 3)},
         {"what": "mlp, 1 thread", "peer": "TensorFlow", "ratios": (2.5, 2.5), "memory": (100, 400), "share": (0.5, 0.5),
          "verdict": lambda ratio, _: ("2 x", ratio >= 2)},
         {"what": "all-reduce", "peer": "gloo, TCP", "ratios": (0.5, None), "memory": None, "share": None,
          "verdict": lambda *_: ("", None)}]
say(ends(1, "2 of 3 aims reached; missed: mlp, 2 processes beside DDP over gloo: 3 x.", AIMED, 0.01, True, by=judge_aims),
    "a missed aim is counted, named, and the exit status where that is wished")
say(ends(0, "2 of 3 aims reached", AIMED, 0.01, False, by=judge_aims), "else it is only told")
say(ends(0, "3 of 3 aims reached.", AIMED, 0.2, True, by=judge_aims), "on a busy machine aims go by processor time")
say(ends(0, "not looked at here: saves", AIMED, 0.01, False, by=judge_aims), "what has its aim elsewhere is named")
AIMED[1]["memory"] = (200, 400)
say(ends(1, "missed: memory: a third of a peer's", AIMED[1:], 0.01, True, by=judge_aims), "memory has an aim too")

with tempfile.TemporaryDirectory() as scratch:
    weary = Process("weary", [sys.executable, "-c", "import sys; sys.exit('it had enough')"], os.path.join(scratch, "log"))
    weary.process.wait()
    try:
        weary.say("SECONDS 1")
        words = ""
    except Ended as ended:
        words = str(ended)
    weary.end()
say(words == "weary ended: it had enough", "who has ended before its turn is done without, with its last words")

drawn = subprocess.run([os.path.join(HERE, "picture")], stdin=open(os.path.join(HERE, "measured")), capture_output=True, text=True)
with open(os.path.join(HERE, "../../../docs/peers.svg")) as file:
    say(drawn.stdout == file.read() and drawn.stdout.count("<rect") > 30, "docs/peers.svg is the picture of what was measured")

say(len(set(free_addresses(64))) == 64, "the servers of a cluster have a port each")
