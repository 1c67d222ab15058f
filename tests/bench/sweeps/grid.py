# SPDX-License-Identifier: Apache-2.0
"""ASHA beside grid search on real training: the sweep of grid.yaml, and a grid of as many trials in the same ranges.

    BUILD            where cox is (build)
    COXSWAIN_DATA    the folder with mnist/t10k-*.gz

Grid search takes all steps of all trials. The aim: ASHA takes at most a quarter of them, and its best trial is as good.
"""
import json

import digits

LISTS = {"learningRate": [0.0003, 0.0014, 0.0065, 0.03], "weightDecay": [0.0001, 0.0022, 0.046, 1]}
GRID = [{"path": "coxswain.training.optimizer.learningRate", "values": LISTS["learningRate"]},
        {"path": "coxswain.model.layers.7.units", "values": [64, 128]},
        {"path": "coxswain.training.batchSize", "values": [16, 32]},
        {"path": "coxswain.training.optimizer.weightDecay", "values": LISTS["weightDecay"]}]


def main():
    results = {}
    settings = {"ASHA": [], "grid": ["--set=spec.earlyStopping=null", '--set=spec.algorithm={"type":"Grid"}', "--set=spec.parameters=" + json.dumps(GRID)]}
    for name, more in settings.items():
        seconds, steps, rows = digits.sweep("grid.yaml", *more)
        results[name] = steps, max(digits.accuracies(rows))
        digits.report(name, seconds, steps, results[name][1], sum(row["state"] == "Stopped" for row in rows), 64 * 192)
    (few, found), (all_steps, best) = results["ASHA"], results["grid"]
    print(f"ASHA takes {few / all_steps:.0%} of the steps of grid search (aim: 25 %); its best trial is {100 * (found - best):+.1f} points better", flush=True)


if __name__ == "__main__":
    main()
