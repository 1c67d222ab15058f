# SPDX-License-Identifier: Apache-2.0
"""Two processes of one thread under DistributedDataParallel over gloo, and gloo's all-reduce.

    ddp_torch.py MODEL SECONDS     prints the rate of both together
    ddp_torch.py all-reduce        prints lines: bytes, median microseconds
"""
import os
import statistics
import sys
import time

import torch
from torch import distributed
from torch.multiprocessing import spawn
from torch.nn.parallel import DistributedDataParallel

import models

SIZE = 2
BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20)


def train(rank, work, seconds):
    torch.manual_seed(7)
    model = DistributedDataParallel(models.WORKS[work][0]())
    _, _, _, batch, units = models.WORKS[work]
    share = batch // SIZE
    # Both must leave after the same number of steps, since a lone last one would wait for ever: agree on it first.
    alone = models.units_per_second(models.WORKS[work][0](), work, share, seconds=0.2)
    steps = torch.tensor([alone * seconds / (share * units) / 2])
    distributed.all_reduce(steps, op=distributed.ReduceOp.MIN)
    rate = models.units_per_second(model, work, share, steps=int(steps[0]) + 1)
    if rank == 0:
        print(f"{rate * SIZE:.0f}", flush=True)


def all_reduce(rank):
    for size in BYTES:
        vector, times = torch.zeros(size // 4), []
        for _ in range(max(6, min(1000, (64 << 20) // size))):
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(vector)
            times.append(time.perf_counter() - start)
        if rank == 0:
            print(size, f"{statistics.median(times) * 1e6:.1f}", flush=True)


def run(rank, arguments):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=SIZE)
    if arguments[0] == "all-reduce":
        all_reduce(rank)
    else:
        train(rank, arguments[0], float(arguments[1]))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(20000 + os.getpid() % 10000))
    spawn(run, args=(sys.argv[1:],), nprocs=SIZE)
