# SPDX-License-Identifier: Apache-2.0
"""Weights with the names of a program, put into another model of the same form."""

import pathlib
from typing import Any

import jax
import keras
import numpy as np
import pytest
from keras import layers
from safetensors.numpy import save_file
from worker import Array, assert_close

from coxswain_train import ExportError, load, load_weights

random = np.random.default_rng(0)


def saved(folder: pathlib.Path, shapes: dict[str, tuple[int, ...]]) -> tuple[pathlib.Path, dict[str, Array]]:
    tensors = {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    save_file(tensors, folder / "model.safetensors")
    return folder / "model.safetensors", tensors


def test_jax(tmp_path: pathlib.Path) -> None:
    path, tensors = saved(tmp_path, {"hidden.kernel": (2, 3), "hidden.bias": (3,), "out.0": (3, 4)})
    tree = {"hidden": {"kernel": np.zeros((2, 3), "f"), "bias": np.zeros(3, "f")}, "out": [np.zeros((3, 4), "f")]}
    loaded: Any = load(path, tree)
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)
    assert_close({"kernel": np.asarray(loaded["hidden"]["kernel"])}, {"kernel": tensors["hidden.kernel"]})
    assert_close({"out": np.asarray(loaded["out"][0])}, {"out": tensors["out.0"]})
    assert_close(load_weights(path), tensors)
    with pytest.raises(ExportError, match=r"out.0 has shape \[3, 4\], but the model's has \[4, 4\]"):
        load(path, {"out": [np.zeros((4, 4), "f")]})
    with pytest.raises(ExportError, match="no tensor other"):
        load(path, {"other": np.zeros(3, "f")})


def test_keras(tmp_path: pathlib.Path) -> None:
    dense, norm = layers.Dense(3, name="dense"), layers.BatchNormalization(name="norm")
    model = keras.Sequential([keras.Input((2,)), dense, layers.Dropout(0.5), norm])
    norms = {f"norm.{name}": (3,) for name in ("gamma", "beta", "moving_mean", "moving_variance")}
    path, tensors = saved(tmp_path, {"dense.kernel": (2, 3), "dense.bias": (3,), **norms})
    load(path, model)
    assert_close({"mean": np.asarray(norm.moving_mean)}, {"mean": tensors["norm.moving_mean"]})
    assert_close({"kernel": np.asarray(dense.kernel)}, {"kernel": tensors["dense.kernel"]})


def test_torch(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    first, norm, tied = torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3, bias=False)
    tied.weight = first.weight
    norms = {f"1.{name}": (3,) for name in ("weight", "bias", "running_mean", "running_var")}
    path, tensors = saved(tmp_path, {"0.weight": (3, 3), "0.bias": (3,), **norms})
    load(path, torch.nn.Sequential(first, norm, tied))
    wanted = (tensors["0.weight"], tensors["0.weight"], tensors["1.running_var"])
    for got, value in zip((first.weight, tied.weight, norm.running_var), wanted):
        np.testing.assert_array_equal(got.detach().numpy(), value)
    with pytest.raises(ExportError, match="no tensor 3.weight"):
        load(path, torch.nn.Sequential(first, norm, tied, torch.nn.Linear(3, 2, bias=False)))
