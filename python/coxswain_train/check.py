# SPDX-License-Identifier: Apache-2.0
"""Tries exported functions on the example before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.export
import numpy as np

from coxswain_train.error import ExportError

TOLERANCE = 1e-5
MEAN_TOLERANCE = 1e-4
MEAN_EXAMPLES = 64  # examples for which check_mean is tried


@dataclass(frozen=True)
class Entry:
    """A function of the program, arguments to try it with, and the names of its results."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    results: list[str]


def first_difference(entry: Entry, got: Any, wanted: Any, tolerance: float = TOLERANCE) -> str | None:
    """Returns the name of the first result that differs by more than `tolerance` of its largest value.

    A gradient that is nothing but rounding (of a bias before a batch normalisation) is compared with the others' size.
    """
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)]
    sizes = [float(np.abs(b).max()) for _, b in pairs]
    for name, (a, b), size in zip(entry.results, pairs, sizes, strict=True):
        if not np.isfinite(b).all():
            raise ExportError(f"{entry.name}: {name} is not finite for the example")
        if a.shape != b.shape or not np.abs(a - b).max() <= tolerance * max(size, 1e-3 * max(sizes)):
            return name
    return None


def check_entry(entry: Entry, exported: jax.export.Exported, examples_are_alone: bool) -> None:
    """Compares the artifact, read back by JAX, with the original function, traced anew; then tries a padded batch."""
    call = jax.jit(exported.call)
    wanted = jax.jit(lambda *arguments: entry.function(*arguments))(*entry.arguments)
    different = first_difference(entry, call(*entry.arguments), wanted)
    if different is not None:
        raise ExportError(
            f"{entry.name}: {different} of the exported function differs from the original: does it "
            f"use random numbers without the seed key, or change something outside it?"
        )
    if len(entry.arguments) < 5 or len(entry.arguments[3]) < 2 or not examples_are_alone:
        return
    trained, kept, inputs, targets, weight, *seed = entry.arguments
    weight = np.append(weight[:-1], np.float32(0))
    padded = jax.tree.map(lambda values: np.append(values[:-1], np.flip(values[:1]), axis=0), (inputs, targets))
    results = (call(trained, kept, *batch, weight, *seed) for batch in ((inputs, targets), padded))
    different = first_difference(entry, *results)
    if different is not None:
        raise ExportError(
            f"{entry.name}: {different} depends on an example of weight 0: the losses of an example must not depend on "
            f"the other examples of a batch"
        )


def check_mean(loss: Callable[[slice], float], exported: Any, counted: Any = None) -> None:
    """Checks that a loss of one example or more is the mean of `exported`, [examples, ...], and of the examples' own losses.

    `counted` says, in the same shape, which targets count; None: all.

    A loss that cannot be computed for an example alone, since it is written for one size of batches, is compared with
    `exported` only.
    """
    losses = np.asarray(exported, np.float64)
    weights = np.ones(losses.shape) if counted is None else np.asarray(counted, np.float64).reshape(losses.shape)
    shares = weights.reshape(len(losses), -1).sum(1) / weights.sum()
    whole, means = loss(slice(None)), [float((losses * weights).sum() / weights.sum())]
    try:
        means.append(float(sum(share * loss(slice(number, number + 1)) for number, share in enumerate(shares) if share > 0)))
    except Exception:
        pass
    for mean in means:
        if np.isfinite(whole) and not abs(whole - mean) <= MEAN_TOLERANCE * max(abs(whole), float(np.abs(losses).mean())):
            raise ExportError(
                f"the loss of a batch is {whole:.6g}, but the mean of the losses of its examples is {mean:.6g}: the worker "
                f"takes the mean and counts all targets alike, so give a loss that does, without a sum or weights; targets that "
                f"do not count have the value `ignored`"
            )
