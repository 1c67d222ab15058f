# SPDX-License-Identifier: Apache-2.0
"""Calls PyTorch's modules on JAX's arrays, through torchax. Only export_torch imports it: it needs PyTorch."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import torch
import torchax
import torchax.interop
import torchax.tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from coxswain_train.error import ExportError

Tensors = dict[str, Any]


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if not training or running_mean is None:
        return functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    axes = [axis for axis in range(input.ndim) if axis != 1]
    running_mean.copy_((1 - momentum) * running_mean + momentum * input.mean(axes))
    running_var.copy_((1 - momentum) * running_var + momentum * input.var(axes, unbiased=True))
    return functional.batch_norm(input, None, None, weight, bias, True, momentum, eps)


class RunningStatistics(TorchFunctionMode):  # type: ignore[misc]
    """Keeps the running statistics of batch normalisations, which torchax leaves as they were."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        called = batch_norm if function is functional.batch_norm else function
        return called(*arguments, **(keywords or {}))


@contextlib.contextmanager
def unfused() -> Iterator[None]:
    """Switches off the kernels of transformer layers that PyTorch only has for its own devices."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def array_of(tensor: Any) -> jax.Array:
    return jnp.asarray(tensor.detach().cpu().numpy())


def in_mode(module: Any, training: bool) -> Any:
    """Returns a copy that trains or evaluates. Parts that the caller froze by .eval() stay so while the others train."""
    module = copy.deepcopy(module)
    if not training or not module.training:
        module.train(training)
    return module


def without_dropout(module: Any) -> Any:
    """Returns a copy whose layers of dropout, and no others, evaluate."""
    module = copy.deepcopy(module)
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.eval()
    return module


def traced(function: Callable[..., Any], tensors: Any, inputs: Any, key: Any) -> tuple[Any, Any, bool]:
    """Calls `function(tensors, *inputs)`, which computes with PyTorch, on arrays.

    Returns its result, the tensors as the call left them, and whether it drew random numbers, which come from `key`.
    """
    environment = torchax.default_env()
    try:
        with unfused(), environment, environment.override_property(prng=key), RunningStatistics():
            views = torchax.interop.torch_view(tensors)
            result = function(views, *torchax.interop.torch_view(jax.tree.map(jnp.asarray, inputs)))
            drew = environment.param.prng is not key
            return torchax.interop.jax_view(result), torchax.interop.jax_view(views), drew
    except torchax.tensor.OperatorNotFound as error:
        raise ExportError(f"torchax cannot translate an operation of the module: {error}") from error


def views(arrays: Any) -> Any:
    """Returns arrays as the tensors that `traced` computes with."""
    return torchax.interop.torch_view(arrays)


def gradient_of(tensor: Any) -> jax.Array:
    return jnp.zeros(tensor.shape, jnp.float32) if tensor.grad is None else array_of(tensor.grad)


def tensor_output(output: Any) -> Any:
    """Returns the tensor that a module gave: itself, or the logits among the outputs of a model of transformers."""
    found = getattr(output, "logits", output)
    if not isinstance(found, torch.Tensor):
        raise ExportError(f"the module must return one tensor, or an object with .logits; it returns {type(output).__name__}")
    return found
