# SPDX-License-Identifier: Apache-2.0
"""JAX over several processes: learns to tell which of ten prototypes a noisy vector comes from.

Started once in each pod; JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID come from the operator (on a TPU slice
TPU_WORKER_ID and TPU_WORKER_HOSTNAMES too, and jax.distributed.initialize() needs no words). The batch is spread over all
devices of all processes, the weights are everywhere. When a worker is lost, the operator starts the whole crew over, and it
goes on from the checkpoint that process 0 wrote last.
"""
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = int(os.environ.get("STEPS", 300))
SAVE_EVERY = 20
BATCH = 64  # of each process
RATE = 0.05


def examples(step, process, prototypes):
    """The same ones for the same step and process, whatever happened before."""
    generator = np.random.default_rng([step, process])
    labels = generator.integers(10, size=BATCH)
    return prototypes[labels] + 3 * generator.standard_normal((BATCH, 64), np.float32), labels


def loss(weights, inputs, labels):
    hidden = jax.nn.relu(inputs @ weights["w1"] + weights["b1"])
    logits = hidden @ weights["w2"] + weights["b2"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


@jax.jit
def train(weights, inputs, labels):
    value, gradients = jax.value_and_grad(loss)(weights, inputs, labels)
    return jax.tree.map(lambda weight, gradient: weight - RATE * gradient, weights, gradients), value


def save(path, step, weights):
    """Whole or not at all: the file is there under its name once it is complete."""
    new = path.with_suffix(".new.npz")
    np.savez(new, step=step, **{name: np.asarray(weight) for name, weight in weights.items()})
    os.replace(new, path)


def main():
    jax.distributed.initialize(
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"])
    )
    process = jax.process_index()
    checkpoint = pathlib.Path(os.environ["COXSWAIN_CHECKPOINT_DIR"]) / "jax-spmd.npz"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)

    generator = np.random.default_rng(1)
    prototypes = generator.standard_normal((10, 64), np.float32)
    weights = {
        "w1": generator.standard_normal((64, 128), np.float32) / 8,
        "b1": np.zeros(128, np.float32),
        "w2": generator.standard_normal((128, 10), np.float32) / 11,
        "b2": np.zeros(10, np.float32),
    }
    first = 0
    if checkpoint.exists():
        with np.load(checkpoint) as state:
            weights = {name: state[name] for name in weights}
            first = int(state["step"])
    print(f"process {process} of {jax.process_count()}, {jax.device_count()} devices, "
          f"attempt {os.environ['COXSWAIN_ATTEMPT']}: begins after step {first}")

    mesh = Mesh(np.array(jax.devices()), ("batch",))
    spread, everywhere = NamedSharding(mesh, PartitionSpec("batch")), NamedSharding(mesh, PartitionSpec())
    weights = {name: jax.make_array_from_process_local_data(everywhere, weight) for name, weight in weights.items()}
    for step in range(first, STEPS):
        inputs, labels = (
            jax.make_array_from_process_local_data(spread, part) for part in examples(step, process, prototypes)
        )
        weights, value = train(weights, inputs, labels)
        if (step + 1) % SAVE_EVERY == 0:
            value.block_until_ready()  # all have taken the step, so nobody begins anew before it
            if process == 0:
                save(checkpoint, step + 1, weights)
                print(f"step {step + 1}/{STEPS} loss {float(value):.4f}")
    print(f"done: loss {float(value):.4f}" if first < STEPS else "done before")
    jax.distributed.shutdown()


main()
