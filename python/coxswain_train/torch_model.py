# SPDX-License-Identifier: Apache-2.0
"""Exports a module of PyTorch, which torchax translates to JAX."""

from __future__ import annotations

import copy
import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.nn import functional

from coxswain_train.check import MEAN_EXAMPLES, Entry, check_mean, first_difference
from coxswain_train.error import ExportError
from coxswain_train.program import Inputs, arguments_of, called_with, check_examples, examples_at, examples_of, export_jax, inputs_of
from coxswain_train.weights import load_weights

# PyTorch's kernels add in another order than XLA's.
TORCH_TOLERANCE = 1e-4


# Settings of a loss of PyTorch that change what its mean is.
SETTINGS = ("reduction", "weight")


def check_settings(settings: dict[str, Any]) -> None:
    """Refuses a loss whose mean is not the one that the worker takes. A setting that has no default is not set."""
    reduction, weight = (
        None if settings.get(name) is inspect.Parameter.empty else settings.get(name) for name in SETTINGS
    )
    if reduction not in (None, "mean", "none"):
        raise ExportError(f"the worker takes the mean of all losses: a loss with reduction={reduction!r} cannot be exported")
    if weight is not None:
        raise ExportError("a program counts all targets alike: a loss with weights of classes cannot be exported")


def losses_of(loss: Any) -> Any:
    """Returns `loss` without its mean: a function of the output and the target that gives the loss of each target."""
    if isinstance(loss, torch.nn.Module):
        check_settings({name: getattr(loss, name, None) for name in (SETTINGS if takes_logits(loss) else ("reduction",))})
        loss = copy.deepcopy(loss)
        if hasattr(loss, "reduction"):
            loss.reduction = "none"
        return loss
    parameters = inspect.signature(loss).parameters
    if "reduction" in parameters or "reduction" in getattr(loss, "keywords", {}):
        # The defaults have what functools.partial has bound, except what a function takes as **keywords.
        check_settings({name: parameter.default for name, parameter in parameters.items()} | getattr(loss, "keywords", {}))
        return functools.partial(loss, reduction="none")
    return loss


def takes_logits(loss: Any) -> bool:
    """Returns whether the outputs for such a loss are logits of classes: those of cross entropy, also logarithms of probabilities."""
    if isinstance(loss, torch.nn.Module):
        return isinstance(loss, torch.nn.CrossEntropyLoss | torch.nn.NLLLoss)
    return getattr(loss, "func", loss) in (functional.cross_entropy, functional.nll_loss)


def ignored_by(loss: Any, targets: Any) -> int | None:
    """Returns the target that a loss of PyTorch ignores, if it is a class or among the targets."""
    if isinstance(loss, torch.nn.Module):
        value = getattr(loss, "ignore_index", None)
    else:
        parameter = inspect.signature(loss).parameters.get("ignore_index")
        value = getattr(loss, "keywords", {}).get("ignore_index", parameter.default if parameter else None)
    return value if isinstance(value, int) and (value >= 0 or (targets == value).any()) else None


def class_axis(loss: Any, output: tuple[int, ...], target: tuple[int, ...]) -> int:
    """Returns the axis of an output that has a value for each class: PyTorch's own, 1, or the last one."""
    has_classes = len(output) == len(target) + 1
    if has_classes and output[:1] + output[2:] == target and (isinstance(loss, torch.nn.Module) or output[:-1] != target):
        return 1
    if has_classes and output[:-1] == target:
        return len(output) - 1
    raise ExportError(
        f"the target is int32 of shape {list(target)}, but no axis of the output {list(output)} is one of classes beside "
        f"it: give targets that are values as float32"
    )


def export_torch(
    folder: str | os.PathLike[str],
    module: Any,
    loss: Callable[[Any, Any], Any],
    example_input: Inputs,
    example_target: ArrayLike,
    *,
    batch: int,
    channels_first: bool = False,
    ignored: int | None = None,
    vocabularies: Mapping[str, int] | None = None,
    platforms: Sequence[str] = ("cpu",),
) -> None:
    """Exports a torch.nn.Module with one output; of an output with `.logits` these are taken.

    If the example is a dict of arrays, `forward` is called with them as keyword arguments, and if it is a tuple, as
    positional ones. For `vocabularies` and `ignored` see `export_jax`; the `ignore_index` of a loss of PyTorch is ignored
    without being named.

    `loss` is one of torch.nn's losses, or a function of the output and the target like those of torch.nn.functional. A
    function of your own returns a loss for each target: do not take their mean, the worker does.

    Names are those of the module's state_dict. Parameters that require gradients are trained; its other float32 tensors
    are state, such as the running statistics of batch normalisations. All other buffers are constants. Random numbers,
    such as dropout's, come from the seed of each step. Parts that the caller put in evaluation mode, in a module that is
    itself in training mode, stay so. The module is copied, and remains as it was.

    Where the output is logits of classes, as CrossEntropyLoss takes them for one target of each example, the worker's --predict names the
    most probable classes.

    The worker's images are [H, W, C], and so are those of the example. With `channels_first` the module gets [C, H, W].
    """
    from coxswain_train import torch_trace

    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats and part.momentum is None:
            raise ExportError("a normalisation with momentum=None counts batches: give it a momentum")
    inputs, targets = inputs_of(example_input), examples_of(example_target, "target")
    check_examples(inputs, targets, batch)
    if channels_first and isinstance(inputs, dict | tuple):
        raise ExportError("channels_first is for an only input: move the channels within the module instead")
    modules = {training: torch_trace.in_mode(module, training) for training in (False, True)}
    trained = {name for name, value in module.named_parameters() if value.requires_grad}
    kept = module.state_dict().keys() - trained
    parameters, state, constants = {}, {}, {}
    for name, value in (*module.named_parameters(), *module.named_buffers()):
        if name in trained and value.dtype != torch.float32:
            raise ExportError(f"parameter {name} is {str(value.dtype).removeprefix('torch.')}, but must be float32")
        if name in trained:
            parameters[name] = torch_trace.array_of(value)
        elif name in kept and value.dtype == torch.float32:
            state[name] = torch_trace.array_of(value)
        else:
            constants[name] = value.detach()
    per_target = losses_of(loss)

    def run(called: Any, parameters: Any, state: Any, input: Any, target: Any, key: Any) -> Any:
        """Returns output, losses (None without a target), the new state and whether `called` drew random numbers."""
        if channels_first:
            input = jnp.moveaxis(input, -1, 1)

        def compute(tensors: Any, input: Any, *target: Any) -> Any:
            output = torch_trace.tensor_output(torch.func.functional_call(called, tensors, *arguments_of(input)))
            return output.float(), losses(output.float(), *target) if target else None

        def losses(output: Any, target: Any) -> Any:
            if not isinstance(per_target, torch.nn.Module):
                return per_target(output, target)
            own = {name: torch_trace.array_of(value) for name, value in per_target.state_dict().items()}
            return torch.func.functional_call(per_target, torch_trace.views(own), (output, target))

        fixed = {name: torch_trace.array_of(value) for name, value in constants.items()}
        further = () if target is None else (target,)
        (output, losses_found), new, drew = torch_trace.traced(
            compute, {**parameters, **state, **fixed}, (input, *further), key
        )
        for name, value in fixed.items():
            if new[name] is not value and not name.endswith("num_batches_tracked"):
                raise ExportError(f"the module changes {name}, which is no float32 tensor of its state_dict")
        if losses_found is not None and losses_found.size == target.size:
            losses_found = losses_found.reshape(target.shape)
        if losses_found is not None and losses_found.shape[:1] != target.shape[:1]:
            raise ExportError(
                f"the loss has shape {list(losses_found.shape)}, but must be one for each target: {list(target.shape)}. Do not "
                f"take the mean or sum of the losses."
            )
        return output, losses_found, {name: new[name] for name in state}, drew

    fixed_key = jax.random.key(0, impl="threefry2x32")

    def predict(parameters: Any, state: Any, input: Any) -> Any:
        return run(modules[False], parameters, state, input, None, fixed_key)[0]

    axis, classes, scores = 0, None, None
    if targets.dtype == np.int32:
        output = jax.eval_shape(predict, parameters, state, inputs)
        axis = class_axis(loss, output.shape, targets.shape)
        classes = output.shape[axis]
        scores = "logits" if output.ndim == 2 and takes_logits(loss) else None

    def step(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        output, losses, new, _ = run(modules[training], parameters, state, input, target, key)
        return losses, output.argmax(axis) == target if classes else None, new

    taken = np.arange(batch) % len(targets)
    if ignored is None and classes:
        ignored = ignored_by(loss, targets)
    counted = targets[taken] != ignored if ignored is not None else np.ones(targets[taken].shape, bool)
    check_mean_of_torch(modules[False], loss, per_target, examples_at(inputs, taken), targets[taken], counted, channels_first)
    example = (examples_at(inputs, taken), np.where(counted, targets[taken], np.zeros((), targets.dtype)))
    check_against_torch(run, modules, per_target, (parameters, state, *example, fixed_key), channels_first)
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
        scores=scores,
        ignored=ignored,
        vocabularies=vocabularies,
        platforms=platforms,
    )


def batch_for_torch(inputs: Any, targets: Any, channels_first: bool) -> tuple[Any, Any]:
    input = jax.tree.map(lambda array: torch.from_numpy(np.moveaxis(array, -1, 1).copy() if channels_first else array), inputs)
    target = torch.from_numpy(targets)
    return input, target.long() if target.dtype == torch.int32 else target


def check_mean_of_torch(module: Any, loss: Any, losses: Any, inputs: Any, targets: Any, counted: Any, channels_first: bool) -> None:
    """Compares the loss of the module's output, as the caller gave it, with the losses that are exported."""
    from coxswain_train import torch_trace

    input, target = batch_for_torch(inputs, targets, channels_first)
    taken = [number % len(target) for number in range(max(2, min(MEAN_EXAMPLES, len(target))))]
    with torch.no_grad(), torch.random.fork_rng(devices=[]), torch_trace.unfused():
        output = torch_trace.tensor_output(called_with(copy.deepcopy(module), input)).float()
        if len(output) != len(target):  # export_jax says what shape is wrong
            return
        output, target = output[taken], target[taken]
        exported = losses(output, target)
        if exported.numel() % len(taken) != 0:  # check_against_torch says what shape is wrong
            return
        exported, counted = exported.reshape(len(taken), -1), counted[taken].reshape(len(taken), -1)
        if losses is loss and not counted.all():  # a function of each target's loss, whose mean counts all
            return
        check_mean(
            lambda part: loss(output[part], target[part]).mean().item(), exported.numpy(), counted if counted.shape == exported.shape else None
        )


def check_against_torch(
    run: Callable[..., Any], modules: dict[bool, Any], losses: Callable[..., Any], arguments: Any, channels_first: bool
) -> None:
    """Compares loss, gradients and state with PyTorch's own, training without dropout, and the loss while evaluating.

    Where a module draws random numbers outside its layers of dropout, the gradients are compared while it evaluates.
    """
    from coxswain_train import torch_trace

    parameters, state, inputs, targets, key = arguments
    drew = False

    def total(parameters: Any, called: Any) -> Any:
        nonlocal drew
        _, found, new, drew = run(called, parameters, state, inputs, targets, key)
        return jnp.sum(found.reshape(len(targets), -1).astype(jnp.float32)), new

    def torchs(called: Any) -> Any:
        called = copy.deepcopy(called)
        input, target = batch_for_torch(inputs, targets, channels_first)
        with torch_trace.unfused():
            loss = losses(torch_trace.tensor_output(called_with(called, input)).float(), target).sum()
        loss.backward()
        tensors = dict(called.named_parameters()) | dict(called.named_buffers())
        gradients = {name: torch_trace.gradient_of(tensors[name]) for name in parameters}
        return torch_trace.array_of(loss), {name: torch_trace.array_of(tensors[name]) for name in state}, gradients

    def compare(called: Any, what: str) -> None:
        function = functools.partial(total, called=called)
        (loss, new), gradients = jax.jit(jax.value_and_grad(function, has_aux=True))(parameters)
        names = ["the loss", *map("the new state {}".format, sorted(state)), *map("the gradient of {}".format, sorted(parameters))]
        different = first_difference(Entry(what, function, (), names), (loss, new, gradients), torchs(called), TORCH_TOLERANCE)
        if different is not None:
            raise ExportError(f"{what}: {different} is not PyTorch's own: torchax translates an operation wrongly")

    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        torchs(modules[True])
        is_random = not torch.equal(before, torch.get_rng_state())
        jax.eval_shape(functools.partial(total, called=modules[True]), parameters)
        if is_random and not drew:
            raise ExportError("the module draws random numbers while it trains, but not where torchax sees it: remove that dropout")
        compare(modules[False], "evaluating")
        plain = torch_trace.without_dropout(modules[True])
        jax.eval_shape(functools.partial(total, called=plain), parameters)
        if not drew:
            compare(plain, "training")


def load_torch(path: str | os.PathLike[str], module: Any) -> Any:
    """Sets the float32 tensors of a module's state_dict; of tied ones the file has one. Returns the module."""
    named = dict(module.named_parameters()) | dict(module.named_buffers())
    tensors = {name: named[name] for name in named.keys() & module.state_dict().keys() if named[name].dtype == torch.float32}
    found = load_weights(path, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(found[name]))
    return module
