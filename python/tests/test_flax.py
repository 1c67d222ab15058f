# SPDX-License-Identifier: Apache-2.0
"""A transformer of Flax (nnx) that predicts tokens: tied embeddings, attention with dropout."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from worker import Program, assert_close

from coxswain_train import ExportError, export, load

BATCH, LENGTH, WIDTH, VOCABULARY = 3, 32, 16, 11
random = np.random.default_rng(0)
TOKENS = random.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype("i")
INPUT, TARGET = TOKENS[:, :-1], TOKENS[:, 1:]
SEED = np.array([3, 4], np.uint32)


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm1 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, WIDTH, dropout_rate=0.2, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x: Any, rngs: nnx.Rngs | None) -> Any:
        x = x + self.attention(self.norm1(x), mask=nnx.make_causal_mask(x[..., 0]), rngs=rngs)
        return x + self.down(nnx.gelu(self.up(self.norm2(x))))


class Transformer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.positions = nnx.Param(jnp.zeros((LENGTH, WIDTH)))
        self.blocks = nnx.List([Block(rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

    def __call__(self, tokens: Any, rngs: nnx.Rngs | None = None) -> Any:
        x = self.tokens(tokens) + self.positions[...]
        for block in self.blocks:
            x = block(x, rngs)
        return self.norm(x) @ self.tokens.embedding[...].T


STRUCTURE, PARAMETERS, GENERATORS = nnx.split(Transformer(nnx.Rngs(0)), nnx.Param, ...)


def logits_of(parameters: Any, input: Any, key: Any = None) -> Any:
    model = nnx.merge(STRUCTURE, parameters, GENERATORS)
    if key is None:
        model.eval()
        return model(input)
    model.train()
    return model(input, nnx.Rngs(dropout=key))


def loss(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    logits = logits_of(parameters, input, key if training else None)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), target[..., None], -1)[..., 0]
    return losses, logits.argmax(-1) == target, state


@pytest.fixture(scope="module")
def program(tmp_path_factory: Any) -> Program:
    folder: pathlib.Path = tmp_path_factory.mktemp("transformer")
    export(folder, loss, PARAMETERS, INPUT, TARGET, batch=BATCH, classes=VOCABULARY)
    return Program(folder)



def test_document(program: Program) -> None:
    block = {
        "attention.key.bias": [2, 8],
        "attention.key.kernel": [16, 2, 8],
        "attention.out.bias": [16],
        "attention.out.kernel": [2, 8, 16],
        "attention.query.bias": [2, 8],
        "attention.query.kernel": [16, 2, 8],
        "attention.value.bias": [2, 8],
        "attention.value.kernel": [16, 2, 8],
        "down.bias": [16],
        "down.kernel": [32, 16],
        "norm1.bias": [16],
        "norm1.scale": [16],
        "norm2.bias": [16],
        "norm2.scale": [16],
        "up.bias": [32],
        "up.kernel": [16, 32],
    }
    assert program.shapes("parameters") == {
        **{f"blocks.{number}.{name}": shape for number in range(2) for name, shape in block.items()},
        "norm.bias": [16],
        "norm.scale": [16],
        "positions": [32, 16],
        "tokens.embedding": [11, 16],
    }
    assert program.document["state"] == []
    assert program.document["input"] == {"type": "int32", "shape": [LENGTH]}
    assert program.document["target"] == {"type": "int32", "shape": [LENGTH], "classes": VOCABULARY}
    assert program.weights["positions"].shape == (LENGTH, WIDTH)


def test_gradients(program: Program) -> None:
    weight = np.array([1, 1, 0], "f")
    key = jax.random.wrap_key_data(SEED, impl="threefry2x32")

    def two(parameters: Any) -> Any:
        losses, hits, _ = loss(parameters, None, INPUT, TARGET, key, True)
        return losses[:2].sum(), hits[:2].sum()

    (total, hits), gradients = jax.jit(jax.value_and_grad(two, has_aux=True))(PARAMETERS)
    got_loss, got_hits, got_gradients, _ = program.train(INPUT, TARGET, weight, SEED)
    np.testing.assert_allclose(got_loss, total, rtol=1e-5)
    assert got_hits == hits
    names = list(program.shapes("parameters"))
    assert_close(got_gradients, dict(zip(names, jax.tree.leaves(gradients), strict=True)))


def test_evaluate(program: Program) -> None:
    losses, hits, _ = loss(PARAMETERS, None, INPUT, TARGET, None, False)
    total, hit = program.run("evaluate", INPUT, TARGET, np.ones(BATCH, "f"))
    np.testing.assert_allclose(total, losses.sum(), rtol=1e-5)
    assert hit == hits.sum()


class Digits(nnx.Module):
    """Dropout, batch normalisation, and logits of three classes."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(4, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.out = nnx.Linear(8, 3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(self.dropout(nnx.relu(self.norm(self.first(x)))))


def test_a_module_itself(tmp_path: pathlib.Path) -> None:
    """export takes the module and a loss of optax: no function to write."""
    module, losses = Digits(nnx.Rngs(0)), optax.losses.softmax_cross_entropy_with_integer_labels
    values, classes = random.random((4, 4), np.float32), np.array([0, 2, 1, 2], "i")
    export(tmp_path, module, losses, values, classes, batch=4)
    exported = Program(tmp_path)
    assert list(exported.shapes("parameters")) == ["first.bias", "first.kernel", "norm.bias", "norm.scale", "out.bias", "out.kernel"]
    assert exported.shapes("state") == {"norm.mean": [8], "norm.var": [8]}
    assert exported.document["entries"]["predict"]["output"] == {"type": "float32", "shape": [3], "scores": "logits"}
    first, again, other = (exported.train(values, classes, np.ones(4, "f"), seed) for seed in (SEED, SEED, SEED + np.uint32(1)))
    assert first[0] == again[0] != other[0]

    trained = nnx.clone(module)
    trained.train()
    trained(values)
    assert_close(first[3], {"norm.mean": trained.norm.mean[...], "norm.var": trained.norm.var[...]})
    module.eval()
    found = module(values)
    np.testing.assert_allclose(exported.run("predict", values)[0], found, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(exported.run("evaluate", values, classes, np.ones(4, "f"))[0], losses(found, classes).sum(), rtol=1e-5)

    fresh = load(tmp_path / "weights.safetensors", Digits(nnx.Rngs(1)))
    fresh.eval()
    np.testing.assert_array_equal(fresh(values), found)


@pytest.mark.parametrize(
    ("loss", "target", "message"),
    [
        (lambda output, target: jnp.square(output - target).mean(), np.ones((4, 3), "f"), "Do not take the mean"),
        (lambda output, target: output, np.ones((4, 2), "i"), "must have one more axis, of classes"),
    ],
)
def test_mistakes_with_a_module(tmp_path: pathlib.Path, loss: Any, target: Any, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        export(tmp_path, Digits(nnx.Rngs(0)), loss, np.ones((4, 4), "f"), target, batch=4)


def test_a_module_is_made_from_the_seed(tmp_path: pathlib.Path) -> None:
    losses = optax.losses.softmax_cross_entropy_with_integer_labels
    values, classes = random.random((4, 4), np.float32), np.array([0, 2, 1, 2], "i")
    export(tmp_path, Digits(nnx.Rngs(0)), losses, values, classes, batch=4, initialise=Digits)
    exported, made = Program(tmp_path), Digits(nnx.Rngs(9))
    assert "weights" not in exported.document
    first = exported.initialise(9)
    assert first.keys() == exported.shapes("parameters").keys() | exported.shapes("state").keys()
    np.testing.assert_allclose(first["first.kernel"], made.first.kernel[...], rtol=1e-6)
    np.testing.assert_allclose(first["out.kernel"], made.out.kernel[...], rtol=1e-6)
    assert (first["norm.var"] == 1).all() and (first["norm.mean"] == 0).all()
