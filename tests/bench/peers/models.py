# SPDX-License-Identifier: Apache-2.0
"""bench_train.c's work in PyTorch: same models, batches, optimizers; synthetic data."""
import torch
from torch import nn
from torch.nn import functional

from works import GPT_6X384, GPT_BYTES, RESNET20, WORKS


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(c, 2))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(b, t, c))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, depth, width, heads, context):
        super().__init__()
        self.token, self.position = nn.Embedding(256, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        return self.output(self.norm(self.blocks(x))).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))


class Residual(nn.Module):
    def __init__(self, before, filters, stride):
        super().__init__()
        self.stride, self.wider = stride, filters - before
        self.branch = nn.Sequential(nn.Conv2d(before, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
                                    nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        past = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.wider)) if self.wider else x
        return functional.relu(past + self.branch(x))


def resnet20():
    blocks = [Residual(*block) for block in RESNET20]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def images(examples):
    return torch.rand(examples, 1, 28, 28), torch.randint(0, 10, (examples,))


def pictures(examples):
    return torch.rand(examples, 3, 32, 32), torch.randint(0, 10, (examples,))


def tokens(examples):
    return torch.randint(0, 256, (examples, 256)), torch.randint(0, 256, (examples * 256,))


MODELS = {"mlp": mlp, "lenet": lenet, "resnet20": resnet20, "gpt-bytes": lambda: Gpt(**GPT_BYTES), "gpt-6x384": lambda: Gpt(**GPT_6X384)}
OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
DATA = {"images": images, "pictures": pictures, "tokens": tokens}


def stepper(model, work, batch):
    """A function that trains `model` one step on `batch` examples."""
    optimizer = OPTIMIZERS[WORKS[work].optimizer](model.parameters(), lr=WORKS[work].rate)
    inputs, targets = DATA[WORKS[work].data](batch)

    def step():
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step
