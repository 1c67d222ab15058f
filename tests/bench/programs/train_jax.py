# SPDX-License-Identifier: Apache-2.0
"""JAX, in one process or several that share each batch: train_jax.py MODEL FOLDER [RANK SIZE ADDRESS]"""
import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import models_jax
import shared

work, folder, rank, size = sys.argv[1], sys.argv[2], *(map(int, sys.argv[3:5]) if len(sys.argv) > 3 else (0, 1))
if size > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(sys.argv[5], size, rank)
mesh = jax.make_mesh((size,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
shares, whole = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in (("batch",), ()))
given = shared.WORKS[work]
optimizer = {"sgd": optax.sgd, "adamw": optax.adamw}[given.optimizer](given.rate)
model, first = models_jax.MODELS[work]


def placed(array):
    return array if size == 1 else jax.make_array_from_process_local_data(shares, array)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train(parameters, slots, inputs, targets):
    def mean(parameters):
        return jnp.mean(models_jax.losses_of(model, parameters, inputs, targets)[0])

    loss, gradients = jax.value_and_grad(mean)(parameters)
    updates, slots = optimizer.update(gradients, slots, parameters)
    return loss, optax.apply_updates(parameters, updates), slots


parameters = jax.device_put(first(), whole)
slots = jax.device_put(optimizer.init(parameters), whole)
teller = shared.Teller(work, sum(np.prod(leaf.shape, dtype=int) for leaf in jax.tree.leaves(parameters)))
batches = shared.Batches(work, folder, rank, size)
while True:
    loss, parameters, slots = train(parameters, slots, *map(placed, batches.next()))
    teller.count(functools.partial(float, loss))
