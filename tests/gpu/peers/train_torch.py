# SPDX-License-Identifier: Apache-2.0
"""PyTorch in turns with gpu-bench, whose lines it speaks (bench.c): train_torch.py WORK MODE MICRO SHARE

MODE: `eager`, `compiled` (torch.compile), or `graph` (the step captured once as a CUDA graph), all with the optimizer fused; `plain`
as a script comes, without any of that; `float32` likewise, without TF32 in convolutions. Works in bfloat16 run under autocast, with
images channels-last. MICRO examples a pass; 0: the largest batch, half of it, a quarter … that a step of this MODE has memory for,
within SHARE of the GPU's. GPU_BENCH_DEVICE=cpu tries the script without a GPU.

Unlike ours its examples lie on the GPU from the beginning, and the host waits once a turn.
"""
import json
import os
import sys
import time

import torch

import gpu_models
import gpu_works
from fitting import widest

DEVICE = os.environ.get("GPU_BENCH_DEVICE", "cuda")
WARM_UP = 5


def say(*words):
    print(*words, flush=True)


def synchronise():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


class Trainee:
    def __init__(self, work, mode, micro):
        self.work, self.micro = work, micro
        self.passes = work.batch // micro
        model = gpu_models.BUILD[work.model](**work.sizes).to(DEVICE)
        inputs, targets = gpu_models.examples(work, micro, DEVICE)
        if work.model == "resnet":
            model, inputs = model.to(memory_format=torch.channels_last), inputs.to(memory_format=torch.channels_last)
        self.inputs, self.targets = inputs, targets
        self.optimizer = gpu_models.optimizer(work, model, fused=mode in ("eager", "compiled", "graph"))
        loss = gpu_models.Loss(model)
        self.loss = torch.compile(loss, dynamic=False) if mode == "compiled" else loss
        self.step = self.plain_step

    def accumulate(self):
        for _ in range(self.passes):
            with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=self.work.precision == "bfloat16"):
                loss = self.loss(self.inputs, self.targets)
            (loss / self.passes).backward()

    def plain_step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.accumulate()
        self.optimizer.step()

    def capture(self):
        """From here on a step is one launch."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.plain_step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self.plain_step()
        self.step = graph.replay


def fits(work, mode, micro):
    try:
        trainee = Trainee(work._replace(batch=micro), mode, micro)
        trainee.step()
        trainee.step()
        synchronise()
        return True
    except torch.OutOfMemoryError:
        return False
    finally:
        trainee = None
        torch.compiler.reset()  # it would give up compiling after some batches, and holds on to what it has compiled
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


def largest_micro(work, mode, share):
    if DEVICE == "cuda":
        torch.cuda.set_per_process_memory_fraction(share)
    eager = widest(work.batch, lambda micro: fits(work, "eager", micro), work.batch)
    if mode != "compiled":
        return eager
    # Each try compiles for most of a minute: the first one is where it will likely end, or fail by little.
    return widest(work.batch, lambda micro: fits(work, mode, micro), min(work.batch, 2 * eager))


def memory_mebibytes():
    """Of the GPU, whoever has taken it: as gpu-bench tells it."""
    if DEVICE != "cuda":
        return 0
    free, total = torch.cuda.mem_get_info()
    return (total - free) / (1 << 20)


def turn(trainee, seconds):
    steps, start = 0, time.perf_counter()
    while steps == 0 or time.perf_counter() - start < seconds:
        # A step of milliseconds is queued many times before the host waits, a long one is waited for.
        for _ in range(20 if trainee.quick else 1):
            trainee.step()
            steps += 1
        synchronise()
    return steps, time.perf_counter() - start


def main():
    work, mode, micro, share = gpu_works.WORKS[sys.argv[1]], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    torch.manual_seed(7)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = mode != "float32"
    trainee = Trainee(work, mode, micro or largest_micro(work, mode, share))
    trainee.step()
    synchronise()
    say("first")
    if mode == "graph":
        trainee.capture()
    for _ in range(WARM_UP):
        trainee.step()
    synchronise()
    start = time.perf_counter()
    trainee.step()
    synchronise()
    trainee.quick = time.perf_counter() - start < 0.02
    gpu = torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE
    say("ready", json.dumps({"torch": torch.__version__, "gpu": gpu, "batch": work.batch, "micro": trainee.micro}))
    for line in sys.stdin:
        steps, seconds = turn(trainee, float(line.split()[1]))
        say(steps * work.batch * work.units, f"{seconds:.6f}", steps, round(memory_mebibytes()))


main()
