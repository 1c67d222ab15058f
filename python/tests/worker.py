# SPDX-License-Identifier: Apache-2.0
"""Reads and runs an exported program as the worker does: from its files alone, through XLA."""

import json
import pathlib
from typing import Any

import jax
import jax.extend
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[Any]


class Program:
    def __init__(self, folder: pathlib.Path) -> None:
        self.document = json.loads((folder / "program.json").read_text())
        self.folder = folder
        self.weights = load_file(folder / self.document["weights"]) if "weights" in self.document else self.initialise(1)

    def shapes(self, kind: str) -> dict[str, list[int]]:
        return {tensor["name"]: tensor["shape"] for tensor in self.document[kind]}

    def initialise(self, seed: int) -> dict[str, Array]:
        """Returns the first values of parameters and state for a seed."""
        words = np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)
        names = [name for kind in ("parameters", "state") for name in self.shapes(kind)]
        return dict(zip(names, self.call("initialise", words), strict=True))

    def run(self, entry: str, *further: Array) -> list[Array]:
        """Calls a function with the first values of all parameters and state, then `further`."""
        return self.call(entry, *(self.weights[name] for kind in ("parameters", "state") for name in self.shapes(kind)), *further)

    def call(self, entry: str, *values: Array) -> list[Array]:
        client = jax.extend.backend.get_backend("cpu")
        artifact = (self.folder / self.document["entries"][entry]["file"]).read_bytes()
        executable = client.compile_and_load(artifact, client.devices()[:1])
        arguments = [jax.device_put(value, client.devices()[0]) for value in values]
        results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
        return [np.asarray(result[0]) for result in results]

    def train(self, *further: Array) -> tuple[Array, Array, dict[str, Array], dict[str, Array]]:
        """Returns loss, hits, gradients and new state."""
        loss, hits, *tensors = self.run("lossAndGradients", *further)
        parameters, state = self.shapes("parameters"), self.shapes("state")
        assert len(tensors) == len(parameters) + len(state)
        return loss, hits, dict(zip(parameters, tensors)), dict(zip(state, tensors[len(parameters) :]))


def assert_close(got: dict[str, Array], wanted: dict[str, Any], relative: float = 1e-5) -> None:
    """Each tensor to `relative` of its largest value, or of a thousandth of the largest of all."""
    assert sorted(got) == sorted(wanted)
    largest = max(float(np.abs(value).max()) for value in wanted.values())
    for name, value in wanted.items():
        value = np.asarray(value)
        assert got[name].shape == value.shape, name
        tolerance = relative * max(float(np.abs(value).max()), 1e-3 * largest)
        np.testing.assert_allclose(got[name], value, rtol=0, atol=tolerance, err_msg=name)
