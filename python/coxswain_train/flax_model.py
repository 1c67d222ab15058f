# SPDX-License-Identifier: Apache-2.0
"""Exports a module of Flax (nnx)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from numpy.typing import ArrayLike

from coxswain_train.error import ExportError
from coxswain_train.program import Inputs, called_with, check_examples, examples_at, examples_of, export_jax, inputs_of, load_jax

LOGIT_LOSS = "softmax_cross_entropy_with_integer_labels"  # optax' name


def export_flax(
    folder: str | os.PathLike[str],
    model: Any,
    loss: Callable[[Any, Any], Any],
    example_input: Inputs,
    example_target: ArrayLike,
    *,
    batch: int,
    initialise: Callable[[nnx.Rngs], Any] | None = None,
    ignored: int | None = None,
    vocabularies: Mapping[str, int] | None = None,
    platforms: Sequence[str] = ("cpu",),
) -> None:
    """Exports a module of Flax (nnx) with one output.

    If the example is a dict of arrays, the module is called with them as keyword arguments, and if it is a tuple, as positional ones.
    For `vocabularies` and `ignored` see `export_jax`. `loss` is a function of the output and the target that returns the loss of each target, as
    those of optax.losses do: do not take their mean, the worker does.

    Variables of the type nnx.Param are trained. All others are state and must be float32, such as the running statistics of batch
    normalisations. The keys of random numbers are neither: at each call they are derived from the step's seed and the key's number
    among the module's. The module's train() and eval() switch dropout and statistics. It is not changed.

    `initialise` is a function of nnx.Rngs that makes such a module. The program then has no weights: a job starts from the module that
    is made with nnx.Rngs(training.seed).
    """
    structure, *parts = nnx.split(model, nnx.Param, nnx.RngState, ...)
    parameters, generators, state = parts
    inputs, targets = inputs_of(example_input), examples_of(example_target, "target")
    check_examples(inputs, targets, batch)

    def run(parameters: Any, state: Any, input: Any, key: Any, training: bool) -> Any:
        called = nnx.merge(structure, parameters, seeded(generators, key), state)
        if training:
            called.train()
        else:
            called.eval()
        output = called_with(called, input)
        if not isinstance(output, jax.Array):
            raise ExportError(f"the module must have one output; it returns {type(output).__name__}")
        return output.astype(jnp.float32), nnx.state(called, nnx.Not(nnx.Any(nnx.Param, nnx.RngState)))

    def predict(parameters: Any, state: Any, input: Any) -> Any:
        return run(parameters, state, input, jax.random.key(0, impl="threefry2x32"), False)[0]

    output = jax.eval_shape(predict, parameters, state, examples_at(inputs, slice(1)))
    classes = None
    if targets.dtype == np.int32:
        if output.shape[1:-1] != targets.shape[1:]:
            raise ExportError(
                f"the target is int32 of shape {list(targets.shape[1:])} for an example, so the module's output must have one more axis, "
                f"of classes; it has shape {list(output.shape[1:])}"
            )
        classes = output.shape[-1]

    def step(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        output, new = run(parameters, state, input, key, training)
        return loss(output, target), output.argmax(-1) == target if classes else None, new

    def first_values(key: Any) -> Any:
        assert initialise is not None
        _, *parts = nnx.split(initialise(nnx.Rngs(key)), nnx.Param, nnx.RngState, ...)
        first, _, kept = parts
        return (first, kept) if jax.tree.leaves(state) else first

    export_jax(
        folder,
        step,
        parameters,
        inputs,
        targets,
        state=state,
        batch=batch,
        classes=classes,
        predict=predict,
        scores="logits" if targets.ndim == 1 and classes and getattr(loss, "__name__", "") == LOGIT_LOSS else None,
        ignored=ignored,
        initialise=None if initialise is None else first_values,
        vocabularies=vocabularies,
        platforms=platforms,
    )


def seeded(generators: Any, key: Any) -> Any:
    """Returns the generators' keys and counts as they are at the beginning of a step with that key."""
    leaves, form = jax.tree.flatten(generators)
    for number, leaf in enumerate(leaves):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            own = jax.random.fold_in(key, number)
            leaves[number] = jax.random.split(own, leaf.shape) if leaf.shape else own
        else:
            leaves[number] = jnp.zeros_like(leaf)
    return jax.tree.unflatten(form, leaves)


def load_flax(path: str | os.PathLike[str], model: Any) -> Any:
    """Sets the parameters and the state of a module. Returns the module."""
    nnx.update(model, load_jax(path, nnx.state(model, nnx.Not(nnx.RngState))))
    return model
