# SPDX-License-Identifier: Apache-2.0
"""gpu-bench beside PyTorch on the same GPU, in turns: the same models, batches and optimizers.

    bench_torch.py GPU_BENCH [SECONDS]

PyTorch: `default` as it comes (TF32 in convolutions, no wait between steps), `float32` without TF32, which is what we
compute in, `graph` the same captured once in a CUDA graph, with AdamW fused. Ours copies a batch to the GPU for every step, and
the host hears of each; PyTorch's lies there, and it waits once for many. Ours is in CUDA graphs, then `launched` one by one,
then with a host that waits for the GPU in each step (`waiting`).
"""
import os
import subprocess
import sys
import time

import torch
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "peers"))
import models  # noqa: E402

BATCHES = [("mlp", 128), ("lenet", 128), ("gpt-bytes", 16), ("mlp", 4096), ("lenet", 2048), ("gpt-bytes", 128)]


def build(name, batch, fused):
    work, model = models.WORKS[name], models.MODELS[name]().cuda()
    options = {"fused": True, "capturable": True} if fused and work.optimizer == "adamw" else {}
    optimizer = models.OPTIMIZERS[work.optimizer](model.parameters(), lr=work.rate, **options)
    inputs, targets = models.DATA[work.data](batch)
    return model, optimizer, inputs.cuda(), targets.cuda()


def seconds_a_step(step, seconds):
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(20):
            step()
        torch.cuda.synchronize()
        steps += 20
    return (time.perf_counter() - start) / steps


def measure(name, batch, mode, seconds):
    torch.backends.cudnn.allow_tf32 = mode == "default"
    torch.backends.cudnn.benchmark = True
    model, optimizer, inputs, targets = build(name, batch, mode == "graph")

    def step():
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    if mode != "graph":
        return seconds_a_step(step, seconds)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    return seconds_a_step(graph.replay, seconds)


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    lines = subprocess.run([sys.argv[1], str(seconds)], check=True, capture_output=True, text=True).stdout.split("\n")
    ours = {(name, int(batch)): [float(ms), float(launched), float(waiting)]
            for name, batch, ms, _, launched, waiting in (line.split() for line in lines if line)}
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; ms a step (how many times ours)")
    print(f"{'model':10} {'batch':>6} {'ours':>9} {'launched':>9} {'waiting':>9} {'units/s':>12} {'default':>16} {'float32':>16} {'graph':>16}")
    for name, batch in BATCHES:
        mine, launched, waiting = ours[(name, batch)]
        units = batch * models.WORKS[name].units / mine * 1e3
        others = [measure(name, batch, mode, seconds) * 1e3 for mode in ("default", "float32", "graph")]
        cells = " ".join(f"{ms:9.4f} {f'({ms / mine:.2f})':>6}" for ms in others)
        print(f"{name:10} {batch:6} {mine:9.4f} {launched:9.4f} {waiting:9.4f} {units:12.0f} {cells}", flush=True)


main()
