#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make gpu-bench` calls reached and missed, and how it reads its participants. Prints ok/not ok lines (see tests/run)."""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from aims import judge, summary  # noqa: E402
from fitting import widest  # noqa: E402
from participant import Gone, Participant, compete, run_worker  # noqa: E402


def say(holds, name):
    print(f"{'ok' if holds else 'not ok'} {name}")


def row(part, beside="", **figures):
    return {"part": part, "what": part, "beside": beside, **figures}


# A participant: PACE units in each turn, which it says to have taken a second.
TALKER = """
import sys
print("first", flush=True)
print('ready {"micro": 4, "peak": 0}', flush=True)
for count, line in enumerate(sys.stdin):
    if count == int(sys.argv[2]):
        sys.exit("it had enough")
    print(float(sys.argv[1]), "1.0 2 512", flush=True)
"""

WORKER = """#!/bin/sh
echo "step 1/4  loss"; echo "step 3/4"; echo "step 4/4"; exit $(cat "${4#runs=}/code" 2>/dev/null || echo 0)
"""


def talker(folder, name, pace, turns=9, stays=True):
    path = os.path.join(folder, "talker.py")
    with open(path, "w") as file:
        file.write(TALKER)
    return Participant(name, lambda micro: [sys.executable, path, str(pace), str(turns)], 0, os.path.join(folder, f"{name}.log"), stays)


def check_turns(folder):
    notes = []
    found = compete([talker(folder, "ours", 30), talker(folder, "theirs", 20)], 3, 0.1, lambda: 60, notes)
    say([p.name for p in found] == ["ours", "theirs"] and found[0].over(found[1]) == 1.5 and found[0].ms == [500] * 3,
        "ratios are of rounds, and a step's time of its turn's steps")
    afresh = talker(folder, "afresh", 30, stays=False)
    say(len(compete([afresh], 3, 0.1, lambda: 60, notes)[0].first) == 3 and afresh.micro == 4,
        "whoever does not stay starts in each round, with the passes it has found")
    found = compete([talker(folder, "ours", 30), talker(folder, "weary", 20, turns=1)], 3, 0.1, lambda: 60, notes)
    say([p.name for p in found] == ["ours"] and "weary ended: it had enough" in notes, "who ends early is left out, with its last words")
    found = compete([talker(folder, "ours", 30)], 3, 0.1, iter([60, 0, 0]).__next__, notes)
    say(len(found[0].rates) == 1 and "ours: 1 of 3 rounds, for want of time" in notes, "without time there are fewer rounds")


def check_fitting():
    tried = []

    def up_to(most):
        tried.clear()
        return lambda micro: tried.append(micro) or micro <= most

    say(widest(64, up_to(20), 64) == 16 and tried == [64, 32, 16], "passes are halved until they fit")
    say(widest(64, up_to(40), 16) == 32 and tried == [16, 32, 64], "or doubled while they do, from where they are looked for")
    say(widest(64, up_to(20), 32) == 16 and tried == [32, 16], "nothing is tried twice")
    say(widest(64, up_to(0), 64) == 1 and tried[-1] == 2 and widest(8, up_to(99), 8) == 8 and tried == [8],
        "a single example is not tried, nor more than there are")


def check_worker(folder):
    path = os.path.join(folder, "worker")
    with open(path, "w") as file:
        file.write(WORKER)
    os.chmod(path, 0o700)
    first, step = run_worker(path, "job", 4, folder, time.monotonic() + 60)
    say(first > 0 and step >= 0, "a worker's steps are timed by their lines")
    with open(os.path.join(folder, "code"), "w") as file:
        file.write("72")
    try:
        run_worker(path, "job", 4, folder, time.monotonic() + 60)
        say(False, "a worker that fails has no figures")
    except Gone as gone:
        say("72" in str(gone), "a worker that fails has no figures")


say(judge(row("gpt2", "its peak", mfu=0.5)) == ("at least 50 %", True), "half the peak reaches the aim")
say(judge(row("gpt2", "its peak", mfu=0.499))[1] is False, "less misses it")
say(judge(row("gpt2", "PyTorch compiled", ratio=1.14)) == ("at least 1.15 x", False), "1.14 x compiled PyTorch misses 1.15 x")
say(judge(row("gpt2", "PyTorch eager", ratio=0.1)) is None, "nothing is aimed for beside eager PyTorch")
say(judge(row("start", seconds=3.1)) == ("at most 3 s", False), "3.1 s miss 3 s")
say(judge(row("checkpoints", share=0.002)) == ("at most 1 %", True), "0.2 % reach 1 %")
lines, reached = summary([row("start", seconds=2), row("lenet", "PyTorch graph", ratio=1.9)])
say(not reached and lines[0] == "1 of 2 aims reached; missed: lenet beside PyTorch graph: at least 2 x.", "what is missed is counted and named")
say("gpt2 beside its peak: at least 50 %" in lines[1] and "start" not in lines[1], "and what was not looked at is named, too")
check_fitting()
with tempfile.TemporaryDirectory() as scratch:
    check_turns(scratch)
    check_worker(scratch)
