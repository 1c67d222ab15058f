# SPDX-License-Identifier: Apache-2.0
"""The works' models in PyTorch. The small ones are those of tests/bench/peers."""
import os
import sys

import torch
from torch import nn
from torch.nn import functional

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers"))
import models  # noqa: E402


class Gpt2(models.Gpt):
    """With the published vocabulary, and an output that is the table of tokens."""

    def __init__(self, depth, width, heads, context, vocabulary):
        super().__init__(depth, width, heads, context)
        self.token, self.output = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
        self.output.weight = self.token.weight


class Bottleneck(nn.Module):
    """ResNet v1.5: the stride is the 3 x 3 convolution's."""

    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.branch = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after))
        self.past = nn.Identity() if stride == 1 and before == after else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        return functional.relu(self.past(x) + self.branch(x), inplace=True)


def resnet(blocks, width, side, classes):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = width
    for group, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(before, width << group, 2 if group and block == 0 else 1))
            before = 4 * width << group
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


BUILD = {"gpt2": Gpt2, "resnet": resnet, "mlp": models.mlp, "lenet": models.lenet,
         "gpt": lambda depth, width, heads, context, vocabulary: models.Gpt(depth, width, heads, context)}


class Loss(nn.Module):
    """What is compiled has the loss in it, which then need not write what it reads twice."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs, targets):
        return functional.cross_entropy(self.model(inputs), targets)


def examples(work, count, device):
    """Inputs and targets of so many."""
    sizes = work.sizes
    if "context" in sizes:
        shape, vocabulary = (count, sizes["context"]), sizes["vocabulary"]
        return torch.randint(vocabulary, shape, device=device), torch.randint(vocabulary, (shape[0] * shape[1],), device=device)
    if work.model == "resnet":
        return torch.rand(count, 3, sizes["side"], sizes["side"], device=device), torch.randint(sizes["classes"], (count,), device=device)
    return torch.rand(count, 1, 28, 28, device=device), torch.randint(10, (count,), device=device)


def optimizer(work, model, fused):
    if work.optimizer == "adamw":
        return torch.optim.AdamW(model.parameters(), lr=work.rate, fused=fused, capturable=fused and torch.cuda.is_available())
    return torch.optim.SGD(model.parameters(), lr=work.rate, momentum=0.9 if work.optimizer == "momentum" else 0, fused=fused)
