# SPDX-License-Identifier: Apache-2.0
"""PyTorch, in one process or several under DistributedDataParallel over gloo: train_torch.py MODEL FOLDER THREADS eager|compiled
[RANK SIZE ADDRESS]"""
import sys

import numpy as np
import torch
from torch import distributed, nn
from torch.nn import functional

import shared
from shared import DEPTH, EPSILON, HEADS, HIDDEN, VOCABULARY, WIDTH


def lenet():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, EPSILON), nn.RMSNorm(WIDTH, EPSILON)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cosines, sines):
        def rotate(part):  # [batch, head, position, value]
            first, second = part.chunk(2, -1)
            return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)

        normed = self.norm1(x)
        query, key, value = (layer(normed).unflatten(-1, (HEADS, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        attended = functional.scaled_dot_product_attention(rotate(query), rotate(key), value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        normed = self.norm2(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.blocks = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm, self.output = nn.RMSNorm(WIDTH, EPSILON), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for name, values in zip(("cosines", "sines"), shared.rotations(), strict=True):
            self.register_buffer(name, torch.from_numpy(values))

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = block(x, self.cosines, self.sines)
        return self.output(self.norm(x))


def tensors(inputs, targets):
    if inputs.ndim == 4:
        inputs = np.moveaxis(inputs, -1, 1)
    return torch.from_numpy(np.ascontiguousarray(inputs)), torch.from_numpy(targets).long()


work, folder, threads, mode, *crew = sys.argv[1:]
rank, size = map(int, crew[:2]) if crew else (0, 1)
torch.set_num_threads(int(threads))
torch.manual_seed(7)
model = {"lenet": lenet, "llama": Llama}[work]()
teller = shared.Teller(work, sum(parameter.numel() for parameter in model.parameters()))
if size > 1:
    distributed.init_process_group("gloo", init_method=f"tcp://{crew[2]}", rank=rank, world_size=size)
    model = nn.parallel.DistributedDataParallel(model)
if mode == "compiled":
    model = torch.compile(model)
given = shared.WORKS[work]
optimizer = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[given.optimizer](model.parameters(), lr=given.rate)
batches = shared.Batches(work, folder, rank, size)
while True:
    inputs, targets = tensors(*batches.next())
    optimizer.zero_grad(set_to_none=True)
    loss = functional.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
    loss.backward()
    optimizer.step()
    teller.count(loss.item)
