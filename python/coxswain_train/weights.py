# SPDX-License-Identifier: Apache-2.0
"""Puts trained weights, the worker's export or a program's first ones, back into the model that they come from."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from coxswain_train.check import ExportError
from coxswain_train.keras_model import kept_variables, names_of
from coxswain_train.program import Tree, named_tensors

Path = str | os.PathLike[str]


def load_weights(path: Path, shapes: dict[str, tuple[int, ...]] | None = None) -> dict[str, NDArray[Any]]:
    """Returns the tensors of a safetensors file by name; of `shapes` each must be there, with its shape."""
    found = load_file(path)
    for name, shape in (shapes or {}).items():
        if name not in found:
            raise ExportError(f"{os.fspath(path)} has no tensor {name}: is it of this model?")
        if found[name].shape != shape:
            raise ExportError(f"{os.fspath(path)}: {name} has shape {list(found[name].shape)}, but the model's has {list(shape)}")
    return found


def load_jax(path: Path, tree: Tree) -> Tree:
    """Returns a pytree like `tree`, parameters or state of export_jax, with the file's values."""
    found = load_weights(path, {name: np.shape(value) for name, value in named_tensors(tree, "tensor").items()})
    return jax.tree.unflatten(jax.tree.structure(tree), [jnp.asarray(found[name]) for name in named_tensors(tree, "tensor")])


def load_keras(path: Path, model: Any) -> None:
    """Sets the variables of a Keras model that is built, but for the states of seed generators."""
    variables = model.trainable_variables + kept_variables(model)
    names = names_of(model, variables)
    found = load_weights(path, {name: tuple(variable.shape) for name, variable in zip(names, variables)})
    for name, variable in zip(names, variables):
        variable.assign(found[name])


def load_torch(path: Path, module: Any) -> None:
    """Sets the float32 tensors of a module's state_dict. Of tied ones the file has one."""
    import torch

    named = dict(module.named_parameters()) | dict(module.named_buffers())
    tensors = {name: named[name] for name in named.keys() & module.state_dict().keys() if named[name].dtype == torch.float32}
    found = load_weights(path, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(found[name]))
