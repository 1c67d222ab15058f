# SPDX-License-Identifier: Apache-2.0
"""Tries values for a training job that a study of Optuna suggests: each trial of the study is a job of its own."""

from __future__ import annotations

import hashlib
import json
import math
import re
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna

from coxswain_train.job import NAME_MAX, JobFailed, TrainingJob, answer_of, cox_program, true_conditions

Values = Mapping[str, Any]

POLL_SECONDS = 1.0
KEPT = {"loss": "loss", "validationLoss": "validationLoss", "validationAccuracy": "accuracy", "validationRMSE": "validationRMSE"}  # in run.json


class Metrics:
    """Tells a trial each new value of a metric, with its step."""

    def __init__(self, trial: optuna.Trial, name: str) -> None:
        self.trial = trial
        self.name = name
        self.last: float | None = None
        self.step = -1

    def take(self, status: Mapping[str, Any]) -> None:
        progress = status.get("progress", {})
        for metric in progress.get("metrics", []):
            step, value = int(metric.get("step", progress.get("step", 0))), float(metric["value"])
            if metric["name"] == self.name and math.isfinite(value):
                self.report(value, step)

    def report(self, value: float, step: int) -> None:
        if step > self.step:
            self.last, self.step = value, step
            self.trial.report(value, step)

    def final(self) -> float:
        if self.last is None:
            raise RuntimeError(f"the job reports no {self.name}; take another metric, or give the job data for validation")
        return self.last


def objective(
    job: TrainingJob,
    values: Callable[[optuna.Trial], Values],
    *,
    metric: str = "validationLoss",
    cluster: bool = False,
) -> Callable[[optuna.Trial], float]:
    """Returns an objective for `study.optimize`, which trains `job` once for each trial and returns the metric at its end.

    `values` gets the trial and returns what it suggests, by the path of the field in the job's spec:
    {"coxswain.training.batchSize": trial.suggest_categorical("batch", [16, 32])}. Each trial is a job NAME-NUMBER, in a cluster
    NAME-STUDY-NUMBER, without the export of `job`, and with a checkpoint directory of its own if `job` has checkpoints. While it
    runs, each new value of the metric goes to `trial.report`. A trial that the study's pruner gives up is stopped: its job is ended
    here, and suspended in a cluster. The same happens to a job whose trial is interrupted, by Ctrl-C for instance.

    Jobs run on this machine, or with `cluster` in that of the kubeconfig. A job that fails, or that somebody else suspends, raises
    JobFailed, which ends the study unless `optimize(catch=JobFailed)`.
    """

    def train(trial: optuna.Trial) -> float:
        metrics = Metrics(trial, metric)
        if cluster:
            run_in_cluster(job.with_values(name_in_cluster(job.name, trial), values(trial)), metrics)
        else:
            run_here(job.with_values(f"{job.name}-{trial.number}", values(trial)), metrics)
        return metrics.final()

    return train


def name_in_cluster(name: str, trial: optuna.Trial) -> str:
    """Returns NAME-STUDY-NUMBER, so that trials of two studies have different jobs. A study whose name cannot be part of a job's name is
    told from others by a digest."""
    study = trial.study.study_name
    room = NAME_MAX - len(f"{name}--{trial.number}")
    if len(study) > room or not re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", study):
        digest = hashlib.sha256(study.encode()).hexdigest()[:8]
        words = re.sub("[^a-z0-9]+", "-", study.lower()).strip("-")[: max(0, room - len(digest) - 1)].rstrip("-")
        study = f"{words}-{digest}" if words else digest
    return f"{name}-{study}-{trial.number}"


def run_in_cluster(job: TrainingJob, metrics: Metrics) -> None:
    job.submit(new=True)
    try:
        state, message = follow_in_cluster(job, metrics)
    except BaseException:  # nobody else ends the job
        suspend(job)
        raise
    if state == "Failed":
        raise JobFailed(f"{job.name} has failed: {message}", 1)
    if state == "Suspended":
        raise JobFailed(f"{job.name} was suspended by somebody else, so its trial has no result; `cox resume {job.name}` lets it go on", 1)


def follow_in_cluster(job: TrainingJob, metrics: Metrics) -> tuple[str, str]:
    """Returns the state in which the job is over, or was suspended, and the message of the condition. A job that waits in a queue of Kueue
    is suspended, too, for another reason."""
    while True:
        status = job.status()
        metrics.take(status)
        states = true_conditions(status)
        for state in ("Failed", "Succeeded", "Suspended"):
            if state in states and (state != "Suspended" or states[state].get("reason") == "Suspended"):
                return state, states[state].get("message", "")
        if metrics.trial.should_prune():
            raise optuna.TrialPruned
        time.sleep(POLL_SECONDS)


def suspend(job: TrainingJob) -> None:
    try:
        job.stop()
    except (JobFailed, OSError) as failed:
        warnings.warn(f"{job.name} could not be suspended and may go on: {failed}", stacklevel=2)


def run_here(job: TrainingJob, metrics: Metrics) -> None:
    with tempfile.TemporaryDirectory(prefix="coxswain-trial-") as folder:
        state = Path(folder) / "state"
        log = Path(folder) / "log"
        with log.open("w") as out:
            cox = subprocess.Popen(
                job.command("--state", str(state)), stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, encoding="utf-8"
            )
            try:
                assert cox.stdin
                with cox.stdin as stdin:
                    stdin.write(job.yaml())
                follow(cox, job.name, state, metrics)
            except BaseException:  # cox ends its pods before it ends itself
                cox.send_signal(signal.SIGINT)
                cox.wait()
                raise
        if cox.returncode != 0:
            raise job.failure(log.read_text(errors="replace").splitlines(), cox.returncode)
        take_last(state, metrics)


def follow(cox: subprocess.Popen[str], name: str, state: Path, metrics: Metrics) -> None:
    """Returns when cox has ended."""
    while True:
        try:
            cox.wait(POLL_SECONDS)
            return
        except subprocess.TimeoutExpired:
            pass
        try:
            told = answer_of(cox_program(), "get", name, "-o", "json", "--kubeconfig", str(state / "kubeconfig"))
        except JobFailed:  # the control plane has not begun, or has ended
            continue
        metrics.take(json.loads(told).get("status", {}))
        if metrics.trial.should_prune():
            raise optuna.TrialPruned


def take_last(state: Path, metrics: Metrics) -> None:
    """What cox has kept of the run (docs/cox.md) may be newer than what was last asked for."""
    kept = json.loads((state / "run.json").read_text())
    value = kept.get(KEPT.get(metrics.name, ""))
    if value is not None:
        metrics.report(float(value), int(kept.get("step", 0)))
