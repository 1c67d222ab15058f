# SPDX-License-Identifier: Apache-2.0
"""Describes a training job and runs it, on this machine or in a cluster."""

from __future__ import annotations

import copy
import json
import os
import re
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
POLL_SECONDS = 0.1
FRESH = "run(fresh=True)"
ENDING_SECONDS = 5


class JobFailed(RuntimeError):
    """A job has failed or was refused. The message is that of cox, or of kubectl; `code` is the exit code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True)
class Result:
    """What a job has exported. `load` takes it in place of its path.

    `missing` says where the file is when it is not at `path`; a file older than `since` is an earlier job's.
    """

    path: Path
    missing: str = ""
    since: float = 0

    def __fspath__(self) -> str:
        if not self.path.exists() or self.path.stat().st_mtime < self.since:
            raise FileNotFoundError(self.missing)
        return str(self.path)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Returns the trained weights by name."""
        return load_weights(self)


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


def in_python(line: str) -> str:
    """Returns a line of `cox run`; a command that it proposes, which would need the manifest, as what does the same here."""
    if not re.search(r"^  .* run - ", line):
        return line
    if "--delete-volumes" in line:
        return f'  {FRESH}, after its checkpoints in the folder "runs" were deleted\n'
    if "metadata.name=" in line:
        return '  TrainingJob("ANOTHER", ...)\n'
    return f"  {FRESH}\n" if "--fresh" in line else "  run()\n"


def true_conditions(status: Fields) -> dict[str, Fields]:
    """Returns the conditions that are True, by type."""
    return {each["type"]: each for each in status.get("conditions", []) if each["status"] == "True"}


def is_over(status: Fields) -> bool:
    return not true_conditions(status).keys().isdisjoint(("Succeeded", "Failed"))


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

    `here` says where `status`, `watch`, `wait` and `logs` look for the job: on this machine, after `run` and `submit(here=True)`, or in
    the cluster. Set it to True for a job that another process has submitted here.
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
        self.here = False
        self.submitted = 0.0
        self.cox: subprocess.Popen[str] | None = None
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
        other.name, other.cox = name, None
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

    def failure(self, lines: Iterable[str], code: int) -> JobFailed:
        """Returns the error of a `cox run` that ended with this code, with the reason that its lines give."""
        starts = ("cox run: ", f"{self.name} has failed: ", f"{self.name} was deleted")
        told = [line for line in lines if line.startswith(starts)]
        why = told[-1].removeprefix("cox run: ").strip() if told else f"cox run has ended with exit code {code}"
        return JobFailed(why + (f"; {FRESH} replaces the earlier run" if " is immutable" in why else ""), code)

    def run(self, *, fresh: bool = False) -> None:
        """Trains on this machine: `cox run`, whose lines are printed. Returns when the job has succeeded.

        An interrupted run is continued by running the job again. A job that is over, or has been changed, runs again with
        `fresh`: cox forgets what it knows of the earlier one (docs/cox.md). Checkpoints stay, and are continued from.
        """
        self.here = True
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
                    print(in_python(line), end="", flush=True)
                    lines.append(line)
            except BaseException:  # a KeyboardInterrupt, above all: cox ends its pods before it ends itself
                cox.send_signal(signal.SIGINT)
                cox.stdout.read()
                raise
        if cox.returncode != 0:
            raise self.failure(lines, cox.returncode)

    def submit(self, *, here: bool = False, fresh: bool = False, new: bool = False) -> None:
        """Hands the job to the cluster of the kubeconfig ($KUBECONFIG, ~/.kube/config): `kubectl apply`. Does not wait. `new`: a job that
        exists under this name is an error (`kubectl create`).

        With `here` the job trains on this machine, by a `cox run` in the background that goes on when this process ends; its lines go to
        NAME.log in "runs". `fresh` is for such a job, as in `run`.
        """
        self.here = here
        if here:
            return self.start(["--fresh"] if fresh else [])
        if fresh:
            raise ValueError("fresh is for jobs on this machine: delete the job in the cluster (cox delete), and submit it again")
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise FileNotFoundError("kubectl was not found on the PATH; it hands jobs to a cluster. submit(here=True) needs none")
        self.submitted = time.time()
        print(answer_of(kubectl, "create" if new else "apply", "-f", "-", text=self.yaml()), end="")

    def start(self, options: list[str]) -> None:
        """Starts `cox run` in the background, and returns when the job exists."""
        command = self.command(*options)
        log = self.log()
        with log.open("w") as out:
            self.cox = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, encoding="utf-8", start_new_session=True
            )
        assert self.cox.stdin
        with self.cox.stdin as stdin:
            stdin.write(self.yaml())
        while self.cox.poll() is None:
            if f"\n{self.name} is " in "\n" + log.read_text(errors="replace"):  # "digits is Created"
                return
            time.sleep(POLL_SECONDS)
        if self.cox.returncode != 0:
            raise self.failure(log.read_text(errors="replace").splitlines(), self.cox.returncode)

    def stop(self) -> None:
        """Ends what submit(here=True) has started; submit it again to continue. In a cluster the job is suspended (`cox resume`)."""
        if not self.here:
            answer_of(cox_program(), "suspend", self.name)
        elif self.cox is None:
            raise RuntimeError(f"{self.name} was not submitted by this process: end its cox run with Ctrl-C or SIGINT")
        else:
            self.cox.send_signal(signal.SIGINT)
            self.cox.wait()

    def answer(self, command: str, *options: str) -> str:
        """Returns what a command of cox says of the job. On this machine it tries again for a while: none has an answer while `cox run`
        ends its control plane."""
        if not self.here:
            return answer_of(cox_program(), command, self.name, *options)
        until = time.monotonic() + ENDING_SECONDS
        while True:
            try:
                return answer_of(cox_program(), command, self.name, *options, "--state", self.name)
            except JobFailed:
                if time.monotonic() > until:
                    raise
            time.sleep(POLL_SECONDS)

    def status(self) -> dict[str, Any]:
        """Returns the job's status: conditions, progress, replicaStatuses and so on (docs/api.md)."""
        status: dict[str, Any] = json.loads(self.answer("get", "-o", "json")).get("status", {})
        return status

    def wait(self, timeout: float | None = None) -> None:
        """Waits until the job has succeeded, for at most `timeout` seconds, else raises TimeoutError."""
        if self.here:
            return self.wait_here(timeout)
        limit = [] if timeout is None else ["--timeout", f"{max(1, round(timeout))}s"]
        try:
            self.answer("wait", *limit)
        except JobFailed as failed:
            if failed.code == TIMED_OUT:
                raise TimeoutError(str(failed)) from None
            raise

    def wait_here(self, timeout: float | None) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        while not is_over(status := self.status()):
            if self.cox is not None and self.cox.poll() not in (None, 0):
                raise self.failure(self.log().read_text(errors="replace").splitlines(), self.cox.returncode)
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"{self.name} is not over after {timeout} s")
            time.sleep(POLL_SECONDS)
        if self.cox is not None:
            self.cox.wait()  # it is about to end, and the weights are complete
        failed = true_conditions(status).get("Failed")
        if failed:
            raise JobFailed(f"{self.name} has failed: {failed.get('message', '')}", 1)

    def log(self) -> Path:
        return self.folders["runs"] / f"{self.name}.log"

    def watch(self, every: float = 1) -> None:
        """Prints the job's progress whenever it has changed, until the job has succeeded; a failed job raises JobFailed. `every`:
        seconds between two looks."""
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
        """Returns the logs of all pods of the job, merged by time, each line with its pod."""
        return self.answer("logs")

    def result(self) -> Result:
        """Returns the trained weights. Those of a job in a cluster must be copied to this machine first; the error says from where."""
        export = self.spec["coxswain"]["export"]
        storage, file = export.get("storage"), export["path"]
        path = self.folders.get(storage, Path("/")) / file
        if self.here or not self.submitted:
            return Result(path, f"{path} does not exist: the job {self.name} has not exported its weights yet")
        claims = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName") for each in self.spec.get("storage", [])}
        if claim := claims.get(storage):
            where = f"the claim {claim}: copy it from a pod that mounts the claim, kubectl cp POD:FOLDER/{file} {path}"
        else:
            where = f"the storage {storage}: copy it from there to {path}"
        return Result(path, f"the job {self.name} exports its weights in the cluster, as {file} in {where}", self.submitted)
