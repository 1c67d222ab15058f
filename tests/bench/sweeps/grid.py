# SPDX-License-Identifier: Apache-2.0
"""ASHA beside grid search on real training: the sweep of grid.yaml, and a grid of as many trials in the same ranges.

    BUILD            where cox is (build)
    COXSWAIN_DATA    the folder with mnist/t10k-*.gz
    BENCH_SEEDS      sweeps with ASHA, each with other values (3)
    BENCH_ACTIONS    the forms of ASHA: trials pause at a rung, or are stopped there for good (Pause Stop)

Grid search takes all steps of all trials. ASHA runs on the same points once, and then with random values in the same ranges.
The aim: ASHA takes at most a quarter of the steps, and its best trial is as good. minSteps was chosen on the seeds 101 to 103.
"""
import json
import os
import statistics

import digits

SEEDS = int(os.environ.get("BENCH_SEEDS", "3"))
ACTIONS = os.environ.get("BENCH_ACTIONS", "Pause Stop").split()
LISTS = {"learningRate": [0.0003, 0.0014, 0.0065, 0.03], "weightDecay": [0.0001, 0.0022, 0.046, 1]}
GRID = [{"path": "coxswain.training.optimizer.learningRate", "values": LISTS["learningRate"]},
        {"path": "coxswain.model.layers.7.units", "values": [64, 128]},
        {"path": "coxswain.training.batchSize", "values": [16, 32]},
        {"path": "coxswain.training.optimizer.weightDecay", "values": LISTS["weightDecay"]}]


def measure(name, *settings):
    seconds, memory, steps, rows = digits.sweep("grid.yaml", *settings)
    best, early = max(digits.accuracies(rows)), sum(row["state"] in ("Stopped", "Paused") for row in rows)
    digits.report(name, seconds, memory, steps, best, early, 64 * 192)
    return steps, best


def asha(action):
    """Trials that are stopped are judged at tests that the job asks for; those that pause are tested at the rung in any case."""
    tests = [] if action == "Pause" else ["--set=spec.template.coxswain.evaluation={everySteps: 16}"]
    return [f"--set=spec.earlyStopping.action={action}", *tests]


def main():
    points = ['--set=spec.algorithm={"type":"Grid"}', "--set=spec.parameters=" + json.dumps(GRID)]
    all_steps, best = measure("grid", "--set=spec.earlyStopping=null", "--set=spec.template.coxswain.checkpoint=null", *points)
    for action in ACTIONS:
        measure(f"ASHA {action}, the grid's points", *asha(action), *points)
        runs = [measure(f"ASHA {action}, seed {seed}", f"--set=spec.algorithm.seed={seed}", *asha(action)) for seed in range(1, SEEDS + 1)]
        share, found = (statistics.median(column) for column in zip(*((steps / all_steps, 100 * (found - best)) for steps, found in runs)))
        print(f"ASHA {action}: {share:.0%} of the steps of grid search (aim: 25 %), best trial {found:+.1f} points (medians of {SEEDS})", flush=True)


if __name__ == "__main__":
    main()
