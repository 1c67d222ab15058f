#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of its pace a crew keeps when one of its workers takes ten times as long, proven where processors do not matter.

Every worker's step is a sleep of 50 ms (COXSWAIN_READ_DELAY) beside a model that costs next to nothing; the straggler's is one of
500 ms from some moment on. So six workers need hardly a processor, and the shares hold on a machine that has other work. A pace
is that of the steps that the chief has applied, by the times in the crew's record (COXSWAIN_RECORD), with and without the
straggler in turn, in one crew; the share is the median of some rounds', so that a burst of other work in one of them says nothing.
Prints a table; fails when a strategy that shall keep 80 % does not, when a synchronous
one does not name the straggler within 20 steps, and when anybody is named who is not slow: another worker at any time, the
straggler before it is one or once it keeps up again. Nothing is tried twice.

    BUILD=build tests/stragglers/asleep.py [REGEX]       only the strategies whose name matches
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

USUAL_MS, SLOW_MS = 50, 500
ROUNDS, ROUNDS_WITHOUT_VERDICT = 9, 2
SETTLE_S, MEASURE_S = 1, 3
START_S, NAME_S, QUIET_STEPS = 120, 120, 40
STARTED = 20  # steps: before, a crew warms up
LEAST_KEPT, NAMED_WITHIN = 0.80, 20

# name, strategy, workers, servers, the straggler, keeps its pace, names the straggler
ARRANGEMENTS = [
    ("MultiWorkerMirrored", "type: MultiWorkerMirrored", 6, 0, 2, False, True),
    ("MultiWorkerMirrored, local steps", "type: MultiWorkerMirrored, localSteps: 4", 6, 0, 2, False, True),
    ("MultiWorkerMirrored, sharded optimizer", "type: MultiWorkerMirrored, shardedOptimizer: true", 6, 0, 2, False, True),
    ("ParameterServer, Async", "type: ParameterServer, mode: Async", 6, 1, 2, True, False),
    ("ParameterServer, BoundedStaleness, 1 backup", "type: ParameterServer, mode: BoundedStaleness, backupWorkers: 1", 6, 1, 2, True, False),
    ("ParameterServer, Synchronous", "type: ParameterServer, mode: Synchronous", 6, 1, 2, False, True),
    ("ParameterServer, Synchronous, 1 backup", "type: ParameterServer, mode: Synchronous, backupWorkers: 1", 6, 1, 2, True, True),
    ("PeerToPeer", "type: PeerToPeer", 6, 0, 2, True, False),
    # Those of a pipeline's stages that read the batch: the first and the last.
    ("Pipeline, 2 stages", "type: Pipeline, stages: 2, microBatches: 4", 2, 0, 1, False, True),
    ("Pipeline, 2 stages x 2", "type: Pipeline, stages: 2, microBatches: 4", 4, 0, 3, False, True),
]

DOCUMENT = """\
model: {{preset: mlp, width: 16}}
data: {{format: Synthetic, examples: 4096}}
training: {{steps: 1000000, batchSize: 60, optimizer: {{type: SGD, learningRate: "0.01"}}, seed: 7}}
strategy: {{{strategy}}}
workers: {{replicas: {workers}}}
"""


def go_first():
    """A process that sleeps shall wake in time, whatever else the machine does; where that is not allowed, it waits its turn."""
    try:
        os.nice(-15)
    except OSError:
        pass


class Crew:
    """Processes on this machine, on a loopback network of their own."""

    def __init__(self, directory, number, strategy, workers, servers):
        self.directory, self.workers = directory, workers
        self.record = os.path.join(directory, "record")
        document = os.path.join(directory, "job.yaml")
        with open(document, "w") as file:
            file.write(DOCUMENT.format(strategy=strategy, workers=workers))
        network = f"127.{87 + number}.{os.getpid() % 250}"
        cluster = {"worker": [f"{network}.{i + 1}:2222" for i in range(workers)]}
        if servers:
            cluster["ps"] = [f"{network}.{i + 101}:2222" for i in range(servers)]
        for worker in range(workers):
            self.delay(worker, USUAL_MS)
        self.processes = [self.start(document, cluster, "worker", i) for i in range(workers)]
        self.processes += [self.start(document, cluster, "ps", i) for i in range(servers)]

    def start(self, document, cluster, role, index):
        environment = {k: v for k, v in os.environ.items() if k not in ("COXSWAIN_JOB", "COXSWAIN_JOB_UID")}
        environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
        environment["COXSWAIN_RECORD"] = self.record
        if role == "worker":
            environment["COXSWAIN_READ_DELAY"] = self.delay_path(index)
        log = open(os.path.join(self.directory, f"{role}{index}.log"), "w")
        command = [os.path.join(os.environ["BUILD"], "coxswain-worker"), "--job", document, "--threads", "1",
                   "--log-format", "json"]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, preexec_fn=go_first)

    def delay_path(self, worker):
        return os.path.join(self.directory, f"delay{worker}")

    def delay(self, worker, ms):
        path = self.delay_path(worker)
        with open(path + ".new", "w") as file:
            file.write(f"{ms}\n")
        os.rename(path + ".new", path)

    def applied(self):
        """(nanoseconds, step) of what the chief has applied, in order."""
        try:
            with open(self.record) as file:
                lines = [line.split() for line in file if line.startswith("applied ")]
        except FileNotFoundError:
            return []
        return [(int(line[5]), int(line[4])) for line in lines if len(line) == 6 and line[2].startswith("worker-0-")]

    def step(self):
        applied = self.applied()
        return applied[-1][1] if applied else 0

    def step_at(self, ns):
        return max((step for at, step in self.applied() if at <= ns), default=0)

    def names(self):
        """(worker, step) of whom the chief has named, and when."""
        with open(os.path.join(self.directory, "worker0.log")) as file:
            found = re.findall(r"worker (\d+) is a straggler.*?\(step (\d+)\)", file.read())
        return [(int(worker), int(step)) for worker, step in found]

    def named(self, worker, after):
        """The step at which the chief has named the worker; None: it has not."""
        return next((step for who, step in self.names() if who == worker and step >= after), None)

    def keeps_up_again(self, worker):
        with open(os.path.join(self.directory, "worker0.log")) as file:
            return f"worker {worker} keeps up again" in file.read()

    def failure_line_append(self):
        with open(os.path.join(self.directory, "worker0.log")) as file:
            return file.read().strip().rsplit("\n", 1)[-1]

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def measure(crew):
    """Steps a second in the next while."""
    begin = time.monotonic_ns()
    time.sleep(MEASURE_S)
    end = time.monotonic_ns()
    return (crew.step_at(end) - crew.step_at(begin)) / ((end - begin) / 1e9)


def judge(crew, straggler, keeps, names):
    """(pace without the straggler, with it, what is kept, after how many steps it was named or None, whether it was named before)"""
    without, with_it, named, early = [], [], None, False
    for number in range(ROUNDS if keeps else ROUNDS_WITHOUT_VERDICT):
        time.sleep(SETTLE_S)
        without.append(measure(crew))
        slowed_at = crew.step()
        early |= number == 0 and crew.named(straggler, STARTED) is not None
        crew.delay(straggler, SLOW_MS)
        time.sleep(SETTLE_S)
        with_it.append(measure(crew))
        if names and number == 0:
            wait_until(lambda: crew.named(straggler, slowed_at) is not None, NAME_S)
            at = crew.named(straggler, slowed_at)
            named = None if at is None else at - slowed_at
        crew.delay(straggler, USUAL_MS)
    kept = statistics.median(after / before if before > 0 else 0 for before, after in zip(without, with_it))
    return statistics.median(without), statistics.median(with_it), kept, named, early


def is_named_in_peace(crew, straggler):
    """Whether the straggler that was is named again once it keeps up and a while has passed."""
    if not wait_until(lambda: crew.keeps_up_again(straggler), NAME_S):
        return True
    begin = crew.step()
    wait_until(lambda: crew.step() >= begin + QUIET_STEPS, NAME_S)
    return crew.named(straggler, begin + QUIET_STEPS // 2) is not None


def run(number, arrangement):
    name, strategy, workers, servers, straggler, keeps, names = arrangement
    with tempfile.TemporaryDirectory() as directory:
        crew = Crew(directory, number, strategy, workers, servers)
        try:
            if not wait_until(lambda: crew.step() >= STARTED, START_S):
                print(f"{name}: does not start: {crew.failure_line_append()}")
                return False
            before, after, kept, named, early = judge(crew, straggler, keeps, names)
            late = names and is_named_in_peace(crew, straggler)
            others = sorted({who for who, step in crew.names() if who != straggler and step >= STARTED})
        finally:
            crew.stop()
    verdict = ""
    if keeps and kept < LEAST_KEPT:
        verdict += " TOO SLOW"
    if names and (named is None or named > NAMED_WITHIN):
        verdict += " NOT NAMED IN TIME"
    if early or late or others:
        verdict += " NAMED WITHOUT CAUSE: worker " + ", ".join(map(str, others or [straggler]))
    words = "" if named is None else f"after {named} steps"
    print(f"{name:44} {before:10.2f} {after:14.2f} {100 * kept:6.0f}% {words}{verdict}", flush=True)
    return not verdict


def main():
    os.environ["BUILD"] = os.path.abspath(os.environ["BUILD"])
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else ".")
    print(f"{'strategy, asleep':44} {'steps/s':>10} {'with straggler':>14} {'kept':>7} named")
    results = [run(i, a) for i, a in enumerate(ARRANGEMENTS) if wanted.search(a[0])]
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
