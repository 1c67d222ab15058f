# SPDX-License-Identifier: Apache-2.0
"""Two processes of one thread under DistributedDataParallel over gloo, and gloo's all-reduce.

    ddp_torch.py MODEL             takes turns (turns.py)
    ddp_torch.py all-reduce        prints lines: bytes, median microseconds
"""
import os
import statistics
import sys
import time

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import models
import turns

SIZE = 2
BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20)


def train(work):
    torch.manual_seed(7)
    model = DistributedDataParallel(models.MODELS[work]())
    share = models.WORKS[work].batch // SIZE
    turns.serve(models.stepper(model, work, share), share * models.WORKS[work].units)


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
    distributed.barrier()


def run(rank, what):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=SIZE)
    if what == "all-reduce":
        turns.say("ready")
        all_reduce(rank)
    else:
        train(what)
    distributed.destroy_process_group()


if "RANK" in os.environ:
    run(int(os.environ["RANK"]), sys.argv[1])
else:
    host, port = turns.free_addresses(1)[0].split(":")
    address = {"MASTER_ADDR": host, "MASTER_PORT": port}
    crew = turns.Crew([([sys.executable, __file__, sys.argv[1]], {"RANK": str(rank), **address}) for rank in range(SIZE)])
    if sys.argv[1] == "all-reduce":
        for line in crew.members[0].stdout:
            turns.say(line.rstrip())
    else:
        crew.serve()
