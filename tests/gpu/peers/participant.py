# SPDX-License-Identifier: Apache-2.0
"""Processes that train in turns (gpu-bench, train_torch.py), and workers whose step lines are read as they come."""
import json
import os
import re
import select
import signal
import statistics
import subprocess
import time


class Gone(Exception):
    pass


class Process:
    def __init__(self, name, command, log, environment=None, stdin=subprocess.DEVNULL):
        self.name, self.buffer = name, b""
        self.log = open(log, "w")
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True,
                                        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})})

    def line(self, deadline):
        """The next; None: it has ended."""
        while b"\n" not in self.buffer:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self.process.stdout], [], [], wait)[0]:
                raise Gone(f"{self.name} did not answer in time")
            block = os.read(self.process.stdout.fileno(), 65536)
            if not block:
                return None
            self.buffer += block
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode(errors="replace")

    def last_words(self):
        words = open(self.log.name, errors="replace").read().strip().split("\n")[-1]
        return f"{self.name} ended: {words}" if words else f"{self.name} ended: see {self.log.name}"

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Participant:
    """Runs alone on the GPU, afresh in each round, or stays from round to round beside the others. `command(micro)` starts it: 0 in the
    first round, where it may look for what fits, then what it found."""

    def __init__(self, name, command, micro, log, stays):
        self.name, self.command, self.micro, self.log, self.stays = name, command, micro, log, stays
        self.process, self.facts = None, {}
        self.rates, self.ms, self.first, self.memory, self.round_seconds = [], [], [], [], 0.0

    def start(self, deadline):
        self.process = Process(self.name, self.command(self.micro), self.log, stdin=subprocess.PIPE)
        while True:
            line = self.process.line(deadline)
            if line is None:
                raise Gone(self.process.last_words())
            if line == "first":
                self.first.append(time.monotonic() - self.process.started)
            elif line.startswith("ready "):
                self.facts = json.loads(line[6:])
                self.micro = self.facts["micro"]
                return

    def turn(self, seconds, deadline):
        began = time.monotonic()
        try:
            if self.process is None:
                self.start(deadline)
            self.process.process.stdin.write(f"SECONDS {seconds}\n".encode())
            self.process.process.stdin.flush()
            line = self.process.line(deadline)
            if line is None:
                raise Gone(self.process.last_words())
            units, taken, steps, memory = map(float, line.split())
        except BrokenPipeError:
            raise Gone(self.process.last_words()) from None
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
        while True:
            line = process.line(deadline)
            if line is None:
                break
            last = line
            match = re.match(r"step +(\d+)/", line)
            if match:
                seen.append((int(match[1]), time.monotonic() - process.started))
        if process.process.wait() != 0 or not seen or seen[-1][0] != steps:
            words = open(process.log.name, errors="replace").read().strip().split("\n")[-1] or last
            raise Gone(f"coxswain-worker ended with {process.process.returncode}: {words}")
    finally:
        process.end()
    begin = next((step, at) for step, at in seen if step >= min(3, steps))
    return seen[0][1], (seen[-1][1] - begin[1]) / max(1, seen[-1][0] - begin[0])
