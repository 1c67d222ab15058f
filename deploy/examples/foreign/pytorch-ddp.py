# SPDX-License-Identifier: Apache-2.0
"""PyTorch DistributedDataParallel over gloo: learns to tell which of ten prototypes a noisy vector comes from.

Started once in each pod; MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK come from the operator. When a worker is lost, the
operator starts the whole crew over, and it goes on from the checkpoint that rank 0 wrote last.
"""
import faulthandler
import os
import pathlib
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

faulthandler.register(signal.SIGTERM, chain=True)  # where it stood, if the crew hangs: docs/frameworks.md (Crews that hang)

STEPS = int(os.environ.get("STEPS", 300))
SAVE_EVERY = 20
BATCH = 64  # of each worker


def examples(step, rank, prototypes):
    """The same ones for the same step and rank, whatever happened before."""
    generator = torch.Generator().manual_seed(1_000_003 * step + rank)
    labels = torch.randint(10, (BATCH,), generator=generator)
    return prototypes[labels] + 3 * torch.randn(BATCH, 64, generator=generator), labels


def save(path, step, model, optimizer):
    """Whole or not at all: the file is there under its name once it is complete."""
    new = path.with_suffix(".new")
    torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, new)
    os.replace(new, path)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    checkpoint = pathlib.Path(os.environ["COXSWAIN_CHECKPOINT_DIR"]) / "pytorch-ddp.pt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)

    torch.manual_seed(1)
    prototypes = torch.randn(10, 64)
    network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    first = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    print(f"rank {rank} of {size}, attempt {os.environ['COXSWAIN_ATTEMPT']}: begins after step {first}")
    dist.barrier()  # nobody saves anew before everybody has read

    for step in range(first, STEPS):
        inputs, labels = examples(step, rank, prototypes)
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % SAVE_EVERY == 0 and rank == 0:
            save(checkpoint, step + 1, model, optimizer)
            print(f"step {step + 1}/{STEPS} loss {loss.item():.4f}")
    print(f"done: loss {loss.item():.4f}" if first < STEPS else "done before")
    dist.destroy_process_group()


main()
