# SPDX-License-Identifier: Apache-2.0
"""Exports a model of Keras 3 whose backend is JAX."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from coxswain_train.check import MEAN_EXAMPLES, check_mean
from coxswain_train.error import ExportError
from coxswain_train.program import Inputs, check_examples, examples_at, examples_of, export_jax, inputs_of, named_tensors
from coxswain_train.weights import load_weights

SEED_STATE = "seed_generator_state"  # Keras' name of the variable of a seed generator


def names_of(model: Any, variables: list[Any]) -> list[str]:
    """Returns the variables' paths, from the model on, joined by dots."""
    names = [variable.path.removeprefix(model.name + "/").replace("/", ".") for variable in variables]
    for name in names:
        if names.count(name) > 1:
            raise ExportError(f"two variables are called {name}: give their layers different names")
    return names


def kept_variables(model: Any) -> list[Any]:
    """Returns the variables that are not trained, without the states of seed generators."""
    return [variable for variable in model.non_trainable_variables if variable.name != SEED_STATE]


def export_keras(
    folder: str | os.PathLike[str],
    model: Any,
    loss: str | Callable[[Any, Any], Any],
    example_input: Inputs,
    example_target: ArrayLike,
    *,
    batch: int,
    ignored: int | None = None,
    vocabularies: Mapping[str, int] | None = None,
    platforms: Sequence[str] = ("cpu",),
) -> None:
    """Exports a model with one output; `loss` is one of Keras' losses, its name, or a function like those.

    The example of a model with several inputs is what Keras' `fit` takes: a list of arrays, or a dict by name. The program's
    inputs have the names of the model's. For `vocabularies` see `export_jax`.

    Trainable variables are the parameters. All others that are float32 are state, such as the moving means of batch
    normalisations. The states of seed generators are neither: at each call a generator gets its own key of two words,
    derived from the step's seed and the generator's number among the model's. So dropout differs at each step and is the
    same when a step is repeated, whatever seed a layer was made with.

    Losses of regularisers are added to each target's loss, so that the mean has them once, as in Keras. Hits are counted
    for sparse categorical losses. Metrics are not exported. For `ignored` see `export_jax`; the `ignore_class` of a loss is ignored
    without being named.
    """
    import keras
    from keras.src.backend import get_keras_mask

    if keras.backend.backend() != "jax":
        raise ExportError(f"Keras runs on {keras.backend.backend()}: set KERAS_BACKEND=jax before Keras is imported")
    reducing = keras.losses.get(loss)
    losses_of = reducing.call if isinstance(reducing, keras.losses.Loss) else reducing
    sparse = keras.losses.sparse_categorical_crossentropy in (reducing, getattr(reducing, "fn", None))
    is_loss = reducing is not losses_of
    if is_loss and reducing.reduction == "sum":
        raise ExportError("the worker takes the mean of all losses: a loss with reduction='sum' cannot be exported")
    settings = reducing.get_config() if is_loss else getattr(reducing, "keywords", {})
    if settings.get("ignore_class") is not None and not (sparse and is_loss):
        raise ExportError("give ignore_class as keras.losses.SparseCategoricalCrossentropy(ignore_class=...) has it")
    ignored = settings.get("ignore_class") if ignored is None else ignored
    from_logits = sparse and is_loss and settings.get("from_logits", False)
    inputs, arranged = inputs_of_keras(model, example_input)
    targets = examples_of(np.asarray(example_target, None if sparse else np.float32), "target")
    check_examples(inputs, targets, batch)
    output = model(arranged(examples_at(inputs, slice(1))))  # builds the model if need be
    if not isinstance(output, jax.Array):
        raise ExportError("the model must have one output")
    if get_keras_mask(output) is not None:
        raise ExportError("a program counts all targets: a model whose output has a mask (mask_zero, Masking) cannot be exported")

    trainable, others = model.trainable_variables, model.non_trainable_variables
    is_seed = [variable.name == SEED_STATE for variable in others]
    kept = kept_variables(model)
    parameter_names, state_names = names_of(model, trainable), names_of(model, kept)

    def run(parameters: Any, state: Any, input: Any, key: Any, training: bool) -> Any:
        states = iter(state_names)
        values = [
            jax.random.key_data(jax.random.fold_in(key, number)) if seeds else state[next(states)]
            for number, seeds in enumerate(is_seed)
        ]
        outputs, new, regularisers = model.stateless_call(
            [parameters[name] for name in parameter_names], values, arranged(input), training=training, return_losses=True
        )
        new_state = dict(zip(state_names, (value for value, seeds in zip(new, is_seed) if not seeds)))
        return outputs.astype(jnp.float32), new_state, sum(regularisers)

    def step(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        outputs, new_state, regularisers = run(parameters, state, input, key, training)
        losses, hits = losses_of(target, outputs), None
        if sparse:
            found = outputs.argmax(-1)
            hits = found == target.reshape(found.shape)
        return losses + regularisers, hits, new_state

    def predict(parameters: Any, state: Any, input: Any) -> Any:
        return run(parameters, state, input, jax.random.key(0, impl="threefry2x32"), False)[0]

    parameters = dict(zip(parameter_names, (variable.value for variable in trainable)))
    named_tensors(parameters, "parameter")
    check_mean_of_keras(model, arranged, reducing, losses_of, inputs, targets, ignored)
    export_jax(
        folder,
        step,
        parameters,
        inputs,
        targets,
        state=dict(zip(state_names, (variable.value for variable in kept))),
        batch=batch,
        classes=output.shape[-1] if sparse else None,
        predict=predict,
        ignored=ignored,
        scores=("logits" if from_logits else "probabilities") if sparse and output.ndim == 2 else None,
        vocabularies=vocabularies,
        platforms=platforms,
    )


def inputs_of_keras(model: Any, values: Inputs) -> tuple[Inputs, Callable[[Inputs], Any]]:
    """Returns examples of the inputs, by name if there are several, and how to arrange them as the model takes them."""
    wanted = getattr(model, "inputs", None) or []
    if not isinstance(values, list | tuple) or len(wanted) < 2:
        return inputs_of(values), lambda inputs: inputs
    names = [tensor.name for tensor in wanted]
    if len(values) != len(names):
        raise ExportError(f"the example has {len(values)} inputs, but the model {len(names)}: {', '.join(names)}")
    return inputs_of(dict(zip(names, values))), lambda inputs: [inputs[name] for name in names]


def check_mean_of_keras(model: Any, arranged: Any, loss: Any, losses_of: Any, inputs: Any, targets: Any, ignored: int | None) -> None:
    """Compares the loss of the model's output, as the caller gave it, with the losses that are exported."""
    taken = np.arange(max(2, min(MEAN_EXAMPLES, len(targets)))) % len(targets)
    # One example at a time, as export_keras does it: the operations are compiled once.
    alone = (model(arranged(examples_at(inputs, slice(number, number + 1)))) for number in taken)
    output = jnp.concatenate(list(alone)).astype(jnp.float32)
    target = targets[taken]
    exported = losses_of(target, output)
    if jnp.shape(exported)[:1] == (len(taken),):  # otherwise export_jax says what shape is wrong
        counted = None if ignored is None else target != ignored
        check_mean(lambda part: float(jnp.mean(loss(target[part], output[part]))), exported, counted)


def load_keras(path: str | os.PathLike[str], model: Any) -> Any:
    """Sets the variables of a Keras model that is built, but for the states of seed generators. Returns the model."""
    variables = model.trainable_variables + kept_variables(model)
    names = names_of(model, variables)
    found = load_weights(path, {name: tuple(variable.shape) for name, variable in zip(names, variables)})
    for name, variable in zip(names, variables):
        variable.assign(found[name])
    return model
