# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch: a residual network with batch normalisation, transformers, and what cannot be exported."""

import functools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from worker import Program, assert_close

torch = pytest.importorskip("torch")
pytest.importorskip("torchax")

from torch import nn
from torch.nn import functional

from coxswain_train import ExportError, export, torch_model

random = np.random.default_rng(0)
SEED = np.array([3, 4], np.uint32)
BATCH, LENGTH, VOCABULARY = 4, 6, 11
TOKENS = random.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype("i")
WORDS, NEXT = TOKENS[:, :-1], TOKENS[:, 1:]
ONES = np.ones(BATCH, "f")


class Residual(nn.Module):
    """Images of 3 planes, two convolutions around which the input goes, and classes."""

    def __init__(self, dropout: float = 0) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8, momentum=0.3)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm1(self.first(x)))
        x = functional.relu(x + self.norm2(self.second(x)))
        return self.out(self.dropout(functional.max_pool2d(x, 2).mean((2, 3))))


class Transformer(nn.Module):
    """Predicts tokens; its embeddings are tied, and its mask is a buffer."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 16)
        self.positions = nn.Parameter(torch.randn(LENGTH, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout, activation="gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(16, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1))

    def forward(self, tokens: Any) -> Any:
        return self.head(self.block(self.tokens(tokens) + self.positions, src_mask=self.mask, is_causal=True))


def token_losses(logits: Any, target: Any) -> Any:
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")


def torchs_own(module: Any, losses: Callable[..., Any], input: Any, target: Any, weight: Any) -> Any:
    """Loss, hits, and gradients of the parameters, by PyTorch alone."""
    output = module(torch.from_numpy(input))
    loss = (losses(output, torch.from_numpy(target).long()).reshape(len(input), -1) * torch.from_numpy(weight)[:, None]).sum()
    loss.backward()
    return loss.item(), {name: value.grad.numpy() for name, value in module.named_parameters()}


@pytest.fixture(scope="module")
def residual(tmp_path_factory: Any) -> Any:
    torch.manual_seed(0)
    module, folder = Residual(), tmp_path_factory.mktemp("residual")
    images, classes = random.random((BATCH, 6, 8, 3), np.float32), random.integers(0, 5, BATCH).astype("i")
    export(folder, module, nn.CrossEntropyLoss(), images, classes, batch=BATCH, channels_first=True)
    return module, images, classes, Program(folder)


def test_document(residual: Any) -> None:
    module, _, _, program = residual
    weights = {name: value.numpy() for name, value in module.state_dict().items() if value.dtype == torch.float32}
    assert_close(program.weights, weights)
    assert program.shapes("parameters") == {name: list(value.shape) for name, value in sorted(module.named_parameters())}
    assert program.shapes("state") == {f"norm{n}.running_{what}": [8] for n in (1, 2) for what in ("mean", "var")}
    assert program.document["input"] == {"type": "float32", "shape": [6, 8, 3]}
    assert program.document["target"] == {"type": "int32", "shape": [], "classes": 5}
    assert list(program.document["entries"]) == ["lossAndGradients", "evaluate", "predict"]
    assert program.document["entries"]["predict"]["output"] == {"type": "float32", "shape": [5], "scores": "logits"}


def test_gradients_and_running_statistics_are_those_of_pytorch(residual: Any) -> None:
    module, images, classes, program = residual
    before = {name: value.clone() for name, value in module.state_dict().items()}
    weight = np.array([1, 1, 1, 0], "f")
    planes = np.moveaxis(images, -1, 1).copy()
    loss, gradients = torchs_own(module, lambda a, b: functional.cross_entropy(a, b, reduction="none"), planes, classes, weight)
    got_loss, _, got_gradients, got_state = program.train(images, classes, weight, SEED)
    np.testing.assert_allclose(got_loss, loss, rtol=1e-5)
    for name, value in gradients.items():
        np.testing.assert_allclose(got_gradients[name], value, rtol=0, atol=1e-5 + 1e-5 * np.abs(value).max(), err_msg=name)
    assert_close(got_state, {name: module.state_dict()[name].numpy() for name in got_state})
    module.load_state_dict(before)


def test_evaluate_and_predict(residual: Any) -> None:
    module, images, classes, program = residual
    module.eval()
    logits = module(torch.from_numpy(np.moveaxis(images, -1, 1).copy()))
    loss, hits = program.run("evaluate", images, classes, ONES)
    np.testing.assert_allclose(loss, BATCH * functional.cross_entropy(logits, torch.from_numpy(classes).long()).item(), rtol=1e-5)
    assert hits == (logits.argmax(-1).numpy() == classes).sum()
    np.testing.assert_allclose(program.run("predict", images)[0], logits.detach(), rtol=1e-4, atol=1e-5)
    module.train()


def test_a_transformer_with_dropout(tmp_path: pathlib.Path) -> None:
    module = Transformer(0.5)
    export(tmp_path, module, token_losses, WORDS, NEXT, batch=BATCH)
    program = Program(tmp_path)
    assert program.document["target"] == {"type": "int32", "shape": [LENGTH], "classes": VOCABULARY}
    assert "scores" not in program.document["entries"]["predict"]["output"]
    assert program.document["state"] == [] and "head.weight" not in program.weights
    first, again, other = (float(program.train(WORDS, NEXT, ONES, seed)[0]) for seed in (SEED, SEED, SEED + np.uint32(1)))
    assert first == again != other
    loss, _ = torchs_own(module.eval(), token_losses, WORDS, NEXT, np.array([1, 0, 1, 0], "f"))
    np.testing.assert_allclose(program.run("evaluate", WORDS, NEXT, np.array([1, 0, 1, 0], "f"))[0], loss, rtol=1e-5)


MASK = np.array([[1] * LENGTH, [1] * 4 + [0] * 2, [1] * LENGTH, [1] * 2 + [0] * 4], np.int64)


def compare_with_pytorch(program: Program, module: Any, losses: Any, inputs: dict[str, Any], target: Any) -> None:
    """To 1e-3, since the gradient of a bias of the keys is nothing but rounding."""
    weight = np.array([1, 1, 0, 1], "f")
    output = module(**{name: torch.from_numpy(values) for name, values in inputs.items()}).logits
    loss = (losses(output, torch.from_numpy(target).long()).reshape(BATCH, -1) * torch.from_numpy(weight)[:, None]).sum()
    loss.backward()
    order = [field["name"] for field in program.document["inputs"]]
    got_loss, _, got, _ = program.train(*(inputs[name].astype("i") for name in order), target, weight, SEED)
    np.testing.assert_allclose(got_loss, loss.item(), rtol=1e-5)
    assert_close(got, {name: value.grad.numpy() for name, value in module.named_parameters()}, 1e-3)


def test_a_bert_of_transformers_with_mask_and_types(tmp_path: pathlib.Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 8}
    dropout = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
    config = transformers.BertConfig(vocab_size=VOCABULARY, num_labels=3, initializer_range=0.5, **sizes, **dropout)
    module = transformers.BertForSequenceClassification(config)
    inputs = {"input_ids": WORDS.astype(np.int64), "attention_mask": MASK, "token_type_ids": (WORDS > 5).astype(np.int64)}
    classes = np.array([0, 2, 1, 1], "i")
    export(tmp_path, module, nn.CrossEntropyLoss(), inputs, classes, batch=BATCH, vocabularies={"input_ids": VOCABULARY})
    program = Program(tmp_path)
    assert program.document["target"] == {"type": "int32", "shape": [], "classes": 3}
    assert program.document["inputs"] == [
        {"name": "attention_mask", "type": "int32", "shape": [LENGTH]},
        {"name": "input_ids", "type": "int32", "shape": [LENGTH], "vocabulary": VOCABULARY},
        {"name": "token_type_ids", "type": "int32", "shape": [LENGTH]},
    ]
    compare_with_pytorch(program, module, nn.CrossEntropyLoss(reduction="none"), inputs, classes)
    arrays = [inputs[name].astype("i") for name in sorted(inputs)]
    unmasked = [np.ones_like(MASK, "i"), *arrays[1:]]
    masked, other = (program.run("predict", *given)[0] for given in (arrays, unmasked))
    changes = np.abs(masked - other).max(-1)
    assert min(changes[1], changes[3]) > 1e-2 and max(changes[0], changes[2]) < 1e-5


def test_a_llama_of_transformers_with_a_mask(tmp_path: pathlib.Path) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
    module = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=VOCABULARY, **sizes))
    inputs = {"input_ids": WORDS.astype(np.int64), "attention_mask": MASK}
    export(tmp_path, module, token_losses, inputs, NEXT, batch=BATCH)
    compare_with_pytorch(Program(tmp_path), module, token_losses, inputs, NEXT)


def model_of_transformers(name: str) -> Any:
    """A small model with random weights, of the class that Hugging Face's own checkpoints load into."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4}
    if name == "qwen2":
        return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(vocab_size=VOCABULARY, num_key_value_heads=2, **small))
    if name == "vit":
        config = transformers.ViTConfig(image_size=8, patch_size=4, num_labels=5, initializer_range=0.5, **small)
        return transformers.ViTForImageClassification(config)
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 12], "depths": [1, 1], "layer_type": "basic", "num_labels": 5}
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(**sizes))


@pytest.mark.parametrize("name", ["qwen2", "vit", "resnet"])
def test_models_of_transformers(tmp_path: pathlib.Path, name: str) -> None:
    module = model_of_transformers(name)
    if name == "qwen2":
        inputs, targets, losses, options = WORDS, NEXT, token_losses, {}
    else:
        inputs, targets = random.random((BATCH, 8, 8, 3), np.float32), random.integers(0, 5, BATCH).astype("i")
        losses, options = nn.CrossEntropyLoss(reduction="none"), {"channels_first": True}
    export(tmp_path, module, losses, inputs, targets, batch=BATCH, **options)
    program = Program(tmp_path)
    given = np.moveaxis(inputs, -1, 1).copy() if options else inputs
    weight = np.array([1, 1, 1, 0], "f")
    loss, gradients = torchs_own(module, lambda output, target: losses(output.logits, target), given, targets, weight)
    got_loss, _, got, state = program.train(inputs, targets, weight, SEED)
    np.testing.assert_allclose(got_loss, loss, rtol=1e-5)
    # The gradients of a bias before a normalisation, and of one of the keys, are nothing but rounding.
    assert_close(got, gradients, 1e-3)
    assert bool(state) == (name == "resnet")
    if state:
        assert_close(state, {key: module.state_dict()[key].numpy() for key in state})


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.items, self.price = nn.Embedding(9, 4), nn.Embedding(8, 4), nn.Linear(2, 4)

    def forward(self, user: Any, item: Any, price: Any) -> Any:
        return (self.users(user) * self.items(item) * self.price(price)).sum(-1)


def test_inputs_by_position(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(0)
    module, rated = Recommender(), np.arange(BATCH, dtype="f")
    inputs = np.arange(BATCH), np.arange(BATCH), random.random((BATCH, 2), np.float32)
    export(tmp_path, module, nn.MSELoss(), inputs, rated, batch=BATCH)
    program = Program(tmp_path)
    assert [(field["name"], field["type"]) for field in program.document["inputs"]] == [("0", "int32"), ("1", "int32"), ("2", "float32")]
    got = program.run("predict", *(values.astype(values.dtype.name.replace("64", "32")) for values in inputs))[0]
    np.testing.assert_allclose(got, module(*map(torch.from_numpy, inputs)).detach(), rtol=1e-5)
    with pytest.raises(ExportError, match="channels_first is for an only input"):
        export(tmp_path, module, nn.MSELoss(), inputs, rated, batch=BATCH, channels_first=True)


def test_frozen_parts_stay_as_they_are(tmp_path: pathlib.Path) -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    module[1].eval()
    inputs, targets = random.random((BATCH, 3), np.float32), random.random((BATCH, 2), np.float32)
    export(tmp_path, module, functional.mse_loss, inputs, targets, batch=BATCH)
    program = Program(tmp_path)
    assert list(program.shapes("parameters")) == ["1.bias", "1.weight", "2.bias", "2.weight"]
    _, hits, _, state = program.train(inputs, targets, ONES, SEED)
    assert hits == 0
    assert_close(state, {name: program.weights[name] for name in ("0.bias", "0.weight", "1.running_mean", "1.running_var")})


class Hidden(nn.Module):
    """Draws random numbers that torchax does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
            factor = torch.rand(1).item()
        return self.out(x) * factor if self.training else self.out(x)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.steps.add_(1)
        return self.out(x)


class Double(nn.Linear):
    def forward(self, x: Any) -> Any:
        return super().forward(x), x


class Skewed(nn.Linear):
    """Computes something else for torchax's tensors than for PyTorch's."""

    def forward(self, x: Any) -> Any:
        return super().forward(x) * (2 if "torchax" in type(x).__module__ else 1)


def ignoring_inside(output: Any, target: Any, reduction: str = "mean") -> Any:
    return functional.cross_entropy(output, target, ignore_index=0, reduction=reduction)


def weighted_inside(output: Any, target: Any, reduction: str = "mean") -> Any:
    return functional.cross_entropy(output, target, weight=torch.full((2,), 2.0), reduction=reduction)


def divided(output: Any, target: Any) -> Any:
    return functional.cross_entropy(output, target, reduction="none") / len(target)


def test_settings_that_keep_the_mean(tmp_path: pathlib.Path) -> None:
    module, loss = nn.Linear(3, 2), functools.partial(functional.cross_entropy, label_smoothing=0.1, ignore_index=-1)
    inputs, targets = random.random((BATCH, 3), np.float32), np.array([0, 1, 1, 0], "i")
    export(tmp_path, module, loss, inputs, targets, batch=BATCH)
    wanted = loss(module(torch.from_numpy(inputs)), torch.from_numpy(targets).long()).item()
    np.testing.assert_allclose(Program(tmp_path).run("evaluate", inputs, targets, ONES)[0] / BATCH, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "scores"),
    [
        (functools.partial(functional.cross_entropy, label_smoothing=0.1), "logits"),
        (nn.NLLLoss(), "logits"),
        (nn.MultiMarginLoss(), None),
        (lambda output, target: functional.cross_entropy(output, target, reduction="none"), None),
    ],
)
def test_scores_are_those_of_a_known_loss(loss: Any, scores: str | None) -> None:
    assert ("logits" if torch_model.takes_logits(loss) else None) == scores


@pytest.mark.parametrize(
    ("loss", "ignored"),
    [
        (nn.CrossEntropyLoss(), -100),
        (nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1), 0),
        (functools.partial(functional.cross_entropy, ignore_index=1), 1),
        (functional.cross_entropy, -100),
        (lambda output, target: functional.cross_entropy(output, target, reduction="none"), -100),
    ],
)
def test_an_index_that_a_loss_ignores(tmp_path: pathlib.Path, loss: Any, ignored: int) -> None:
    module, inputs = nn.Linear(3, 4), random.random((BATCH, 3), np.float32)
    targets = np.array([2, ignored, 3, ignored], "i")
    options = {"ignored": ignored} if getattr(loss, "__name__", "") == "<lambda>" else {}
    export(tmp_path, module, loss, inputs, targets, batch=BATCH, **options)
    program = Program(tmp_path)
    assert program.document["target"]["ignored"] == ignored
    total, _, count = program.run("evaluate", inputs, targets, ONES)
    assert count == 2
    found, known = module(torch.from_numpy(inputs)), torch.from_numpy(targets).long()
    np.testing.assert_allclose(total / count, loss(found, known).sum().item() / (2 if options else 1), rtol=1e-5)


def test_a_sum_is_refused_with_one_example(tmp_path: pathlib.Path) -> None:
    def summed(output: Any, target: Any, *, reduction: Any = None) -> Any:
        losses = functional.cross_entropy(output, target, reduction="none")
        return losses if reduction else losses.sum()

    with pytest.raises(ExportError, match="mean of the losses of its examples"):
        export(tmp_path, nn.Linear(3, 2), summed, np.ones((1, 3), "f"), np.array([1]), batch=1)


@pytest.mark.parametrize(
    ("module", "loss", "message"),
    [
        (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2, momentum=None)), nn.CrossEntropyLoss(), "momentum=None"),
        (nn.Linear(3, 2), nn.CrossEntropyLoss(reduction="sum"), "reduction='sum'"),
        (nn.Linear(3, 2), nn.CrossEntropyLoss(weight=torch.ones(2)), "weights of classes"),
        (nn.Linear(3, 2), functools.partial(functional.cross_entropy, reduction="sum"), "reduction='sum'"),
        (nn.Linear(3, 2), functools.partial(functional.cross_entropy, weight=torch.ones(2)), "weights of classes"),
        (nn.Linear(3, 2), lambda a, b, reduction="sum": functional.cross_entropy(a, b, reduction=reduction), "reduction='sum'"),
        (nn.Linear(3, 2), ignoring_inside, "mean of the losses of its examples"),
        (nn.Linear(3, 2), weighted_inside, "mean of the losses of its examples"),
        (nn.Linear(3, 2), divided, "mean of the losses of its examples"),
        (nn.Linear(3, 2), lambda a, b: functional.cross_entropy(a, b), "Do not take the mean"),
        (nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)), nn.BCEWithLogitsLoss(), "give targets that are values as float32"),
        (nn.Linear(3, 2).double(), nn.CrossEntropyLoss(), "parameter weight is float64"),
        (Hidden(), nn.CrossEntropyLoss(), "not where torchax sees it"),
        (Counter(), nn.CrossEntropyLoss(), "changes steps"),
        (Double(3, 2), nn.CrossEntropyLoss(), "must return one tensor"),
        (Skewed(3, 2), nn.CrossEntropyLoss(), "evaluating: the loss is not PyTorch's own"),
    ],
)
def test_mistakes(tmp_path: pathlib.Path, module: Any, loss: Any, message: str) -> None:
    inputs, targets = random.random((BATCH, 3), np.float32), np.array([0, 1, 1, 0])
    with pytest.raises(ExportError, match=message):
        export(tmp_path, module, loss, inputs, targets, batch=BATCH)
    assert not (tmp_path / "program.json").exists()


def test_a_list_is_no_example(tmp_path: pathlib.Path) -> None:
    column = np.ones((4, 3), "f")
    with pytest.raises(ExportError, match="as a dict by name or as a tuple"):
        export(tmp_path, nn.Bilinear(3, 3, 2), nn.MSELoss(), [column, column], np.ones((4, 2), "f"), batch=4)
    assert not (tmp_path / "program.json").exists()


@pytest.mark.parametrize(
    ("examples", "targets", "batch", "message"),
    [
        (4, 2, 4, "4 example inputs, but 2 example targets"),
        (2, 4, 4, "2 example inputs, but 4 example targets"),
        (4, 4, 0, "batch is 0, but must be from 1 to 65536"),
        (4, 4, 65537, "batch is 65537"),
    ],
)
def test_mistaken_sizes(tmp_path: pathlib.Path, examples: int, targets: int, batch: int, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        export(tmp_path, nn.Linear(3, 2), nn.MSELoss(), np.ones((examples, 3), "f"), np.ones((targets, 2), "f"), batch=batch)
    assert not (tmp_path / "program.json").exists()
