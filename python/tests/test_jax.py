# SPDX-License-Identifier: Apache-2.0
"""A perceptron of plain JAX, with dropout and running means."""

import pathlib
import re
import tomllib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worker import Program, assert_close

from coxswain_train import ExportError, export

ROOT = pathlib.Path(__file__).parents[2]
BATCH, WIDTH, HIDDEN, CLASSES = 4, 5, 7, 3
random = np.random.default_rng(0)
PARAMETERS = {
    "hidden": {"kernel": random.normal(size=(WIDTH, HIDDEN)).astype("f"), "bias": np.zeros(HIDDEN, "f")},
    "out": [random.normal(size=(HIDDEN, CLASSES)).astype("f")],
}
STATE = {"norm": {"mean": np.full(HIDDEN, 0.5, "f")}}
INPUT = random.normal(size=(6, WIDTH)).astype("f")
TARGET = random.integers(0, CLASSES, 6).astype("i")
SEED = np.array([3, 4], np.uint32)


def outputs(parameters: Any, state: Any, input: Any) -> Any:
    hidden = jax.nn.gelu(input @ parameters["hidden"]["kernel"] + parameters["hidden"]["bias"], approximate=False)
    return (hidden - state["norm"]["mean"]) @ parameters["out"][0]


def losses_of(logits: Any, target: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), target[..., None], -1)[..., 0]


def loss(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    mean = 0.9 * state["norm"]["mean"] + 0.1 * input.mean()
    if training:
        input = input * jax.random.bernoulli(key, 0.5, input.shape) * 2
    logits = outputs(parameters, state, input)
    return losses_of(logits, target), logits.argmax(-1) == target, {"norm": {"mean": mean}}


def exported(folder: pathlib.Path, function: Any = loss, parameters: Any = PARAMETERS, **further: Any) -> Program:
    options: dict[str, Any] = {"state": STATE, "batch": BATCH, "classes": CLASSES} | further
    export(folder, function, parameters, options.pop("input", INPUT), options.pop("target", TARGET), **options)
    return Program(folder)


@pytest.fixture(scope="module")
def program(tmp_path_factory: Any) -> Program:
    return exported(tmp_path_factory.mktemp("perceptron"), predict=outputs, scores="logits")


def test_document(program: Program) -> None:
    assert program.document == {
        "format": "coxswain-program/1",
        "batch": BATCH,
        "parameters": [
            {"name": "hidden.bias", "shape": [HIDDEN]},
            {"name": "hidden.kernel", "shape": [WIDTH, HIDDEN]},
            {"name": "out.0", "shape": [HIDDEN, CLASSES]},
        ],
        "state": [{"name": "norm.mean", "shape": [HIDDEN]}],
        "input": {"type": "float32", "shape": [WIDTH]},
        "target": {"type": "int32", "shape": [], "classes": CLASSES},
        "entries": {
            "lossAndGradients": {"file": "loss_and_gradients.mlirbc"},
            "evaluate": {"file": "evaluate.mlirbc"},
            "predict": {
                "file": "predict.mlirbc",
                "output": {"type": "float32", "shape": [CLASSES], "scores": "logits"},
            },
        },
        "weights": "weights.safetensors",
    }
    assert_close(
        program.weights,
        {
            "hidden.kernel": PARAMETERS["hidden"]["kernel"],
            "hidden.bias": PARAMETERS["hidden"]["bias"],
            "out.0": PARAMETERS["out"][0],
            "norm.mean": STATE["norm"]["mean"],
        },
    )


def test_gradients_are_those_of_the_weighted_sum(program: Program) -> None:
    input, target, weight = INPUT[:BATCH], TARGET[:BATCH], np.array([1, 1, 1, 0], "f")
    key = jax.random.wrap_key_data(SEED, impl="threefry2x32")

    def three(parameters: Any) -> Any:
        losses, hits, state = loss(parameters, STATE, input, target, key, True)
        return losses[:3].sum(), (hits[:3].sum(), state)

    (total, (hits, state)), gradients = jax.value_and_grad(three, has_aux=True)(PARAMETERS)
    got_loss, got_hits, got_gradients, got_state = program.train(input, target, weight, SEED)
    np.testing.assert_allclose(got_loss, total, rtol=1e-5)
    assert got_hits == hits
    assert_close(
        got_gradients,
        {
            "hidden.kernel": gradients["hidden"]["kernel"],
            "hidden.bias": gradients["hidden"]["bias"],
            "out.0": gradients["out"][0],
        },
    )
    assert_close(got_state, {"norm.mean": state["norm"]["mean"]})


def test_dropout_is_of_the_seed(program: Program) -> None:
    batch = INPUT[:BATCH], TARGET[:BATCH], np.ones(BATCH, "f")
    first, again, other = (float(program.train(*batch, seed)[0]) for seed in (SEED, SEED, SEED + np.uint32(1)))
    assert first == again != other


def test_evaluate_and_predict(program: Program) -> None:
    logits = outputs(PARAMETERS, STATE, INPUT[:BATCH])
    total, hits = program.run("evaluate", INPUT[:BATCH], TARGET[:BATCH], np.array([1, 0, 1, 1], "f"))
    losses = losses_of(logits, TARGET[:BATCH])
    np.testing.assert_allclose(total, losses.sum() - losses[1], rtol=1e-5)
    assert hits == (logits.argmax(-1) == TARGET[:BATCH])[np.array([0, 2, 3])].sum()
    np.testing.assert_allclose(program.run("predict", INPUT[:BATCH])[0], logits, rtol=1e-5, atol=1e-6)


TABLES = {"user": random.normal(size=(9, 3)).astype("f"), "item": random.normal(size=(8, 3)).astype("f")}
OFFERS = {
    "item": random.integers(0, 8, (6,)),
    "price": random.normal(size=(6, 2, 3)).astype("f"),
    "user": random.integers(0, 9, (6,)),
}


def rating(parameters: Any, state: Any, input: Any) -> Any:
    return (parameters["user"][input["user"]] * parameters["item"][input["item"]] + input["price"].sum(1)).sum(-1)


def rating_loss(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    return (rating(parameters, state, input) - target) ** 2, None, state


def export_ratings(folder: pathlib.Path, input: Any = OFFERS, **further: Any) -> Program:
    target = np.arange(6, dtype="f")
    options = {"parameters": TABLES, "function": rating_loss, "state": None, "classes": None, "target": target} | further
    return exported(folder, input=input, **options)


def test_several_inputs(tmp_path: pathlib.Path) -> None:
    program = export_ratings(tmp_path, vocabularies={"user": 9}, predict=rating)
    assert program.document["format"] == "coxswain-program/2" and "input" not in program.document
    assert program.document["inputs"] == [
        {"name": "item", "type": "int32", "shape": []},
        {"name": "price", "type": "float32", "shape": [2, 3]},
        {"name": "user", "type": "int32", "shape": [], "vocabulary": 9},
    ]
    batch = {name: values[:BATCH].astype("f" if name == "price" else "i") for name, values in OFFERS.items()}
    arrays, target, weight = list(batch.values()), np.arange(BATCH, dtype="f"), np.array([1, 0, 1, 1], "f")

    def total(parameters: Any) -> Any:
        return (rating_loss(parameters, None, batch, target, None, True)[0] * weight).sum()

    value, gradients = jax.value_and_grad(total)(TABLES)
    loss, _, got, _ = program.train(*arrays, target, weight, SEED)
    np.testing.assert_allclose(loss, value, rtol=1e-5)
    assert_close(got, gradients)
    np.testing.assert_allclose(program.run("predict", *arrays)[0], rating(TABLES, None, batch), rtol=1e-5)


def test_inputs_by_position(tmp_path: pathlib.Path) -> None:
    def loss(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        return rating_loss(parameters, state, {"item": input[0], "price": input[1], "user": input[2]}, target, key, training)

    program = export_ratings(tmp_path, tuple(OFFERS.values()), function=loss)
    assert [input["name"] for input in program.document["inputs"]] == ["0", "1", "2"]


@pytest.mark.parametrize(
    "changes, options, message",
    [
        ({"price": OFFERS["price"][:5]}, {}, "there are 5 example inputs of price, but 6 example targets"),
        ({"price": OFFERS["price"] > 0}, {}, "the example input price is bool"),
        ({"a price": OFFERS["price"]}, {}, "the input 'a price' needs a name"),
        ({"a": {"b": OFFERS["user"]}, "a.b": OFFERS["user"]}, {}, "two inputs are called a.b"),
        ({str(number): OFFERS["user"] for number in range(14)}, {}, "has 17 arrays, but must have from 1 to 16"),
        ({}, {"vocabularies": {"users": 9}}, "vocabularies has 'users', but the inputs are item, price, user"),
        ({}, {"vocabularies": {"price": 9}}, "the vocabulary of price is 9, but must be at least 1, and the input int32"),
        ({}, {"vocabularies": {"user": int(OFFERS["user"].max())}}, "but the example has values from"),
    ],
)
def test_mistaken_inputs(tmp_path: pathlib.Path, changes: Any, options: Any, message: str) -> None:
    with pytest.raises(ExportError, match=re.escape(message)):
        export_ratings(tmp_path, {**OFFERS, **changes}, **options)
    assert not (tmp_path / "program.json").exists()


@pytest.mark.parametrize("mistaken", [[INPUT, INPUT], [[0.0, 1.0], [2.0, 3.0]], []])
def test_a_list_is_no_example(tmp_path: pathlib.Path, mistaken: Any) -> None:
    with pytest.raises(ExportError, match="the example input is a list: give one array .* as a dict by name or as a tuple"):
        exported(tmp_path, input=mistaken)
    assert not (tmp_path / "program.json").exists()


def test_an_output_need_not_be_scores(tmp_path: pathlib.Path) -> None:
    program = exported(tmp_path, predict=lambda *arguments: outputs(*arguments).argsort(-1).astype("i"))
    assert program.document["entries"]["predict"]["output"] == {"type": "int32", "shape": [CLASSES]}


def test_a_target_of_values_counts_once(tmp_path: pathlib.Path) -> None:
    def squares(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        return (outputs(parameters, STATE, input) - target) ** 2, None, state

    target = random.normal(size=(6, CLASSES)).astype("f")
    program = exported(tmp_path, squares, target=target, state=None, classes=None)
    assert program.document["target"] == {"type": "float32", "shape": [CLASSES]}
    total, hits = program.run("evaluate", INPUT[:BATCH], target[:BATCH], np.ones(BATCH, "f"))
    wanted = ((outputs(PARAMETERS, STATE, INPUT[:BATCH]) - target[:BATCH]) ** 2).mean(axis=1).sum()
    np.testing.assert_allclose(total, wanted, rtol=1e-5)
    assert hits == 0


def test_a_file_for_each_platform(tmp_path: pathlib.Path) -> None:
    program = exported(tmp_path, platforms=["cpu", "cuda"])
    entry = program.document["entries"]["evaluate"]
    assert entry == {"file": "evaluate.mlirbc", "platforms": {"cuda": "evaluate.cuda.mlirbc"}}
    assert (tmp_path / "evaluate.cuda.mlirbc").read_bytes().startswith(b"ML\xefR")
    assert len(program.run("evaluate", INPUT[:BATCH], TARGET[:BATCH], np.ones(BATCH, "f"))) == 2


def drawn(key: Any) -> Any:
    keys = jax.random.split(key)
    hidden = {"kernel": jax.random.normal(keys[0], (WIDTH, HIDDEN)), "bias": jnp.zeros(HIDDEN)}
    return {"hidden": hidden, "out": [jax.random.uniform(keys[1], (HIDDEN, CLASSES))]}, {"norm": {"mean": jnp.full(HIDDEN, 0.25)}}


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 5])
def test_first_values_are_those_of_the_key(tmp_path: pathlib.Path, seed: int) -> None:
    program = exported(tmp_path, initialise=drawn)
    assert "weights" not in program.document and not (tmp_path / "weights.safetensors").exists()
    assert program.document["entries"]["initialise"] == {"file": "initialise.mlirbc"}
    with jax.enable_x64(True):
        key = jax.random.key(seed, impl="threefry2x32")
    parameters, state = drawn(key)
    wanted = {"hidden.bias": parameters["hidden"]["bias"], "hidden.kernel": parameters["hidden"]["kernel"], "out.0": parameters["out"][0], "norm.mean": state["norm"]["mean"]}
    assert_close(program.initialise(seed), wanted, 1e-6)
    total, _ = program.run("evaluate", INPUT[:BATCH], TARGET[:BATCH], np.ones(BATCH, "f"))
    assert np.isfinite(total)


def mean_loss(*arguments: Any) -> Any:
    losses, hits, state = loss(*arguments)
    return losses.mean(), hits, state


def no_new_state(*arguments: Any) -> Any:
    return *loss(*arguments)[:2], {}


def no_state(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    return losses_of(outputs(parameters, STATE, input), target), None, state


def unseeded(key: Any) -> Any:
    parameters, state = drawn(key)
    parameters["hidden"]["kernel"] += np.random.default_rng().random(dtype=np.float32)
    return parameters, state


def factorised(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    return jnp.linalg.qr(outputs(parameters, state, input))[0].sum(-1), None, state


def random_noise(*arguments: Any) -> Any:
    losses, hits, state = loss(*arguments)
    return losses + np.random.default_rng().random(), hits, state


def random_gradient(parameters: Any, *further: Any) -> Any:
    factor = np.random.default_rng().random(dtype=np.float32)
    scaled = parameters["out"][0] * factor
    return loss(parameters | {"out": [scaled + jax.lax.stop_gradient(parameters["out"][0] - scaled)]}, *further)


def contrast(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
    logits = outputs(parameters, STATE, input)
    return losses_of(logits - logits.mean(0), target), None, state


def contrast_of_state(*arguments: Any) -> Any:
    return *contrast(*arguments)[:2], arguments[1]


def infinite(*arguments: Any) -> Any:
    losses, hits, state = loss(*arguments)
    return losses / 0, hits, state


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": {"a": np.zeros(3, "d")}}, "parameter a is float64, but must be float32"),
        ({"parameters": {"a": 1.0}}, "parameter a is float, but must be float32"),
        ({"parameters": {"a": np.zeros((1,) * 5, "f")}}, "parameter a has shape .* at most 4 dimensions"),
        ({"input": np.zeros((6,) + (1,) * 8, "f")}, "example input has shape .* at most 8 dimensions"),
        ({"parameters": {}}, "no parameters"),
        ({"parameters": np.zeros(3, "f")}, "a name has 1 to 95 bytes"),
        ({"parameters": {"a": {"b": np.zeros(3, "f")}, "a.b": np.zeros(3, "f")}}, "two parameter tensors are called a.b"),
        ({"state": {"hidden": {"bias": np.zeros(3, "f")}}}, "both called hidden.bias"),
        ({"state": {"count": np.zeros((), "i")}}, "state count is int32"),
        ({"input": INPUT.astype("f2")}, "example input is float16, but must be float32"),
        ({"target": TARGET.astype("u1")}, "example target is uint8, but must be float32 .* or int32"),
        ({"target": TARGET[:2]}, "6 example inputs, but 2 example targets"),
        ({"target": np.int32(1)}, r"example target has shape \[\]"),
        ({"classes": None}, "int32 targets need `classes`"),
        ({"classes": 2}, "int32 targets need `classes`, a number above"),
        ({"batch": 0}, "batch is 0"),
        ({"function": mean_loss}, r"losses of shape \[\], but must return one for each target: \[4\]"),
        ({"function": no_new_state}, "norm.mean differs"),
        ({"function": factorised}, "lapack_.*which only JAX in Python has"),
        ({"function": random_noise}, "lossAndGradients: loss of the exported function differs from the original"),
        ({"function": random_gradient}, "gradient of out.0 of the exported function differs"),
        ({"function": contrast, "state": None}, "lossAndGradients: loss depends on an example of weight 0"),
        ({"function": contrast_of_state}, "evaluate: loss depends on an example of weight 0"),
        ({"function": infinite}, "lossAndGradients: loss is not finite"),
        ({"predict": lambda *_: jnp.zeros(())}, r"predict must return one array of shape \[4, ...\]"),
        ({"predict": lambda *_: jnp.zeros((4, 0))}, r"predict returns \[4, 0\]; at most 8 dimensions"),
        ({"predict": lambda *_: jnp.zeros(4, bool)}, "predict returns bool, but must return float32 or int32"),
        ({"predict": lambda *_: jnp.zeros((4, 2)), "scores": "logits"}, "one for each class of one target"),
        ({"initialise": lambda key: drawn(key)[0]}, "initialise must return a tuple of parameters and state"),
        ({"initialise": lambda key: (drawn(key)[0], {})}, r"state norm.mean is missing in what initialise returns, but \[7\]"),
        ({"initialise": drawn, "state": {"norm": {"mean": np.zeros((), "f")}}, "function": no_state}, r"norm.mean is \[7\] in what initialise"),
        ({"initialise": lambda key: (PARAMETERS, STATE)}, "initialise gives the same values for two seeds"),
        ({"initialise": unseeded}, "initialise: hidden.kernel of the exported function differs from the original"),
        ({"predict": outputs, "scores": "odds"}, 'must be "logits" or "probabilities"'),
    ],
)
def test_mistakes(tmp_path: pathlib.Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExportError, match=message):
        exported(tmp_path, **options)
    assert not (tmp_path / "program.json").exists()


def test_statistics_of_a_batch_are_allowed_with_state(tmp_path: pathlib.Path) -> None:
    def normalised(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        logits = outputs(parameters, STATE, input)
        mean = logits.mean(0) if training else state["mean"]
        return losses_of(logits - mean, target), None, {"mean": mean}

    program = exported(tmp_path, normalised, state={"mean": np.zeros(CLASSES, "f")})
    batch = INPUT[:BATCH], TARGET[:BATCH], np.ones(BATCH, "f")
    assert_close(program.train(*batch, SEED)[3], {"mean": outputs(PARAMETERS, STATE, INPUT[:BATCH]).mean(0)})


def test_version_is_the_projects() -> None:
    header = (ROOT / "common/version.h").read_text()
    version = re.search(r'COXSWAIN_VERSION "(.*)"', header)
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())
    assert version is not None and version[1] == project["project"]["version"]


def test_ignored_targets_do_not_count(tmp_path: pathlib.Path) -> None:
    def careless(parameters: Any, state: Any, input: Any, target: Any, key: Any, training: bool) -> Any:
        logits = outputs(parameters, STATE, input)
        return losses_of(logits, target) / jnp.where(target < 0, 0, 1), logits.argmax(-1) == target, None

    target = TARGET.copy()
    target[1] = -100
    program = exported(tmp_path, careless, state=None, target=target, ignored=-100)
    assert program.document["target"] == {"type": "int32", "shape": [], "classes": CLASSES, "ignored": -100}
    weight = np.array([1, 1, 0, 1], "f")
    logits = outputs(PARAMETERS, STATE, INPUT[:BATCH])
    own = losses_of(logits, np.maximum(target[:BATCH], 0))
    loss, hits, count = program.run("evaluate", INPUT[:BATCH], target[:BATCH], weight)
    np.testing.assert_allclose(loss, own[0] + own[3], rtol=1e-5)
    assert count == 2 and hits == (logits.argmax(-1) == target[:BATCH])[np.array([0, 3])].sum()
    trained = program.run("lossAndGradients", INPUT[:BATCH], target[:BATCH], weight, SEED)
    assert len(trained) == 3 + 3 and trained[2] == 2 and all(np.isfinite(value).all() for value in trained)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": np.full(6, -100, "i"), "ignored": -100}, "all targets of the example are ignored"),
        ({"target": np.array([0, 1, 2, 0, -1, -100], "i"), "ignored": -100}, "int32 targets need `classes`"),
        ({"target": np.zeros((6, CLASSES), "f"), "classes": None, "ignored": -100}, "only int32 targets can be ignored"),
    ],
)
def test_mistakes_with_ignored_targets(tmp_path: pathlib.Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ExportError, match=message):
        exported(tmp_path, **options)
