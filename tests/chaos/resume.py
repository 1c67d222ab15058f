#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every strategy goes on from every other's checkpoint: each kind of crew trains half of the steps, and from what it has left
every kind takes the other half. Prints a line a pair (see tests/run) and the matrix. Strategies that promise OneDevice's bits give
them whoever had trained before.

    RESUME_ONLY=regex   only kinds whose name matches
"""
import dataclasses
import os
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from arrangements import Arrangement, document, mirrored, peers, servers  # noqa: E402
from crew import Crew  # noqa: E402

HALF, WHOLE = 60, 100
PATIENCE = 120

TWELVE = {"logicalShards": 12}
KINDS = [
    Arrangement("OneDevice", {"type": "OneDevice"}, {"worker": 1}),
    Arrangement("Mirrored", {"type": "Mirrored"}, {"worker": 1}, devices=2),
    Arrangement("CentralStorage", {"type": "CentralStorage"}, {"worker": 1}, devices=2),
    mirrored("MultiWorkerMirrored", 2),
    mirrored("elastic", 2, elastic=(1, 3)),
    mirrored("sharded optimizer", 3, strategy={"shardedOptimizer": True}, mirrored=True),
    mirrored("local steps", 2, strategy={"localSteps": 5}, bits=False),
    Arrangement("Pipeline, devices", {"type": "Pipeline", "stages": 2, "microBatches": 12}, {"worker": 1}, devices=2),
    Arrangement("Pipeline, pods", {"type": "Pipeline", "stages": 2, "microBatches": 12}, {"worker": 2}),
    Arrangement("Pipeline, replicated", {"type": "Pipeline", "stages": 2, "microBatches": 6}, {"worker": 4}),
    servers("PS Async", "Async"),
    servers("PS BoundedStaleness", "BoundedStaleness"),
    servers("PS Synchronous", "Synchronous", training=TWELVE),
    peers(),
]

class Matrix:
    def __init__(self, worker, work):
        self.worker, self.work, self.number = worker, work, 0
        self.weights = None  # of the crew that was checked last

    def train(self, kind, steps, checkpoints=None):
        """The crew, once it has ended; from a copy of those checkpoints."""
        self.number += 1
        job = document(dataclasses.replace(kind, steps=steps, width=96))
        directory = os.path.join(self.work, str(self.number))
        crew = Crew(self.worker, job, directory, self.number, first_incarnation=1000 * self.number)
        crew.committed = []
        if checkpoints:
            shutil.copytree(checkpoints, crew.checkpoints)
        end = time.monotonic() + PATIENCE
        crew.start()
        while not crew.look(replace=False) and not crew.failures and time.monotonic() < end:
            time.sleep(0.02)
        leave = time.monotonic() + 10
        while time.monotonic() < leave and any(p.runs for p in crew.processes):
            crew.look(replace=False)
            time.sleep(0.02)
        crew.end()
        return crew

    def check(self, kind, before, expected):
        """A sentence about what went wrong, or None. `expected` are the weights that it must end in and whose they are, if any."""
        crew = self.train(kind, WHOLE, before.checkpoints)
        lines = "".join(crew.logs())
        found = re.search(r"resumes from the checkpoint of step ([0-9]+)", lines)
        if crew.failures or crew.current(*crew.chief).code != 0:
            standing = "; ".join(f"{p.name}: {crew.last_words(p, 3)}" for p in crew.processes)
            return "; ".join(crew.failures) or f"not done after {PATIENCE} s: {standing}"
        if not found or int(found.group(1)) != before.newest_committed():
            return f"it begins with {found.group(0) if found else 'nothing'}, not step {before.newest_committed()}"
        weights, whose = expected or (None, None)
        if weights and crew.weights() != weights:
            return f"other bits than {whose}"
        self.weights = crew.weights()
        shutil.rmtree(crew.directory)
        return None

def main():
    kinds = [kind for kind in KINDS if re.search(os.environ.get("RESUME_ONLY", ""), kind.name)]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="resume-") as work:
        matrix = Matrix(os.path.join(os.environ["BUILD"], "coxswain-worker"), work)
        reference = matrix.train(KINDS[0], WHOLE).weights()
        rows = []
        for first in kinds:
            before = matrix.train(first, HALF)
            row = [first.name]
            # Kinds with promised bits must agree with OneDevice; after a checkpoint without promised bits, with each other.
            expected = (reference, "OneDevice's") if first.bits else None
            for second in kinds:
                why = matrix.check(second, before, expected if second.bits else None)
                if second.bits and not why and not expected:
                    expected = (matrix.weights, f"{second.name}'s from the same checkpoint")
                print(f"not ok {second.name} goes on from {first.name}: {why}" if why else
                      f"ok {second.name} goes on from {first.name}", flush=True)
                failed += why is not None
                row.append("no" if why else "same bits" if second.bits else "yes")
            rows.append(row)
    print("\n| from \\ goes on | " + " | ".join(kind.name for kind in kinds) + " |")
    print("|---" * (len(kinds) + 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return failed > 0

if __name__ == "__main__":
    sys.exit(main())
