# SPDX-License-Identifier: Apache-2.0
"""What early stopping saves on real training: the sweep of digits.yaml with ASHA, and the same trials to their end.

    BUILD                  where cox is (build)
    COXSWAIN_DATA          the folder with mnist/t10k-*.gz
    BENCH_TRIALS           trials of each sweep (64)
    BENCH_OPTUNA_PYTHON    an interpreter with PyTorch and Optuna: runs optuna_digits.py with the same values; empty: without

Both sweeps draw the same values, as these depend on the seed and the number of the trial alone. Counts the steps that all trials have
taken, those that were stopped included. "Steps for the same accuracy" are those that trials that all run to their end take on average,
in random order, until one of them is as good as the best one of ASHA: (n + 1) / (k + 1) trials if k of n are.
"""
import csv
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
COX = pathlib.Path(os.environ.get("BUILD", "build")) / "cox"
DATA = os.environ["COXSWAIN_DATA"]
TRIALS = int(os.environ.get("BENCH_TRIALS", "64"))
STEPS = 640


def steps_taken(state):
    """Of all trials, from the objects that the embedded control plane has stored."""
    with sqlite3.connect(state / "objects.db") as store:
        bodies = store.execute("SELECT body FROM objects WHERE resource LIKE '%trainingjobs%'").fetchall()
    progress = [json.loads(body)["status"].get("progress", {}) for (body,) in bodies]
    return sum(each.get("step", 0) for each in progress)


def sweep(file, *settings):
    """Runs it; returns seconds, steps and the rows of its table."""
    with tempfile.TemporaryDirectory() as folder:
        state = pathlib.Path(folder) / "state"
        began = time.monotonic()
        run = subprocess.run([COX, "run", HERE / file, "--state", state, "--volume", f"digits={DATA}", *settings], capture_output=True, text=True)
        seconds = time.monotonic() - began
        if run.returncode != 0:
            sys.exit(f"cox run: {run.stdout}{run.stderr}")
        with open(state / "trials.csv", newline="") as table:
            return seconds, steps_taken(state), list(csv.DictReader(table))


def accuracies(rows):
    return [float(row["objective"]) for row in rows if row["state"] == "Succeeded"]


def report(name, seconds, steps, best, stopped, all_steps=TRIALS * STEPS):
    share = steps / all_steps
    print(f"{name:22}  {steps:6} steps ({share:4.0%})  best {best:.1%}  {seconds:5.0f} s  {stopped} stopped", flush=True)


def run_optuna(python, rows):
    training = "coxswain.training."
    names = {"learning_rate": "optimizer.learningRate", "batch_size": "batchSize", "weight_decay": "optimizer.weightDecay"}
    values = [{name: float(row[training + column]) for name, column in names.items()} for row in rows]
    command = [python, HERE / "optuna_digits.py", DATA, str(STEPS)]
    run = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"optuna_digits.py: {run.stderr}")
    told = json.loads(run.stdout)
    report(f"Optuna {told['version']}, PyTorch", told["seconds"], told["steps"], told["best"], told["pruned"])


def main():
    trials = f"--set=spec.maxTrials={TRIALS}"
    seconds, steps, rows = sweep("digits.yaml", trials)
    best = max(accuracies(rows))
    report("ASHA", seconds, steps, best, sum(row["state"] == "Stopped" for row in rows))
    seconds, all_steps, rows = sweep("digits.yaml", trials, "--set=spec.earlyStopping=null")
    report("all to their end", seconds, all_steps, max(accuracies(rows)), 0)
    as_good = sum(accuracy >= best for accuracy in accuracies(rows))
    needed = (TRIALS + 1) / (as_good + 1) * STEPS
    print(f"steps for the same accuracy: {needed:.0f}, {needed / steps:.1f} times as many as with ASHA", flush=True)
    if python := os.environ.get("BENCH_OPTUNA_PYTHON"):
        run_optuna(python, rows)


if __name__ == "__main__":
    main()
