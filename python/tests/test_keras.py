# SPDX-License-Identifier: Apache-2.0
"""The example: a convolutional network with batch normalisation and dropout. And what else Keras models may have."""

import functools
import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest
from keras import layers
from worker import Program, assert_close

from coxswain_train import ExportError, export

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "examples"))
from digits import digits
from recommender import USERS, offers, recommender

BATCH = 16
random = np.random.default_rng(0)
PIXELS = random.random((BATCH, 28, 28, 1), np.float32)
LABELS = random.integers(0, 10, BATCH).astype("i")
WEIGHT = np.array([1] * 12 + [0] * 4, "f")
SEED = np.array([3, 4], np.uint32)
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def path_to_name(variable: Any) -> str:
    return str(variable.path).removeprefix("digits/").replace("/", ".")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: Any) -> Any:
    model, folder = digits(), tmp_path_factory.mktemp("digits")
    export(folder, model, CROSS_ENTROPY, PIXELS, LABELS, batch=BATCH)
    return model, Program(folder)


def test_document(exported: Any) -> None:
    model, program = exported
    assert program.shapes("parameters") == {
        "convolution1.kernel": [3, 3, 1, 16],
        "convolution2.kernel": [3, 3, 16, 32],
        "norm1.beta": [16],
        "norm1.gamma": [16],
        "norm2.beta": [32],
        "norm2.gamma": [32],
        "out.bias": [10],
        "out.kernel": [800, 10],
    }
    assert program.shapes("state") == {
        "norm1.moving_mean": [16],
        "norm1.moving_variance": [16],
        "norm2.moving_mean": [32],
        "norm2.moving_variance": [32],
    }
    assert program.document["batch"] == BATCH
    assert program.document["input"] == {"type": "float32", "shape": [28, 28, 1]}
    assert program.document["target"] == {"type": "int32", "shape": [], "classes": 10}
    assert list(program.document["entries"]) == ["lossAndGradients", "evaluate", "predict"]
    assert program.document["entries"]["predict"]["output"] == {"type": "float32", "shape": [10], "scores": "logits"}
    float_variables = [variable for variable in model.variables if variable.dtype == "float32"]
    assert_close(program.weights, {path_to_name(variable): variable.value for variable in float_variables})


def test_gradients_and_moving_means_are_those_of_keras(exported: Any) -> None:
    """With the dropout that Keras itself applies, when its generator has the state that the export derives."""
    model, program = exported
    key = jax.random.wrap_key_data(SEED, impl="threefry2x32")
    frozen = model.non_trainable_variables
    seeds = [number for number, variable in enumerate(frozen) if variable.dtype == "uint32"]
    assert len(seeds) == 1
    values = [variable.value for variable in frozen]
    values[seeds[0]] = jax.random.key_data(jax.random.fold_in(key, seeds[0]))
    per_example = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)

    def total(trainable: Any) -> Any:
        logits, new = model.stateless_call(trainable, values, PIXELS, training=True)
        return jnp.dot(per_example(LABELS, logits), WEIGHT), (logits, new)

    trainable = [variable.value for variable in model.trainable_variables]
    (loss, (logits, new)), gradients = jax.jit(jax.value_and_grad(total, has_aux=True))(trainable)
    got_loss, got_hits, got_gradients, got_state = program.train(PIXELS, LABELS, WEIGHT, SEED)
    np.testing.assert_allclose(got_loss, loss, rtol=1e-5)
    assert got_hits == (logits.argmax(-1) == LABELS)[:12].sum()
    assert_close(got_gradients, dict(zip(map(path_to_name, model.trainable_variables), gradients)))
    floats = [number for number in range(len(frozen)) if number not in seeds]
    assert_close(got_state, {path_to_name(frozen[number]): new[number] for number in floats})


def test_evaluate_and_predict(exported: Any) -> None:
    model, program = exported
    logits = model(PIXELS, training=False)
    loss, hits = program.run("evaluate", PIXELS, LABELS, np.ones(BATCH, "f"))
    np.testing.assert_allclose(loss, BATCH * CROSS_ENTROPY(LABELS, logits), rtol=1e-5)
    assert hits == (logits.argmax(-1) == LABELS).sum()
    np.testing.assert_allclose(program.run("predict", PIXELS)[0], logits, rtol=1e-4, atol=1e-5)


def test_each_dropout_has_its_own_numbers(tmp_path: pathlib.Path) -> None:
    """Two layers that were made with one seed, each on half of the input: what one leaves, the other does not."""
    source = keras.Input((64,))
    halves = [layers.Dropout(0.5, seed=1)(source) for _ in range(2)]
    out = layers.Dense(1, use_bias=False, kernel_initializer="ones", name="out")
    model = keras.Model(source, out(layers.Concatenate()(halves)))
    export(tmp_path, model, "mean_absolute_error", np.ones((2, 64), "f"), np.zeros((2, 1), "f"), batch=2)
    batch = np.ones((2, 64), "f"), np.full((2, 1), -1, "f"), np.array([1, 0], "f")
    kernel = Program(tmp_path).train(*batch, SEED)[2]["out.kernel"][:, 0]
    assert set(kernel) == {0, 2} and (kernel[:64] != kernel[64:]).any()


def test_a_loss_without_logits_is_of_probabilities(tmp_path: pathlib.Path) -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="softmax", name="out")])
    for loss in ("sparse_categorical_crossentropy", keras.losses.SparseCategoricalCrossentropy()):
        export(tmp_path, model, loss, random.random((4, 3), np.float32), np.arange(4), batch=4)
        output = Program(tmp_path).document["entries"]["predict"]["output"]
        assert output == {"type": "float32", "shape": [4], "scores": "probabilities"}


def test_regularisers_count_once_in_the_mean(tmp_path: pathlib.Path) -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, kernel_regularizer="l2", name="out")])
    inputs, targets = random.random((4, 3), np.float32), random.random((4, 2), np.float32)
    export(tmp_path, model, "mse", inputs, targets, batch=4)
    program = Program(tmp_path)
    assert program.document["target"] == {"type": "float32", "shape": [2]}
    assert program.document["entries"]["predict"]["output"] == {"type": "float32", "shape": [2]}
    model.compile(loss="mse")
    wanted = model.test_on_batch(inputs, targets)
    loss, hits = program.run("evaluate", inputs, targets, np.ones(4, "f"))
    np.testing.assert_allclose(loss / 4, wanted, rtol=1e-5)
    assert hits == 0


class Divided(keras.losses.Loss):
    """Divides by the size of the batch, although it is to return a loss for each target."""

    def call(self, target: Any, output: Any) -> Any:
        return keras.losses.mean_squared_error(target, output) / len(target)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (keras.losses.MeanSquaredError(reduction="sum"), "reduction='sum'"),
        (functools.partial(keras.losses.sparse_categorical_crossentropy, ignore_class=0), "ignore_class"),
        (Divided(), "mean of the losses of its examples"),
        (lambda target, output: keras.losses.mean_squared_error(target, output) / len(target), "mean of the losses of its examples"),
    ],
)
def test_a_loss_that_is_no_mean_is_refused(tmp_path: pathlib.Path, loss: Any, message: str) -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="out")])
    inputs, targets = random.random((4, 3), np.float32), random.random((4, 2), np.float32)
    with pytest.raises(ExportError, match=message):
        export(tmp_path, model, loss, inputs, targets, batch=4)
    assert not (tmp_path / "program.json").exists()


@pytest.mark.parametrize("named", [False, True])
def test_several_inputs(tmp_path: pathlib.Path, named: bool) -> None:
    model, (inputs, bought) = recommender(), offers(BATCH)  # the inputs are not in the order of their names
    given = inputs if named else list(inputs.values())
    export(tmp_path, model, CROSS_ENTROPY, given, bought, batch=BATCH, vocabularies={"user": USERS})
    program = Program(tmp_path)
    assert program.document["inputs"] == [
        {"name": "item", "type": "int32", "shape": []},
        {"name": "price", "type": "float32", "shape": [1]},
        {"name": "user", "type": "int32", "shape": [], "vocabulary": USERS},
    ]
    arrays = [inputs["item"].astype("i"), inputs["price"], inputs["user"].astype("i")]

    def total(values: Any) -> Any:
        logits, _ = model.stateless_call(values, [], list(inputs.values()), training=True)
        return (CROSS_ENTROPY.call(bought, logits) * WEIGHT).sum()

    value, gradients = jax.value_and_grad(total)([variable.value for variable in model.trainable_variables])
    loss, _, got, _ = program.train(*arrays, bought.astype("i"), WEIGHT, SEED)
    np.testing.assert_allclose(loss, value, rtol=1e-5)
    names = [variable.path.removeprefix("recommender/").replace("/", ".") for variable in model.trainable_variables]
    assert_close(got, dict(zip(names, gradients)))
    np.testing.assert_allclose(program.run("predict", *arrays)[0], model(list(inputs.values())), rtol=1e-5, atol=1e-6)


def test_a_class_that_a_loss_ignores(tmp_path: pathlib.Path) -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, name="out")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1)
    inputs, targets = random.random((4, 3), np.float32), np.array([2, 1, 3, 1])
    export(tmp_path, model, loss, inputs, targets, batch=4)
    program = Program(tmp_path)
    assert program.document["target"] == {"type": "int32", "shape": [], "classes": 4, "ignored": 1}
    total, _, count = program.run("evaluate", inputs, targets.astype("i"), np.ones(4, "f"))
    assert count == 2
    np.testing.assert_allclose(total / count, loss(targets, model(inputs)), rtol=1e-5)


def test_inputs_that_are_not_the_models(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ExportError, match="the example has 2 inputs, but the model 3: user, item, price"):
        export(tmp_path, recommender(), CROSS_ENTROPY, [LABELS, LABELS], LABELS, batch=BATCH)


def test_mistakes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, source = np.ones((2, 6), "i"), keras.Input((6,), dtype="int32")
    embedded = layers.Embedding(10, 4, mask_zero=True)(source)
    masked = keras.Model(source, layers.Dense(10)(embedded))
    double = keras.Model(source, [embedded, embedded])
    half = keras.Sequential([keras.Input((3,)), layers.Dense(2, dtype="float16", name="out")])
    ignoring = keras.losses.SparseCategoricalCrossentropy(ignore_class=0)
    for model, loss, inputs, message in [
        (masked, CROSS_ENTROPY, tokens, "whose output has a mask"),
        (masked, ignoring, tokens, "whose output has a mask"),
        (double, CROSS_ENTROPY, tokens, "one output"),
        (half, "mse", np.ones((2, 3), "f"), "parameter out.bias is float16"),
    ]:
        with pytest.raises(ExportError, match=message):
            export(tmp_path, model, loss, inputs, np.zeros((2, 6), "i"), batch=2)
    for targets, batch, message in [(1, 2, "2 example inputs, but 1 example targets"), (2, 0, "batch is 0")]:
        plain = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="out")])
        with pytest.raises(ExportError, match=message):
            export(tmp_path, plain, "mse", np.ones((2, 3), "f"), np.ones((targets, 2), "f"), batch=batch)
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(ExportError, match="set KERAS_BACKEND=jax"):
        export(tmp_path, masked, CROSS_ENTROPY, tokens, tokens, batch=2)


def test_a_bert_of_keras_hub(tmp_path: pathlib.Path) -> None:
    """A small one with random weights: three inputs, dropout, and a mask that goes through all layers."""
    hub = pytest.importorskip("keras_hub")
    sizes = {"vocabulary_size": 11, "num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24, "max_sequence_length": 6}
    classifier = hub.models.BertTextClassifier(hub.models.BertBackbone(dropout=0.1, **sizes), num_classes=3, preprocessor=None)
    lengths = np.array([6, 4, 6, 2])
    mask = (np.arange(6) < lengths[:, None]).astype("i")
    inputs = {"token_ids": random.integers(0, 11, (4, 6)).astype("i"), "padding_mask": mask, "segment_ids": np.zeros((4, 6), "i")}
    classes = np.array([0, 2, 1, 1], "i")
    export(tmp_path, classifier, CROSS_ENTROPY, inputs, classes, batch=4, vocabularies={"token_ids": 11})
    program = Program(tmp_path)
    ordered = [inputs[field["name"]] for field in program.document["inputs"]]
    logits = classifier(inputs, training=False)
    np.testing.assert_allclose(program.run("predict", *ordered)[0], logits, rtol=1e-4, atol=1e-5)
    loss, hits = program.run("evaluate", *ordered, classes, np.ones(4, "f"))
    np.testing.assert_allclose(loss / 4, CROSS_ENTROPY(classes, logits), rtol=1e-5)
    assert hits == (np.asarray(logits).argmax(-1) == classes).sum()
    seed = np.array([3, 4], np.uint32)
    first, other = (program.train(*ordered, classes, np.ones(4, "f"), seed + np.uint32(n)) for n in (0, 1))
    assert first[0] != other[0]
    assert all(np.isfinite(gradient).all() for gradient in first[2].values())
