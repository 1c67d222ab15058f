# SPDX-License-Identifier: Apache-2.0
"""Describes a training job and runs it, on this machine or in a cluster."""

from __future__ import annotations

import copy
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from numpy.typing import NDArray

from coxswain_train.weights import load_weights

Fields = Mapping[str, Any]
Folder = str | os.PathLike[str]

NAME_MAX = 40  # of a job
TIMED_OUT = 3  # exit code of cox (docs/cox.md)


class JobFailed(RuntimeError):
    """A job has failed or was refused. The message is that of cox, or of kubectl; `code` is the exit code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True)
class Result:
    """What a job has exported."""

    path: Path

    def weights(self) -> dict[str, NDArray[Any]]:
        """Returns the trained weights by name."""
        return load_weights(self.path)


def merged(fields: Any, changes: Any) -> Any:
    """Returns `fields` with `changes` laid over them (a JSON merge patch): None removes a field, a list replaces a list."""
    if not isinstance(changes, Mapping):
        return changes
    result = dict(fields) if isinstance(fields, Mapping) else {}
    for name, change in changes.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), change)
    return result


def put(fields: Any, path: str, value: Any) -> None:
    """Sets the field of a path such as coxswain.model.layers.0.units, where a number is an element of a list. Changes `fields`."""
    name, _, rest = path.partition(".")
    key: Any = int(name) if isinstance(fields, list) else name
    if not rest:
        fields[key] = value
        return
    if isinstance(fields, dict):
        fields.setdefault(key, {})
    put(fields[key], rest, value)


def with_listed_inputs(data: Fields) -> Fields:
    """Returns spec.coxswain.data with the files of inputs, given as {name: file}, as the list that the API has."""
    result = dict(data)
    for part in ("train", "validation"):
        files = result.get(part)
        if isinstance(files, Mapping) and isinstance(files.get("inputs"), Mapping):
            listed = [{"name": name, "file": file} for name, file in files["inputs"].items()]
            result[part] = {**files, "inputs": listed}
    return result


def cox_program() -> str:
    found = shutil.which(os.environ.get("COXSWAIN_COX") or "cox")
    if found is None:
        raise FileNotFoundError("cox was not found: build it with make, and put it on the PATH or name it in COXSWAIN_COX")
    return found


def answer_of(*command: str, text: str | None = None) -> str:
    """Returns what a command prints."""
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise JobFailed(done.stderr.strip() or done.stdout.strip(), done.returncode)
    return done.stdout


def progress_line(progress: Fields) -> str:
    """Returns status.progress as people read it: "step 40/120, 12,300 examples a second, 30 s left, loss 0.31"; "" before the first step."""
    if "step" not in progress:
        return ""
    words = [f"step {progress['step']}" + (f"/{progress['totalSteps']}" if "totalSteps" in progress else "")]
    if "examplesPerSecond" in progress:
        words.append(f"{float(progress['examplesPerSecond']):,.0f} examples a second")
    if "secondsRemaining" in progress:
        words.append(f"{progress['secondsRemaining']} s left")
    words += [f"{metric['name']} {metric['value']}" for metric in progress.get("metrics", [])]
    return ", ".join(words)


def is_over(status: Fields) -> bool:
    return any(condition["type"] in ("Succeeded", "Failed") and condition["status"] == "True" for condition in status.get("conditions", []))


class TrainingJob:
    """A TrainingJob of coxswain.dev/v1beta1. docs/api.md has all fields of its spec.

    `model` is the name of a preset or the fields of spec.coxswain.model; `program`, in its place, is a folder that an
    export function of this package has written. `data` has the fields of spec.coxswain.data; the files of several inputs may
    also be a dict by name. `optimizer` is the optimizer's type or its fields, `strategy` the strategy's. `checkpoint` has the
    fields of spec.coxswain.checkpoint, as in {"everySteps": 100}; without it nothing is saved but the trained weights.

    `storage` names folders, and data and other fields refer to these names. In a cluster each is a PersistentVolumeClaim of that
    name, here it is the folder. Two have defaults: "runs", the folder runs, which gets checkpoints and weights
    (NAME.safetensors), and "models", the folder that `program` is in.

    `spec` is laid over the spec that comes of all this, and may have any field: {"image": "…"},
    {"coxswain": {"training": {"seed": 7}}}. None removes a field.

    The values are checked by the API server, when the job is run or submitted.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str | Fields | None = None,
        program: Folder | None = None,
        data: Fields,
        storage: Mapping[str, Folder] | None = None,
        batch_size: int,
        steps: int | None = None,
        epochs: int | None = None,
        optimizer: str | Fields | None = None,
        strategy: str | Fields = "MultiWorkerMirrored",
        workers: int = 2,
        checkpoint: Fields | None = None,
        spec: Fields | None = None,
    ) -> None:
        self.name = name
        self.folders = {"runs": Path("runs")}
        trained = {"preset": model} if isinstance(model, str) else model
        if program is not None:
            path = Path(program).resolve()
            self.folders["models"] = path.parent
            trained = merged(trained, {"program": {"storage": "models", "path": path.name}})
        self.folders.update({claim: Path(folder) for claim, folder in (storage or {}).items()})
        coxswain = {
            "strategy": {"type": strategy} if isinstance(strategy, str) else strategy,
            "model": trained,
            "data": with_listed_inputs(data),
            "training": {
                "epochs": epochs,
                "steps": steps,
                "batchSize": batch_size,
                "optimizer": {"type": optimizer} if isinstance(optimizer, str) else optimizer,
            },
            "checkpoint": None if checkpoint is None else {"storage": "runs", "path": name, **checkpoint},
            "export": {"storage": "runs", "path": f"{name}.safetensors"},
        }
        claims = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in sorted(self.folders)]
        described = merged({}, {"workers": {"replicas": workers}, "storage": claims, "coxswain": coxswain})
        self.spec: dict[str, Any] = merged(described, spec or {})

    def manifest(self) -> dict[str, Any]:
        """Returns the Kubernetes object, a copy of plain dicts and lists."""
        head = {"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingJob", "metadata": {"name": self.name}}
        made: dict[str, Any] = json.loads(json.dumps({**head, "spec": self.spec}))
        return made

    def yaml(self) -> str:
        """Returns the manifest as YAML, for `cox run` and `kubectl apply`."""
        text: str = yaml.safe_dump(self.manifest(), sort_keys=False)
        return text

    def with_values(self, name: str, values: Mapping[str, Any]) -> TrainingJob:
        """Returns a job of that name with other values, by the path of the field in the spec ("coxswain.training.batchSize").

        It can run beside this one: it has no export, and checkpoints, if any, in a new folder, so that it never goes on from those of
        an earlier job of its name.
        """
        other = copy.copy(self)
        other.name = name
        other.spec = copy.deepcopy(self.spec)
        for path, value in values.items():
            put(other.spec, path, value)
        coxswain = other.spec.get("coxswain", {})
        coxswain.pop("export", None)
        if "checkpoint" in coxswain:
            coxswain["checkpoint"]["path"] = f"{name}-{uuid.uuid4().hex[:8]}"
        return other

    def command(self, *options: str) -> list[str]:
        """Returns the command that runs the job, whose manifest it reads, with the folders of `storage` as volumes. Makes "runs"."""
        command = [cox_program(), "run", "-", *options]
        for storage in self.spec.get("storage", []):
            claim = storage.get("persistentVolumeClaim", {}).get("claimName")
            if claim and storage["name"] in self.folders:
                command += ["--volume", f"{claim}={self.folders[storage['name']].resolve()}"]
        self.folders["runs"].mkdir(parents=True, exist_ok=True)
        return command

    def reason_in(self, lines: Iterable[str], code: int) -> str:
        """Returns why the job has failed, as `cox run` says it in its lines."""
        starts = ("cox run: ", f"{self.name} has failed: ", f"{self.name} was deleted")
        told = [line for line in lines if line.startswith(starts)]
        return told[-1].removeprefix("cox run: ").strip() if told else f"cox run has ended with exit code {code}"

    def run(self, *, fresh: bool = False) -> None:
        """Trains on this machine: `cox run`, whose lines are printed. Returns when the job has succeeded.

        An interrupted run is continued by running the job again. A job that is over, or has been changed, runs again with
        `fresh`: cox forgets what it knows of the earlier one (docs/cox.md). Checkpoints stay, and are continued from.
        """
        lines = []
        with subprocess.Popen(
            self.command(*(["--fresh"] if fresh else [])),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as cox:
            assert cox.stdin and cox.stdout
            try:
                with cox.stdin as stdin:
                    stdin.write(self.yaml())
                for line in cox.stdout:
                    print(line, end="", flush=True)
                    lines.append(line)
            except BaseException:  # a KeyboardInterrupt, above all: cox ends its pods before it ends itself
                cox.send_signal(signal.SIGINT)
                cox.stdout.read()
                raise
        if cox.returncode != 0:
            raise JobFailed(self.reason_in(lines, cox.returncode), cox.returncode)

    def submit(self, *, new: bool = False) -> None:
        """Hands the job to the cluster of the kubeconfig ($KUBECONFIG, ~/.kube/config): `kubectl apply`. Does not wait. `new`: a job that
        exists under this name is an error (`kubectl create`)."""
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise FileNotFoundError("kubectl was not found on the PATH; it hands jobs to a cluster")
        print(answer_of(kubectl, "create" if new else "apply", "-f", "-", text=self.yaml()), end="")

    def status(self) -> dict[str, Any]:
        """Returns the status of the job in the cluster: conditions, progress, replicaStatuses and so on (docs/api.md)."""
        status: dict[str, Any] = json.loads(answer_of(cox_program(), "get", self.name, "-o", "json")).get("status", {})
        return status

    def wait(self, timeout: float | None = None) -> None:
        """Waits until the job in the cluster has succeeded, for at most `timeout` seconds, else raises TimeoutError."""
        limit = [] if timeout is None else ["--timeout", f"{max(1, round(timeout))}s"]
        try:
            answer_of(cox_program(), "wait", self.name, *limit)
        except JobFailed as failed:
            if failed.code == TIMED_OUT:
                raise TimeoutError(str(failed)) from None
            raise

    def watch(self, every: float = 1) -> None:
        """Prints the progress of the job in the cluster whenever it has changed, until the job has succeeded; a failed job raises
        JobFailed. `every`: seconds between two looks."""
        told = ""
        while True:
            status = self.status()
            line = progress_line(status.get("progress", {}))
            if line not in ("", told):
                print(line, flush=True)
                told = line
            if is_over(status):
                return self.wait()
            time.sleep(every)

    def logs(self) -> str:
        """Returns the logs of all pods of the job in the cluster, merged by time, each line with its pod."""
        return answer_of(cox_program(), "logs", self.name)

    def result(self) -> Result:
        """Returns where the trained weights are on this machine. In a cluster they are on the claim of that storage."""
        export = self.spec["coxswain"]["export"]
        return Result(self.folders.get(export.get("storage"), Path("/")) / export["path"])
