# SPDX-License-Identifier: Apache-2.0
"""Reads trained weights: what a job has exported, or a program's first ones. Needs no framework."""

from __future__ import annotations

import os
from typing import Any

from numpy.typing import NDArray
from safetensors.numpy import load_file

from coxswain_train.error import ExportError

Path = str | os.PathLike[str]


def load_weights(path: Path, shapes: dict[str, tuple[int, ...]] | None = None) -> dict[str, NDArray[Any]]:
    """Returns the tensors of a safetensors file by name; of `shapes` each must be there, with its shape."""
    file = os.fspath(path)
    found = load_file(file)
    for name, shape in (shapes or {}).items():
        if name not in found:
            raise ExportError(f"{file} has no tensor {name}: is it of this model?")
        if found[name].shape != shape:
            raise ExportError(f"{file}: {name} has shape {list(found[name].shape)}, but the model's has {list(shape)}")
    return found
