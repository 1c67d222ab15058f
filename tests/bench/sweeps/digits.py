# SPDX-License-Identifier: Apache-2.0
"""What early stopping saves on real training: the sweep of digits.yaml with ASHA, and the same trials to their end.

    BUILD                  where cox is (build)
    COXSWAIN_DATA          the folder with mnist/t10k-*.gz
    BENCH_TRIALS           trials of each sweep (64)
    BENCH_STEPS            steps of each trial (640)
    BENCH_FULL             1: also without early stopping; 0: not (1)
    BENCH_PEERS_PYTHON     an interpreter with PyTorch, Optuna and Ray: runs BENCH_PEERS with the same values; empty: without
    BENCH_PEERS            which of the programs beside this one (optuna_digits ray_digits)

Both sweeps draw the same values, as these depend on the seed and the number of the trial alone. Counts the steps that all trials have
taken, those that were stopped included. "Steps for the same accuracy" are those that trials that all run to their end take on average,
in random order, until one of them is as good as the best one of ASHA: (n + 1) / (k + 1) trials if k of n are. The memory is
that of all processes together at its peak, shared pages counted once, looked at every second.
"""
import csv
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
COX = pathlib.Path(os.environ.get("BUILD", "build")) / "cox"
DATA = os.environ["COXSWAIN_DATA"]
TRIALS = int(os.environ.get("BENCH_TRIALS", "64"))
STEPS = int(os.environ.get("BENCH_STEPS", "640"))


def steps_taken(state):
    """Of all trials, from the objects that the embedded control plane has stored."""
    with sqlite3.connect(state / "objects.db") as store:
        bodies = store.execute("SELECT body FROM objects WHERE resource LIKE '%trainingjobs%'").fetchall()
    progress = [json.loads(body)["status"].get("progress", {}) for (body,) in bodies]
    return sum(each.get("step", 0) for each in progress)


def memory_of_tree(root):
    """MB of a process and its descendants; those that end meanwhile do not count."""
    parents, total = {}, 0
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for each in parents:
        above = each
        while above in parents and above != root:
            above = parents[above]
        if above == root:
            try:
                lines = pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000
    return total


def run_measured(command, text=None):
    """Runs a command; returns its output, seconds and the peak of its memory in MB."""
    began, peak, ended = time.monotonic(), 0, threading.Event()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:

        def watch():
            nonlocal peak
            while not ended.wait(1):
                peak = max(peak, memory_of_tree(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, errors = process.communicate(text)
        ended.set()
        watcher.join()
    if process.returncode != 0:
        sys.exit(f"{command}: {out}{errors}")
    return out, time.monotonic() - began, peak


def sweep(file, *settings):
    """Runs it; returns seconds, MB, steps and the rows of its table."""
    with tempfile.TemporaryDirectory() as folder:
        state = pathlib.Path(folder) / "state"
        _, seconds, memory = run_measured([COX, "run", HERE / file, "--state", state, "--volume", f"digits={DATA}", *settings])
        with open(state / "trials.csv", newline="") as table:
            return seconds, memory, steps_taken(state), list(csv.DictReader(table))


def accuracies(rows):
    return [float(row["objective"]) for row in rows if row["state"] == "Succeeded"]


def report(name, seconds, memory, steps, best, stopped, all_steps=TRIALS * STEPS):
    share = steps / all_steps
    print(f"{name:30}  {steps:6} steps ({share:4.0%})  best {best:.1%}  {seconds:5.0f} s  {memory:5.0f} MB  {stopped} stopped", flush=True)


def run_peer(python, program, rows):
    training = "coxswain.training."
    names = {"learning_rate": "optimizer.learningRate", "batch_size": "batchSize", "weight_decay": "optimizer.weightDecay"}
    values = [{name: float(row[training + column]) for name, column in names.items()} for row in rows]
    out, seconds, memory = run_measured([python, HERE / f"{program}.py", DATA, str(STEPS)], json.dumps(values))
    told = json.loads(out.splitlines()[-1])
    report(told["name"], seconds, memory, told["steps"], told["best"], told["pruned"])


def main():
    size = [f"--set=spec.maxTrials={TRIALS}", f"--set=spec.template.coxswain.training.steps={STEPS}"]
    seconds, memory, steps, rows = sweep("digits.yaml", *size)
    best = max(accuracies(rows))
    report("ASHA", seconds, memory, steps, best, sum(row["state"] == "Stopped" for row in rows))
    if os.environ.get("BENCH_FULL", "1") == "1":
        seconds, memory, all_steps, full = sweep("digits.yaml", *size, "--set=spec.earlyStopping=null")
        report("all to their end", seconds, memory, all_steps, max(accuracies(full)), 0)
        as_good = sum(accuracy >= best for accuracy in accuracies(full))
        needed = (TRIALS + 1) / (as_good + 1) * STEPS
        print(f"steps for the same accuracy: {needed:.0f}, {needed / steps:.1f} times as many as with ASHA", flush=True)
    if python := os.environ.get("BENCH_PEERS_PYTHON"):
        for program in os.environ.get("BENCH_PEERS", "optuna_digits ray_digits").split():
            run_peer(python, program, rows)


if __name__ == "__main__":
    main()
