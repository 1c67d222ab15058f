# SPDX-License-Identifier: Apache-2.0
"""Exports a model of any framework, and puts trained weights back into it. Imports no framework that the caller has not imported."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from coxswain_train.error import ExportError
from coxswain_train.weights import Path

if TYPE_CHECKING:
    from coxswain_train.program import Initialise, Inputs, Loss, Predict, Tree

# A framework's module, and its class of models. Keras is first: with PyTorch as its backend, its models are PyTorch's, too.
FRAMEWORKS = {"keras": ("keras", "Model"), "torch": ("torch.nn", "Module"), "flax": ("flax.nnx", "Module")}


def is_of(model: Any, module: str, name: str) -> bool:
    """Returns whether `model` is of that class; a model of a framework that nobody has imported is not."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(model, found)


def framework_of(model: Any) -> str:
    """Returns the framework whose model this is; "jax" for everything else."""
    if is_of(model, "flax.linen", "Module"):
        raise ExportError("a module of flax.linen has no parameters of its own: export a function that calls its apply, with the parameters; load into the parameters")
    return next((framework for framework, where in FRAMEWORKS.items() if is_of(model, *where)), "jax")


def function_of(action: str, framework: str) -> Callable[..., Any]:
    """Returns the function that exports ("export") or loads ("load") models of this framework."""
    module = "program" if framework == "jax" else f"{framework}_model"
    function: Callable[..., Any] = getattr(importlib.import_module(f"coxswain_train.{module}"), f"{action}_{framework}")
    return function


@overload
def export(
    folder: str | os.PathLike[str],
    model: Loss,
    parameters: Tree,
    example_input: Inputs,
    example_target: ArrayLike,
    *,
    batch: int,
    state: Tree = None,
    classes: int | None = None,
    predict: Predict | None = None,
    scores: str | None = None,
    initialise: Initialise | None = None,
    ignored: int | None = None,
    vocabularies: Mapping[str, int] | None = None,
    platforms: Sequence[str] = ("cpu",),
) -> None: ...
@overload
def export(
    folder: str | os.PathLike[str],
    model: Any,
    loss: str | Callable[[Any, Any], Any],
    example_input: Inputs,
    example_target: ArrayLike,
    *,
    batch: int,
    channels_first: bool = False,
    initialise: Callable[[Any], Any] | None = None,
    ignored: int | None = None,
    vocabularies: Mapping[str, int] | None = None,
    platforms: Sequence[str] = ("cpu",),
) -> None: ...
def export(folder: str | os.PathLike[str], model: Any, *arguments: Any, **options: Any) -> None:
    """Exports a model's training step to `folder`, as a program (docs/programs.md), and checks it on the example.

    `model` is one of Keras, PyTorch or Flax (nnx), and `loss` one of that framework's losses; or `model` is a function of JAX that
    returns the losses, and its `parameters` come next. The example has the inputs and targets of some examples, and `batch` is how many
    one call of the program takes. `export_keras`, `export_torch`, `export_flax` and `export_jax`, in the modules keras_model,
    torch_model, flax_model and program, say what each framework's models must be.
    """
    framework = framework_of(model)
    if framework == "jax" and not callable(model):
        raise ExportError(
            f"the model is a {type(model).__name__}, but must be a model of Keras, PyTorch or Flax, or a function of JAX (and then its "
            f"parameters come next)"
        )
    exporter = function_of("export", framework)
    known = inspect.signature(exporter).parameters
    for name in options:
        if name not in known:
            keywords = ", ".join(each for each, parameter in known.items() if parameter.kind is parameter.KEYWORD_ONLY)
            raise ExportError(f"export has no {name} for this model; it has {keywords}")
    exporter(folder, model, *arguments, **options)


def load(path: Path, model: Any) -> Any:
    """Puts the weights of a safetensors file, such as a job's export, into a model of Keras, PyTorch or Flax, and returns it.

    Of a function of JAX, `model` is the pytree of its parameters or its state; a new one is returned.
    """
    return function_of("load", framework_of(model))(path, model)
