# SPDX-License-Identifier: Apache-2.0
"""The package as it is installed: what it needs, what it imports, and export and load, which find the framework themselves."""

import importlib.metadata
import pathlib
import subprocess
import sys
import tomllib
from typing import Any

import flax.linen
import jax.numpy as jnp
import numpy as np
import pytest
from packaging.requirements import Requirement

import coxswain_train
from coxswain_train import ExportError, export, load, load_weights

SOURCES = pathlib.Path(__file__).parents[1]
PROJECT = tomllib.loads((SOURCES / "pyproject.toml").read_text())["project"]
ones = np.ones((2, 3), "f")


def test_what_is_installed_is_what_is_tested() -> None:
    """All requirements have the lowest version that they allow: no version is promised that has not been tested."""
    needed = PROJECT["dependencies"] + [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    for requirement in map(Requirement, needed):
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            assert requirement.name in ("torch", "torchax"), requirement  # tested where it can be had
            continue
        lowest = [each.version for each in requirement.specifier if each.operator in (">=", "==")]
        assert lowest and installed.startswith(lowest[0]), f"{requirement}, but {installed} is tested"


def test_the_wheel_has_everything() -> None:
    package = pathlib.Path(coxswain_train.__file__).parent
    if package == SOURCES / "coxswain_train":
        pytest.skip("the package is not installed: scripts/check-python builds a wheel")
    sources = {path.name for path in (SOURCES / "coxswain_train").iterdir() if path.is_file()}
    assert {path.name for path in package.iterdir() if path.is_file()} == sources
    assert importlib.metadata.version("coxswain-train") == PROJECT["version"]


def test_a_job_needs_no_framework() -> None:
    """Describing jobs and reading weights work where no framework is installed."""
    script = """
import sys
for name in ("jax", "keras", "torch", "flax"):
    sys.modules[name] = None
from coxswain_train import TrainingJob, load_weights
print(TrainingJob("digits", model="lenet", data={"format": "Synthetic"}, batch_size=10, steps=5).yaml())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and "kind: TrainingJob" in done.stdout, done.stderr


class Lines(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, x: Any) -> Any:
        return flax.linen.Dense(2)(x)


def square(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    return jnp.square(input @ parameters["w"] - target).mean(-1), None, state


def test_export_and_load_of_a_function(tmp_path: pathlib.Path) -> None:
    parameters = {"w": np.full((3, 2), 2, "f")}
    export(tmp_path, square, parameters, ones, ones[:, :2], batch=2)
    loaded = load(tmp_path / "weights.safetensors", {"w": np.zeros((3, 2), "f")})
    np.testing.assert_array_equal(loaded["w"], parameters["w"])
    assert list(load_weights(tmp_path / "weights.safetensors")) == ["w"]


def test_what_is_no_model(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ExportError, match="flax.linen has no parameters of its own"):
        export(tmp_path, Lines(), lambda output, target: output, ones, ones, batch=2)
    with pytest.raises(ExportError, match="the model is a dict, but must be a model of Keras"):
        export(tmp_path, {"w": ones}, {"w": ones}, ones, ones, batch=2)  # type: ignore[call-overload]
    with pytest.raises(ExportError, match="export has no channels_first for this model; it has state, batch, classes, predict"):
        export(tmp_path, square, {"w": ones}, ones, ones, batch=2, channels_first=True)
