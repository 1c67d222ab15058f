# SPDX-License-Identifier: Apache-2.0
"""Studies of Optuna whose trials are jobs. Without a build only what needs no job is tested."""

import json
import pathlib
import re
from typing import Any

import numpy as np
import optuna
import pytest

from coxswain_train import JobFailed, optuna_study
from coxswain_train.optuna_study import Metrics, objective
from test_job import bars, folder, job_of, needs_build  # noqa: F401

RATE = "coxswain.training.optimizer.learningRate"


def progress(**metrics: float) -> dict[str, Any]:
    listed = [{"name": name, "value": str(value), "step": 20} for name, value in metrics.items()]
    return {"progress": {"step": 25, "metrics": listed}}


def test_a_trial_is_the_job_with_its_values() -> None:
    job = job_of(checkpoint={"everySteps": 5}, optimizer={"type": "SGD"})
    trial = job.with_values("digits-3", {RATE: 0.5, "coxswain.model.layers.1.units": 20, "runPolicy.backoffLimit": 1})
    spec = trial.manifest()["spec"]
    assert trial.manifest()["metadata"] == {"name": "digits-3"}
    assert spec["coxswain"]["training"]["optimizer"] == {"type": "SGD", "learningRate": 0.5}
    assert spec["coxswain"]["model"]["layers"][1]["units"] == 20
    assert spec["runPolicy"] == {"backoffLimit": 1}
    again = job.with_values("digits-3", {}).manifest()["spec"]
    assert spec["coxswain"]["checkpoint"]["path"].startswith("digits-3-")
    assert spec["coxswain"]["checkpoint"]["path"] != again["coxswain"]["checkpoint"]["path"]
    assert "export" not in spec["coxswain"]
    assert "learningRate" not in job.spec["coxswain"]["training"]["optimizer"] and "export" in job.spec["coxswain"]


def test_each_value_is_reported_once() -> None:
    trial = optuna.create_study().ask()
    metrics = Metrics(trial, "validationLoss")
    for _ in range(2):
        metrics.take(progress(loss=3, validationLoss=0.5))
    metrics.take(progress(validationLoss=float("nan")))
    assert trial.study.trials[0].intermediate_values == {20: 0.5}
    assert metrics.final() == 0.5
    with pytest.raises(RuntimeError, match="reports no validationAccuracy"):
        Metrics(trial, "validationAccuracy").final()


def write_bars() -> None:
    pixels, labels = bars()
    np.save("pixels.npy", pixels)
    np.save("labels.npy", labels)


@needs_build
def test_a_study_finds_the_rate_that_learns() -> None:
    write_bars()
    job = job_of(workers=1, epochs=20, optimizer="SGD", spec={"coxswain": {"evaluation": {"everySteps": 20}}})
    study = optuna.create_study(sampler=optuna.samplers.GridSampler({"rate": [1e-6, 0.1]}))
    study.optimize(objective(job, lambda trial: {RATE: trial.suggest_float("rate", 1e-6, 1, log=True)}), n_trials=2)
    assert study.best_params == {"rate": 0.1}
    assert study.best_value < 1 < max(trial.value or 0 for trial in study.trials)
    assert all(120 in trial.intermediate_values for trial in study.trials), "each has its value at its last step"


class PruneAtOnce(optuna.pruners.BasePruner):
    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        return trial.last_step is not None


@needs_build
def test_a_trial_that_is_pruned_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    write_bars()
    monkeypatch.setattr(optuna_study, "POLL_SECONDS", 0.2)
    job = job_of(workers=1, epochs=1_000_000, spec={"coxswain": {"evaluation": {"everySteps": 5}}})
    study = optuna.create_study(pruner=PruneAtOnce())
    study.optimize(objective(job, lambda trial: {RATE: trial.suggest_float("rate", 0.01, 0.1)}), n_trials=1)
    assert study.trials[0].state == optuna.trial.TrialState.PRUNED
    assert len(study.trials[0].intermediate_values) == 1


@needs_build
def test_a_job_that_is_refused_says_why() -> None:
    write_bars()
    study = optuna.create_study()
    with pytest.raises(JobFailed, match="learningRate"):
        study.optimize(objective(job_of(), lambda trial: {RATE: -trial.suggest_float("rate", 0.01, 0.1)}), n_trials=1)
    assert study.trials[0].state == optuna.trial.TrialState.FAIL


def tell_commands(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, condition: dict[str, str]) -> pathlib.Path:
    """With kubectl and cox that note what they are told, and a job in this state. Returns the file with the notes."""
    status = {**progress(validationLoss=0.5), "conditions": [{"status": "True", **condition}]}
    for name in ("kubectl", "cox"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} $* >>{folder}/told\necho '{json.dumps({'status': status})}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("COXSWAIN_COX", str(folder / "cox"))
    return folder / "told"


def study_in_cluster(**options: Any) -> optuna.Study:
    study = optuna.create_study(study_name="rates", **options)
    study.optimize(objective(job_of(), lambda trial: {}, cluster=True), n_trials=1)
    return study


def test_in_a_cluster_a_pruned_job_is_suspended(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tell_commands(tmp_path, monkeypatch, {"type": "Running"})
    study = study_in_cluster(pruner=PruneAtOnce())
    assert study.trials[0].state == optuna.trial.TrialState.PRUNED
    assert told.read_text().splitlines() == ["kubectl create -f -", "cox get digits-rates-0 -o json", "cox suspend digits-rates-0"]


def test_in_a_cluster_an_interrupted_job_is_suspended(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    told = tell_commands(tmp_path, monkeypatch, {"type": "Suspended", "reason": "Queued"})
    monkeypatch.setattr(optuna_study.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study_in_cluster()
    assert told.read_text().splitlines()[-1] == "cox suspend digits-rates-0"


def test_in_a_cluster_a_job_that_somebody_suspends_ends_its_trial(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tell_commands(tmp_path, monkeypatch, {"type": "Suspended", "reason": "Suspended"})
    with pytest.raises(JobFailed, match="digits-rates-0 was suspended by somebody else"):
        study_in_cluster()
    assert "cox suspend" not in told.read_text()


def test_in_a_cluster_jobs_of_two_studies_have_different_names() -> None:
    def name_of(study: str | None, name: str = "digits") -> str:
        return optuna_study.name_in_cluster(name, optuna.create_study(study_name=study).ask())

    names = [name_of(study) for study in ("rates", "Rates", "rätes", "x" * 40, "y" * 40, "-", None, None)]
    assert names[0] == "digits-rates-0" and names[1].startswith("digits-rates-")
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", name) and len(name) <= 40 for name in names)
