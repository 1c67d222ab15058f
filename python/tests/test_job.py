# SPDX-License-Identifier: Apache-2.0
"""Jobs that are described in Python, run by the real cox and worker of the build. Without a build they are only described."""

import os
import pathlib
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import nbclient
import nbformat
import numpy as np
import pytest
import yaml

from coxswain_train import JobFailed, TrainingJob
from coxswain_train import job as job_module

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD") or ROOT / "build").resolve()
PROGRAMS = ("cox", "coxswain-operator", "coxswain-standalone", "coxswain-worker")
needs_build = pytest.mark.skipif(not all((BUILD / name).exists() for name in PROGRAMS), reason="cox and the worker are not built")
LAYERS = {"inputShape": [28, 28, 1], "layers": [{"type": "Flatten"}, {"name": "out", "type": "Dense", "units": 10}]}
BROKEN = {"name": "main", "command": ["sh", "-c", "exit 65"]}
FILES = {"format": "NPY", "storage": "data", "train": {"images": "pixels.npy", "labels": "labels.npy"}, "validation": {"last": 100}}


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COXSWAIN_COX", str(BUILD / "cox"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def bars(count: int = 700) -> tuple[Any, Any]:
    """Images whose class is the height of a bright bar, and the classes."""
    labels = np.arange(count, dtype=np.int32) % 10
    pixels = 0.2 * np.random.default_rng(0).random((count, 28, 28, 1), np.float32)
    for image, label in zip(pixels, labels):
        image[2 * label + 3 : 2 * label + 6, 4:24] += 0.8
    return pixels, labels


def job_of(name: str = "digits", **changes: Any) -> TrainingJob:
    arguments = {"model": LAYERS, "data": FILES, "storage": {"data": "."}, "batch_size": 100, "epochs": 10, "optimizer": "AdamW"}
    return TrainingJob(name, **{**arguments, **changes})


def test_the_manifest_of_a_program() -> None:
    described = TrainingJob(
        "digits",
        program="exported/digits",
        data=FILES,
        storage={"data": "mnist"},
        batch_size=100,
        steps=50,
        optimizer={"type": "AdamW", "learningRate": 0.002},
        checkpoint={"everySteps": 10},
        spec={"image": "worker:xla", "coxswain": {"training": {"seed": 7}, "data": {"validation": None}}},
    )
    assert described.manifest() == {
        "apiVersion": "coxswain.dev/v1beta1",
        "kind": "TrainingJob",
        "metadata": {"name": "digits"},
        "spec": {
            "image": "worker:xla",
            "workers": {"replicas": 2},
            "storage": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
                {"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}},
            ],
            "coxswain": {
                "strategy": {"type": "MultiWorkerMirrored"},
                "model": {"program": {"storage": "models", "path": "digits"}},
                "data": {"format": "NPY", "storage": "data", "train": {"images": "pixels.npy", "labels": "labels.npy"}},
                "training": {"steps": 50, "batchSize": 100, "optimizer": {"type": "AdamW", "learningRate": 0.002}, "seed": 7},
                "checkpoint": {"storage": "runs", "path": "digits", "everySteps": 10},
                "export": {"storage": "runs", "path": "digits.safetensors"},
            },
        },
    }
    assert FILES["validation"] == {"last": 100}
    assert described.result().path == pathlib.Path("runs/digits.safetensors")


def test_files_of_inputs_may_be_named_by_a_dict() -> None:
    files = {"inputs": {"ids": "i.npy", "mask": "m.npy"}, "labels": "y.npy"}
    data = {"format": "NPY", "train": files, "validation": {"last": 10}}
    spec = TrainingJob("bert", program="bert", data=data, batch_size=8, epochs=1).manifest()["spec"]["coxswain"]
    listed = [{"name": "ids", "file": "i.npy"}, {"name": "mask", "file": "m.npy"}]
    assert spec["data"] == {"format": "NPY", "train": {"inputs": listed, "labels": "y.npy"}, "validation": {"last": 10}}
    assert files["inputs"] == {"ids": "i.npy", "mask": "m.npy"}


def test_values_that_are_used_twice_stand_twice() -> None:
    relu, shape = {"type": "ReLU"}, (4,)
    described = job_of(model={"inputShape": shape, "layers": [relu, {"type": "Dense", "units": 10}, relu]})
    model = yaml.safe_load(described.yaml())["spec"]["coxswain"]["model"]
    assert model == {"inputShape": [4], "layers": [relu, {"type": "Dense", "units": 10}, relu]}
    assert "&" not in described.yaml()


def test_the_manual(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The texts of README.md, as they stand: model.fit, and the job that takes its place, whose run needs a worker with XLA and a plugin."""
    fit, text = re.findall(r"```python\n(.*?)```", (ROOT / "python/README.md").read_text(), re.DOTALL)[:2]
    before, run, after = text.partition("job.run()")
    assert run
    pixels, labels = bars(868)
    names: dict[str, Any] = {"pixels": pixels, "labels": labels}
    exec(fit.replace("epochs=20", "epochs=1"), names)
    assert "12/12" in capsys.readouterr().out  # steps of Keras' epoch
    exec(before, names)
    assert names["job"].spec["workers"] == {"replicas": 2}
    assert names["job"].spec["coxswain"]["training"]["epochs"] == 20
    assert names["job"].spec["coxswain"]["model"]["program"] == {"storage": "models", "path": "digits"}
    assert (tmp_path / "digits/program.json").exists()
    if not os.environ.get("COXSWAIN_PJRT_PLUGIN"):
        return
    exec(run + after, names)
    assert "12 an epoch" in (printed := capsys.readouterr().out) and "step 240/240" in printed
    right = names["model"].predict(pixels[768:], verbose=0).argmax(-1) == labels[768:]
    assert right.mean() > 0.9


@needs_build
def test_two_workers_learn(capsys: pytest.CaptureFixture[str]) -> None:
    pixels, labels = bars()
    np.save("pixels.npy", pixels)
    np.save("labels.npy", labels)
    described = job_of(optimizer={"type": "AdamW", "learningRate": 0.01}, checkpoint={})
    described.run()
    printed = capsys.readouterr().out
    assert "worker 1: ready" in printed and "step 60/60" in printed and "digits is done" in printed
    assert list(pathlib.Path("runs/digits").glob("step-*"))
    weights = described.result().weights()
    assert sorted(weights) == ["out.bias", "out.weight"]
    logits = pixels[-100:].reshape(100, 784) @ weights["out.weight"].reshape(10, 784).T + weights["out.bias"]
    assert (logits.argmax(-1) == labels[-100:]).mean() > 0.9

    longer = job_of(epochs=11, checkpoint={}, optimizer={"type": "AdamW", "learningRate": 0.01})
    with pytest.raises(JobFailed, match=r"spec.coxswain: is immutable; run\(fresh=True\) replaces the earlier run$"):
        longer.run()
    printed = capsys.readouterr().out
    assert "To replace it" in printed and "  run(fresh=True)\n" in printed and "--fresh" not in printed
    longer.run(fresh=True)
    printed = capsys.readouterr().out
    assert "goes on from the checkpoints" in printed and "step 66/66" in printed


@needs_build
def test_what_is_refused_and_what_fails() -> None:
    with pytest.raises(JobFailed, match=r"^training data: cannot open .*/pixels.npy: No such file or directory") as failed:
        job_of().run()
    assert failed.value.code == 1
    pixels, labels = bars()
    np.save("pixels.npy", pixels)
    np.save("labels.npy", labels)
    unknown = r'^TrainingJob digits: unknown field "spec.coxswain.training.sped"; did you mean spec.coxswain.training.seed\?$'
    with pytest.raises(JobFailed, match=unknown) as failed:
        job_of(spec={"coxswain": {"training": {"sped": 7}}}).run()
    assert failed.value.code == 1
    with pytest.raises(JobFailed, match="give either epochs or steps"):
        job_of(steps=10).run()


@needs_build
def test_an_interruption_ends_cox(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []

    class Remembered(subprocess.Popen[str]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    def print_or_interrupt(line: str, **options: Any) -> None:
        if line.startswith("step "):
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Remembered)
    monkeypatch.setattr(job_module, "print", print_or_interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        job_of(data={"format": "Synthetic", "examples": 1000}, epochs=None, steps=10**9).run()
    assert [process.returncode for process in started] == [130]


def test_progress_before_the_first_step_is_not_told() -> None:
    assert job_module.progress_line({"totalSteps": 40}) == ""
    assert job_module.progress_line({"step": 1}) == "step 1"


@needs_build
def test_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of its own runs the job, and shows the lines of its progress as a cell's output."""
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(job_module.__file__).parents[1]))
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [
        nbformat.v4.new_code_cell(
            "from coxswain_train import TrainingJob\n"
            f"job = TrainingJob('digits', model={LAYERS!r}, data={{'format': 'Synthetic', 'examples': 1000}}, batch_size=100, steps=20)\n"
            "job.run()"
        ),
        nbformat.v4.new_code_cell("sorted(job.result().weights())"),
    ]
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = "".join(output["text"] for output in notebook.cells[0].outputs)
    assert "step 20/20" in shown and "digits is done" in shown
    assert notebook.cells[1].outputs[0]["data"]["text/plain"] == "['out.bias', 'out.weight']"


def test_without_cox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COXSWAIN_COX", "/nowhere/cox")
    with pytest.raises(FileNotFoundError, match="name it in COXSWAIN_COX"):
        job_of().run()


@pytest.fixture
def cluster(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The control plane and the operator that `cox run` starts, by themselves."""
    kubeconfig = tmp_path / "plane/kubeconfig"
    plane = [BUILD / "coxswain-standalone", "--state", tmp_path / "plane", "--crd", ROOT / "deploy/crd"]
    processes = [subprocess.Popen(plane, stderr=subprocess.DEVNULL)]
    try:
        for _ in range(100):
            if kubeconfig.exists():
                break
            time.sleep(0.1)
        operator = [BUILD / "coxswain-operator", "--kubeconfig", kubeconfig]
        processes.append(subprocess.Popen(operator, stderr=subprocess.DEVNULL))
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


@needs_build
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_in_a_cluster(cluster: None, capsys: pytest.CaptureFixture[str]) -> None:
    described = job_of(data={"format": "Synthetic", "examples": 1000}, epochs=None, steps=20)
    described.submit()
    assert capsys.readouterr().out == "trainingjob.coxswain.dev/digits created\n"
    described.wait(timeout=60)
    assert described.status()["progress"]["step"] == 20
    logs = described.logs()
    assert "worker-0 | " in logs and "worker-1 | " in logs
    with pytest.raises(FileNotFoundError, match="in the cluster, as digits.safetensors in the claim runs: copy it from a pod"):
        described.result().weights()

    watched = job_of("watched", data={"format": "Synthetic", "examples": 1000}, epochs=None, steps=30)
    watched.submit()
    capsys.readouterr()
    watched.watch(every=0.1)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"step 30/30, [0-9,]+ examples a second.*, loss [0-9.e-]+.*", lines[-1])
    assert len(lines) == len(set(lines))
    watched.watch()
    assert capsys.readouterr().out == lines[-1] + "\n"

    endless = job_of("endless", data={"format": "Synthetic", "examples": 1000}, epochs=None, steps=10**9)
    endless.submit()
    with pytest.raises(TimeoutError):
        endless.wait(timeout=1)
    with pytest.raises(JobFailed, match="give either epochs or steps") as failed:
        job_of("wrong", steps=10).submit()
    assert failed.value.code == 1
    with pytest.raises(JobFailed, match="not found"):
        job_of("nobody").status()


@needs_build
def test_in_the_background_of_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"format": "Synthetic", "examples": 1000}
    described = job_of(data=data, epochs=None, steps=400)
    described.submit(here=True)
    with pytest.raises(TimeoutError, match="digits is not over after 0.1 s"):
        described.wait(timeout=0.1)
    described.watch(every=0.1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("step 400/400") and len(lines) == len(set(lines))
    described.wait(timeout=10)
    logs = described.logs()
    assert "worker-0 | " in logs and "worker-1 | " in logs
    assert sorted(described.result().weights()) == ["out.bias", "out.weight"]
    assert "digits is done" in pathlib.Path("runs/digits.log").read_text()

    elsewhere = job_of(data=data, epochs=None, steps=400)  # as another process describes it
    elsewhere.here = True
    assert elsewhere.status()["progress"]["step"] == 400
    with pytest.raises(RuntimeError, match="was not submitted by this process"):
        elsewhere.stop()
    with pytest.raises(JobFailed, match="give either epochs or steps"):
        job_of("wrong", steps=10, data=data).submit(here=True)
    wide = job_of("wide", data=data, epochs=None, steps=10, spec={"workers": {"template": {"spec": {"containers": [BROKEN]}}}})
    wide.submit(here=True)
    with pytest.raises(JobFailed, match="^wide has failed: worker [01]: pod .* exited with code 65"):
        wide.wait()


@needs_build
def test_stopping_what_runs_in_the_background() -> None:
    described = job_of(data={"format": "Synthetic", "examples": 1000}, epochs=None, steps=10**9)
    described.submit(here=True)
    described.stop()
    assert described.cox is not None and described.cox.returncode == 130
    assert not job_module.is_over(described.status())


def test_weights_that_are_elsewhere() -> None:
    described = job_of()
    with pytest.raises(FileNotFoundError, match="^runs/digits.safetensors does not exist: the job digits has not exported its weights"):
        described.result().weights()
    path = described.result().path
    path.parent.mkdir()
    path.touch()
    described.submitted = time.time() + 1  # to a cluster, after another job had made that file
    with pytest.raises(FileNotFoundError, match="exports its weights in the cluster, as digits.safetensors in the claim runs: copy it"):
        described.result().weights()
