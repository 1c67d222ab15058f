# SPDX-License-Identifier: Apache-2.0
"""Processes that train in turns (gpu-bench, train_torch.py), and workers whose step lines are read as they come."""
import contextlib
import json
import os
import re
import statistics
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench/peers"))
from process import Ended, Gone, Process  # noqa: E402


class Participant:
    """Runs alone on the GPU, afresh in each round, or stays from round to round beside the others. `command(micro)` starts it: 0 in the
    first round, where it may look for what fits, then what it found."""

    def __init__(self, name, command, micro, log, stays):
        self.name, self.command, self.micro, self.log, self.stays = name, command, micro, log, stays
        self.process, self.facts = None, {}
        self.rates, self.ms, self.first, self.memory, self.round_seconds = [], [], [], [], 0.0

    def start(self, deadline):
        self.process = Process(self.name, self.command(self.micro), self.log, {"PYTHONDONTWRITEBYTECODE": "1"})
        while True:
            line = self.process.line(deadline)
            if line == "first":
                self.first.append(time.monotonic() - self.process.started)
            elif line.startswith("ready "):
                self.facts = json.loads(line[6:])
                self.micro = self.facts["micro"]
                return

    def turn(self, seconds, deadline):
        began = time.monotonic()
        if self.process is None:
            self.start(deadline)
        self.process.say(f"SECONDS {seconds}")
        units, taken, steps, memory = map(float, self.process.line(deadline).split())
        self.rates.append(units / taken)
        self.ms.append(1000 * taken / steps)
        self.memory.append(memory)
        if not self.stays:
            self.end()
        self.round_seconds = time.monotonic() - began

    def end(self):
        if self.process is not None:
            self.process.end()
            self.process = None

    def rate(self):
        return statistics.median(self.rates)

    def over(self, other):
        """How many times as fast, as the median of the rounds."""
        return statistics.median(a / b for a, b in zip(self.rates, other.rates))


def compete(participants, rounds, seconds, left, notes):
    """Takes turns while there is time; those that do not get that far are left out, with a note. The first is ours."""
    running = list(participants)
    try:
        for number in range(rounds):
            if number > 0 and left() < sum(p.round_seconds for p in running):
                notes.append(f"{running[0].name}: {number} of {rounds} rounds, for want of time")
                break
            for participant in list(running):
                try:
                    participant.turn(seconds, time.monotonic() + max(1, left()))
                except Gone as gone:
                    notes.append(str(gone))
                    running.remove(participant)
                    participant.end()
                    if participant is participants[0]:
                        raise
    finally:
        for participant in participants:
            participant.end()
    return [p for p in running if len(p.rates) == len(participants[0].rates)]


def run_worker(worker, job, steps, folder, deadline, environment=None):
    """One run, from start to end: (seconds from its start to its first step's line, seconds a step after the third)."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w") as file:
        file.write(job)
    process = Process("coxswain-worker", [worker, "--job", path, "--storage", f"runs={folder}"],
                      os.path.join(folder, "worker.log"), environment)
    seen, last = [], ""
    try:
        with contextlib.suppress(Ended):
            while True:
                last = process.line(deadline)
                match = re.match(r"step +(\d+)/", last)
                if match:
                    seen.append((int(match[1]), time.monotonic() - process.started))
        if process.process.wait() != 0 or not seen or seen[-1][0] != steps:
            words = open(process.log.name, errors="replace").read().strip().split("\n")[-1] or last
            raise Gone(f"coxswain-worker ended with {process.process.returncode}: {words}")
    finally:
        process.end()
    begin = next((step, at) for step, at in seen if step >= min(3, steps))
    return seen[0][1], (seen[-1][1] - begin[1]) / max(1, seen[-1][0] - begin[0])
