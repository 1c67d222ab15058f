# SPDX-License-Identifier: Apache-2.0
"""Exports a training step that is written in JAX."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import save

from coxswain_train.check import Entry, check_entry
from coxswain_train.error import ExportError
from coxswain_train.weights import load_weights

FORMAT = "coxswain-program/1"
FORMAT_INPUTS = "coxswain-program/2"  # has a list of inputs in place of one
# Limits of the worker.
BATCH_MAX = 65536
TENSOR_RANK_MAX = 4
EXAMPLES_RANK_MAX = 8
NAME_MAX = 95  # bytes
INPUTS_MAX = 16
INPUT_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
VOCABULARY_MAX = 2**31 - 1
FILES = {"lossAndGradients": "loss_and_gradients", "evaluate": "evaluate", "predict": "predict", "initialise": "initialise"}
# What XLA compiles itself. Other custom calls are functions of jaxlib, which the worker does not have.
CUSTOM_CALLS = {"ApproxTopK", "Sharding"}

Tree = Any  # a pytree of float32 arrays
Inputs = Any  # one array of examples, or a dict or tuple of such arrays, which may hold others
Loss = Callable[[Tree, Tree, Any, jax.Array, jax.Array, bool], tuple[jax.Array, jax.Array | None, Tree]]
Predict = Callable[[Tree, Tree, Any], jax.Array]
Initialise = Callable[[jax.Array], Any]  # parameters, or a tuple of parameters and state
Arrays = list[Any]


def name_at(path: Any) -> str:
    """Returns the name of an array by its path in a pytree, joined by dots."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def named_tensors(tree: Tree, kind: str) -> dict[str, Any]:
    """Returns the arrays of a pytree by name, in the order in which JAX flattens it."""
    tensors: dict[str, Any] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        if path and path[-1] == jax.tree_util.GetAttrKey("value"):  # of a variable of Flax
            path = path[:-1]
        name = name_at(path)
        shape, dtype = np.shape(leaf), getattr(leaf, "dtype", type(leaf).__name__)
        if not 0 < len(name.encode()) <= NAME_MAX:
            raise ExportError(f"{kind} {name!r}: a name has 1 to {NAME_MAX} bytes; keep the arrays in a dict with such keys")
        if name in tensors:
            raise ExportError(f"two {kind} tensors are called {name}: rename one of them")
        if dtype != jnp.float32:
            raise ExportError(f"{kind} {name} is {dtype}, but must be float32 (for random numbers use the seed key)")
        if len(shape) > TENSOR_RANK_MAX or 0 in shape:
            raise ExportError(
                f"{kind} {name} has shape {list(shape)}, but the worker takes at most {TENSOR_RANK_MAX} dimensions, none 0: "
                f"reshape it within the loss function"
            )
        tensors[name] = leaf
    return tensors


def examples_of(values: ArrayLike, what: str) -> NDArray[Any]:
    """Returns examples as float32 or int32. Takes the 64 bits that NumPy makes unasked."""
    array = np.asarray(values)
    dtype = {"float64": "float32", "int64": "int32"}.get(array.dtype.name, array.dtype.name)
    if dtype not in ("float32", "int32"):
        raise ExportError(
            f"the example {what} is {dtype}, but must be float32 (pixels, values) or int32 (classes, tokens): "
            f"convert it with .astype()"
        )
    if not 1 <= array.ndim <= EXAMPLES_RANK_MAX or 0 in array.shape:
        raise ExportError(
            f"the example {what} has shape {list(array.shape)}, but must be [examples, ...], "
            f"with at most {EXAMPLES_RANK_MAX} dimensions, none 0"
        )
    return array.astype(dtype)


def inputs_of(values: Inputs) -> Inputs:
    """Returns the example input, or each of several, as float32 or int32."""
    if isinstance(values, list):  # of arrays it would silently become one
        raise ExportError(
            "the example input is a list: give one array (numpy.asarray makes it of numbers), or the arrays of several inputs "
            "as a dict by name or as a tuple"
        )
    if not isinstance(values, dict | tuple):
        return examples_of(values, "input")
    named = jax.tree_util.tree_flatten_with_path(values)[0]
    if not 1 <= len(named) <= INPUTS_MAX:
        raise ExportError(f"the example input has {len(named)} arrays, but must have from 1 to {INPUTS_MAX}")
    arrays, names = [], set()
    for path, leaf in named:
        name = name_at(path)
        if not INPUT_NAME.fullmatch(name):
            raise ExportError(
                f"the input {name!r} needs a name of at most 63 letters, digits, '-', '_' and '.': name the arrays by the keys "
                f"of a dict"
            )
        if name in names:
            raise ExportError(f"two inputs are called {name}: rename one of them")
        names.add(name)
        arrays.append(examples_of(leaf, f"input {name}"))
    return jax.tree.unflatten(jax.tree.structure(values), arrays)


def named_inputs(inputs: Inputs) -> dict[str, NDArray[Any]]:
    """Returns what `inputs_of` gave by name, in the order in which JAX flattens it. An only array is called input."""
    paths = jax.tree_util.tree_flatten_with_path(inputs)[0]
    return {name_at(path) or "input": leaf for path, leaf in paths}


def examples_at(inputs: Inputs, numbers: Any) -> Inputs:
    return jax.tree.map(lambda array: array[numbers], inputs)


def arguments_of(input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a module: an input by itself, those of a tuple by position, those of a dict by name."""
    if isinstance(input, dict):
        return (), input
    return (input if isinstance(input, tuple) else (input,)), {}


def called_with(module: Any, input: Any) -> Any:
    """Calls a module with an input."""
    positional, named = arguments_of(input)
    return module(*positional, **named)


def check_examples(inputs: Inputs, targets: NDArray[Any], batch: int) -> None:
    """Refuses sizes with which no batch can be made. Every export checks them before it tries the model on the example."""
    if not 1 <= batch <= BATCH_MAX:
        raise ExportError(f"batch is {batch}, but must be from 1 to {BATCH_MAX}")
    for name, array in named_inputs(inputs).items():
        if len(array) != len(targets):
            of = "" if array is inputs else f" of {name}"
            raise ExportError(f"there are {len(array)} example inputs{of}, but {len(targets)} example targets")


def input_fields(inputs: Inputs, vocabularies: Mapping[str, int]) -> dict[str, Any]:
    """Returns what the document says of the inputs."""
    named = named_inputs(inputs)
    for name, vocabulary in vocabularies.items():
        if name not in named:
            raise ExportError(f"vocabularies has {name!r}, but the inputs are {', '.join(named)}")
        if named[name].dtype != np.int32 or not 1 <= vocabulary <= VOCABULARY_MAX:
            raise ExportError(f"the vocabulary of {name} is {vocabulary}, but must be at least 1, and the input int32")
        least, most = named[name].min(), named[name].max()
        if least < 0 or most >= vocabulary:
            raise ExportError(f"the vocabulary of {name} is {vocabulary}, but the example has values from {least} to {most}")
    fields = {
        name: {"type": array.dtype.name, "shape": list(array.shape[1:])}
        | ({"vocabulary": vocabularies[name]} if name in vocabularies else {})
        for name, array in named.items()
    }
    if not isinstance(inputs, dict | tuple):
        return {"input": fields["input"]}
    return {"inputs": [{"name": name, **field} for name, field in fields.items()]}


def export_jax(
    folder: str | os.PathLike[str],
    loss: Loss,
    parameters: Tree,
    example_input: Inputs,
    example_target: ArrayLike,
    *,
    state: Tree = None,
    batch: int,
    classes: int | None = None,
    predict: Predict | None = None,
    scores: str | None = None,
    initialise: Initialise | None = None,
    ignored: int | None = None,
    vocabularies: Mapping[str, int] | None = None,
    platforms: Sequence[str] = ("cpu",),
) -> None:
    """Exports a training step to `folder`, after checking that the exported functions compute what `loss` does.

    `loss(parameters, state, input, target, seed_key, training)` returns the loss of each target, whether each target was
    predicted (1 or 0; None: that has no meaning) and the new state. Losses have the shape of the targets, [batch, ...]; do
    not take their mean, the worker does. A float32 target counts once per example: its losses may have the shape [batch],
    else the mean within each example is taken. `training` is a bool of Python; `seed_key` differs for each call.

    `parameters` and `state` are pytrees of float32 arrays, with their first values. Examples have a leading axis; there may
    be any number. A model of several inputs has a dict or a tuple of arrays as its example, of which the functions get one
    batch each; their names are their keys, or numbers. `vocabularies` may say, by name, below what number the values of an
    int32 input are: the worker then refuses others, which XLA would not report. `classes` is the number of classes, or the
    vocabulary, of int32 targets.

    Targets that are `ignored`, such as -100, do not count: the loss function gets 0 in their place, what it returns for them is left
    out, and the mean is over the other targets of the whole batch.

    `predict(parameters, state, input)` returns the output, [batch, ...] of float32 or int32. If it is a float for each of the
    classes of an example's one target, `scores` may say what: "logits" or "probabilities". Then the worker's --predict names the
    most probable classes.

    `initialise(seed_key)` returns parameters like `parameters`, or, if there is state, a tuple of such parameters and state. The program then
    has no weights: a job starts from what this function gives for jax.random.key(training.seed), so that jobs with other seeds start
    elsewhere. The values of `parameters` and `state` only serve to check the export.

    The files of `platforms` ("cpu", "cuda", "tpu") differ only
    where JAX lowers an operation in another way; the first one's are those that the program names.
    """
    first_parameters, first_state = named_tensors(parameters, "parameter"), named_tensors(state, "state")
    if not first_parameters:
        raise ExportError("there are no parameters to train")
    both = first_parameters.keys() & first_state.keys()
    if both:
        raise ExportError(f"a parameter and a state are both called {min(both)}: rename one of them")
    inputs, targets = inputs_of(example_input), examples_of(example_target, "target")
    check_examples(inputs, targets, batch)
    if ignored is not None and (targets.dtype != np.int32 or not -(2**31) <= ignored < 2**31):
        raise ExportError(f"ignored is {ignored}, but only int32 targets can be ignored, and it must be one itself")
    known = targets[targets != ignored] if ignored is not None else targets
    if known.size == 0:
        raise ExportError(f"all targets of the example are ignored ({ignored}): give an example with some that count")
    if targets.dtype == np.int32 and (classes is None or known.min() < 0 or known.max() >= classes):
        raise ExportError(
            f"int32 targets need `classes`, a number above all of them; it is {classes}. "
            f"If some stand for nothing to learn, name their value as `ignored`."
        )
    described = input_fields(inputs, vocabularies or {})
    taken = np.arange(batch) % len(targets)
    inputs, targets = examples_at(inputs, taken), targets[taken]

    parameters_form, state_form = jax.tree.structure(parameters), jax.tree.structure(state)

    def per_target(values: jax.Array, what: str) -> jax.Array:
        shape, wanted = jnp.shape(values), list(targets.shape if classes else targets.shape[:1])
        if shape[:1] != (batch,) or (classes and math.prod(shape) != targets.size):
            raise ExportError(
                f"the loss function returns {what} of shape {list(shape)}, but must return one for each target: {wanted}. "
                f"Do not take the mean or sum of the losses."
            )
        rows = jnp.reshape(values, (batch, -1)).astype(jnp.float32)
        return rows if classes else rows.mean(axis=1, keepdims=True)

    def sums(trained: Arrays, kept: Arrays, input: Any, target: Any, weight: Any, key: Any, training: bool) -> Any:
        counted = jnp.ones_like(target, bool) if ignored is None else target != ignored
        losses, hits, new = loss(
            jax.tree.unflatten(parameters_form, trained),
            jax.tree.unflatten(state_form, kept),
            input,
            target if ignored is None else jnp.where(counted, target, 0),
            key,
            training,
        )
        new_state = named_tensors(new, "new state") if training else first_state
        for name in first_state.keys() | new_state.keys():
            old_shape, new_shape = (np.shape(of[name]) if name in of else None for of in (first_state, new_state))
            if old_shape != new_shape:
                raise ExportError(f"the new state must have the names and shapes of the old one, but {name} differs")
        weights = weight[:, None]
        if ignored is not None:
            weights = weights * jnp.reshape(counted, (batch, -1))
        total = jnp.sum(per_target(losses, "losses") * weights)
        hit = jnp.zeros((), jnp.float32) if hits is None else jnp.sum(per_target(hits, "hits") * weights)
        count = [] if ignored is None else [jnp.sum(weights)]
        return total, ([hit, *count], [new_state[name] for name in first_state] if training else [])

    def loss_and_gradients(trained: Arrays, kept: Arrays, input: Any, target: Any, weight: Any, seed: Any) -> Any:
        key = jax.random.wrap_key_data(seed, impl="threefry2x32")
        (total, (counts, new_state)), gradients = jax.value_and_grad(sums, has_aux=True)(
            trained, kept, input, target, weight, key, True
        )
        return total, counts, gradients, new_state

    def evaluate(trained: Arrays, kept: Arrays, input: Any, target: Any, weight: Any) -> Any:
        key = jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32), impl="threefry2x32")
        total, (counts, _) = sums(trained, kept, input, target, weight, key, False)
        return total, counts

    def output(trained: Arrays, kept: Arrays, input: Any) -> Any:
        assert predict is not None
        result = predict(jax.tree.unflatten(parameters_form, trained), jax.tree.unflatten(state_form, kept), input)
        if jnp.shape(result)[:1] != (batch,):
            raise ExportError(f"predict must return one array of shape [{batch}, ...]; it is {list(jnp.shape(result))}")
        if result.ndim > EXAMPLES_RANK_MAX or 0 in result.shape:
            raise ExportError(f"predict returns {list(result.shape)}; at most {EXAMPLES_RANK_MAX} dimensions are possible, none 0")
        if result.dtype.name not in ("float32", "int32"):
            raise ExportError(f"predict returns {result.dtype}, but must return float32 or int32: convert it with .astype()")
        return result

    values = (list(map(jnp.asarray, first_parameters.values())), list(map(jnp.asarray, first_state.values())))
    example = (*values, inputs, targets, np.ones(batch, np.float32))
    sums_of = ["loss", "hits"] + ([] if ignored is None else ["count"])
    entries = [
        Entry(
            "lossAndGradients",
            loss_and_gradients,
            (*example, np.array([1, 2], np.uint32)),
            [*sums_of, *map("gradient of {}".format, first_parameters), *map("new state {}".format, first_state)],
        ),
        Entry("evaluate", evaluate, example, sums_of),
    ]
    if predict is not None:
        entries.append(Entry("predict", output, (*values, inputs), ["output"]))
    if initialise is not None:
        entries.append(
            Entry(
                "initialise",
                initialising(initialise, first_parameters, first_state),
                (np.array([0, 1], np.uint32),),
                [*first_parameters, *first_state],
            )
        )
    local = jax.export.default_export_platform()
    artifacts = {(entry.name, platform): export_entry(entry, platform) for entry in entries for platform in platforms}
    for entry in entries:
        exported = artifacts.get((entry.name, local)) or export_entry(entry, local)
        # Statistics of a batch, and so the gradients, may depend on all its examples.
        check_entry(entry, exported, examples_are_alone=entry.name == "evaluate" or not first_state)
        if entry.name == "initialise":
            check_seed(exported)
    document: dict[str, Any] = {
        "format": FORMAT if "input" in described else FORMAT_INPUTS,
        "batch": batch,
        "parameters": [{"name": name, "shape": list(np.shape(value))} for name, value in first_parameters.items()],
        "state": [{"name": name, "shape": list(np.shape(value))} for name, value in first_state.items()],
        **described,
        "target": {"type": targets.dtype.name, "shape": list(targets.shape[1:])}
        | ({"classes": classes} if classes else {})
        | ({} if ignored is None else {"ignored": ignored}),
        "entries": {entry.name: {"file": FILES[entry.name] + ".mlirbc"} for entry in entries},
    }
    if initialise is None:
        document["weights"] = "weights.safetensors"
    if predict is not None:
        document["entries"]["predict"]["output"] = output_field(artifacts["predict", platforms[0]].out_avals[0], targets, classes, scores)
    write_program(Path(folder), document, artifacts, platforms, {**first_parameters, **first_state})


def initialising(function: Initialise, parameters: dict[str, Any], state: dict[str, Any]) -> Callable[..., Any]:
    """Returns the function of two words that gives the first values of all parameters, then of all state."""

    def first_values(seed: Any) -> Any:
        made = function(jax.random.wrap_key_data(seed, impl="threefry2x32"))
        if state and not (isinstance(made, tuple) and len(made) == 2):
            raise ExportError("there is state, so initialise must return a tuple of parameters and state")
        first_parameters, first_state = made if state else (made, None)
        return like(first_parameters, parameters, "parameter"), like(first_state, state, "state")

    def like(tree: Tree, wanted: dict[str, Any], kind: str) -> Arrays:
        got = named_tensors(tree, f"initialise: {kind}")
        for name in got.keys() | wanted.keys():
            shapes = [list(np.shape(of[name])) if name in of else "missing" for of in (got, wanted)]
            if shapes[0] != shapes[1]:
                raise ExportError(f"{kind} {name} is {shapes[0]} in what initialise returns, but {shapes[1]} in what is exported")
        return [got[name] for name in wanted]

    return first_values


def check_seed(exported: jax.export.Exported) -> None:
    """Refuses a function that gives the same values for two seeds, so that a sweep over seeds would train one model again and again."""
    call = jax.jit(exported.call)
    first, other = (jax.tree.leaves(call(np.array([0, seed], np.uint32))) for seed in (1, 2))
    if all(np.array_equal(a, b) for a, b in zip(first, other, strict=True)):
        raise ExportError("initialise gives the same values for two seeds: draw them with the key that it gets")


def output_field(output: Any, targets: NDArray[Any], classes: int | None, scores: str | None) -> dict[str, Any]:
    """Returns what the document says of `predict`'s result."""
    shape = list(output.shape[1:])
    field: dict[str, Any] = {"type": output.dtype.name, "shape": shape}
    if scores is None:
        return field
    if scores not in ("logits", "probabilities"):
        raise ExportError(f'scores is {scores!r}, but must be "logits" or "probabilities"')
    if targets[0].size != 1 or shape != [classes] or output.dtype != np.float32:
        raise ExportError(f"scores are float32, one for each class of one target, but predict returns {field}: leave `scores` out")
    return field | {"scores": scores}


def export_entry(entry: Entry, platform: str) -> jax.export.Exported:
    """Exports a function with all its arguments, for one platform, so that there is no argument to choose one."""
    exported = jax.export.export(jax.jit(entry.function, keep_unused=True), platforms=[platform])(*entry.arguments)
    foreign = set(re.findall(r"custom_call @([\w.$]+)", exported.mlir_module())) - CUSTOM_CALLS
    if foreign:
        raise ExportError(
            f"{entry.name} for {platform} calls {', '.join(sorted(foreign))}, which only JAX in Python has: use other operations"
        )
    return exported


def write_program(
    folder: Path,
    document: dict[str, Any],
    artifacts: dict[tuple[str, str], jax.export.Exported],
    platforms: Sequence[str],
    weights: dict[str, Any],
) -> None:
    """Writes the document last: a folder with one is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.json").unlink(missing_ok=True)
    for (name, platform), exported in artifacts.items():
        entry = document["entries"][name]
        file = entry["file"]
        if platform != platforms[0]:
            file = f"{FILES[name]}.{platform}.mlirbc"
            entry.setdefault("platforms", {})[platform] = file
        (folder / file).write_bytes(exported.mlir_module_serialized)
    if "weights" in document:
        arrays = {name: np.ascontiguousarray(value) for name, value in weights.items()}
        (folder / document["weights"]).write_bytes(save(arrays))
    text = json.dumps(document, indent=2) + "\n"
    shapes_in_lines = re.sub(r"\[[\d,\s]*\]", lambda shape: "".join(shape[0].split()).replace(",", ", "), text)
    (folder / "program.json").write_text(shapes_in_lines)


def load_jax(path: str | os.PathLike[str], tree: Tree) -> Tree:
    """Returns a pytree like `tree`, parameters or state of export_jax, with the file's values."""
    named = named_tensors(tree, "tensor")
    found = load_weights(path, {name: np.shape(value) for name, value in named.items()})
    return jax.tree.unflatten(jax.tree.structure(tree), [jnp.asarray(found[name]) for name in named])
