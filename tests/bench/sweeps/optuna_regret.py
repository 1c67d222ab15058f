# SPDX-License-Identifier: Apache-2.0
"""Prints the regret of Optuna's TPESampler, with its defaults, on two functions of sweep_search.h after as many trials as bench_tpe.c.

    optuna_regret.py SEEDS [FUNCTION]
"""
import math
import statistics
import sys

import optuna

TRIALS = 100


def branin(x):
    bend = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


HEIGHTS = [1, 1.2, 3, 3.2]
STEEPNESS = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
CENTERS = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]


def hartmann6(x):
    def peak(height, steepness, center):
        return height * math.exp(-sum(s * (at - c) ** 2 for s, at, c in zip(steepness, x, center)))

    return -sum(map(peak, HEIGHTS, STEEPNESS, CENTERS))


PROBLEMS = {
    "branin": (branin, [(-5, 10), (0, 15)], 0.397887),
    "hartmann6": (hartmann6, [(0, 1)] * 6, -3.32237),
}


def regret(name, seed):
    function, ranges, lowest = PROBLEMS[name]
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(
        lambda trial: function([trial.suggest_float(f"x{i}", *ends) for i, ends in enumerate(ranges)]),
        n_trials=TRIALS,
    )
    return study.best_value - lowest


def main():
    seeds = int(sys.argv[1])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for name in sys.argv[2:] or PROBLEMS:
        regrets = [regret(name, seed) for seed in range(seeds)]
        low, median, high = statistics.quantiles(regrets, n=4, method="inclusive")
        print(
            f"{name:9}  Optuna {optuna.__version__}  regret after {TRIALS} trials: median {median:.4g}, "
            f"quartiles {low:.4g} and {high:.4g}, of {seeds} seeds",
            flush=True,
        )


main()
