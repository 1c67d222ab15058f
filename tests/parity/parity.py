# SPDX-License-Identifier: Apache-2.0
"""Our training beside PyTorch's: the same first weights, the same batches.

    parity.py WORKER [MODEL …]       one step's outputs and gradients to 1e-5, 100 steps' losses to 1e-3, and what is exported
    parity.py --golden FOLDER        writes the small files that the unit tests compare with
"""
import json
import math
import pathlib
import sys
import tempfile

import numpy
import torch

import models
import worker

STEPS, EXAMPLES, HELD_OUT, SEED, LONE_STEPS = 100, 64, 48, 11, 3
GRADIENTS, LOSSES, OUTPUTS = 1e-5, 1e-3, 2e-5
GPT = {"width": 64, "depth": 2, "heads": 4, "context": 32}

failed = 0


def worst_of(differences):
    """A NaN is worse than any number; max() would pass over all but a first one. Nothing compared is nothing shown."""
    differences = list(differences)
    return max(differences, key=lambda d: math.inf if math.isnan(d) else d, default=math.nan)


def verdict(worst, limit, name, what):
    global failed
    good = worst <= limit
    failed += not good
    print(f"{'ok' if good else 'not ok'} {name}: {what} differ by {worst:.1e}{'' if good else f', above {limit:.0e}'}", flush=True)


class Work:
    """One model: how it is told to the worker, its function, its first weights, its data, its optimizer."""

    def __init__(self, name, spec, function, parameters, optimizer, shape=None, vocabulary=0, foreign=False, batch=32, lone=32):
        self.name, self.spec, self.function, self.parameters, self.optimizer = name, spec, function, parameters, optimizer
        self.shape, self.vocabulary, self.foreign = shape, vocabulary, foreign
        self.batch, self.lone = batch, lone  # examples of a step: in training, and where gradients are compared

    def make_data(self, folder, seed):
        random = numpy.random.default_rng(seed)
        total = EXAMPLES + HELD_OUT
        if self.shape:
            x, y = random.integers(0, 256, (total, *self.shape), dtype=numpy.uint8), random.integers(0, 10, total)
            numpy.save(folder / "x.npy", x)
            numpy.save(folder / "y.npy", y)
            files = {"images": str(folder / "x.npy"), "labels": str(folder / "y.npy")}
            inputs, targets = torch.from_numpy(x).float() / 255, torch.from_numpy(y)
            return {"format": "NPY", "train": files, "validation": {"last": HELD_OUT}}, inputs, targets
        context = self.spec["context"]
        text = random.integers(0, self.vocabulary, total * context + 1).astype("<u2")
        header = numpy.zeros(256, "<i4")
        header[:3] = 20240520, 1, len(text)
        (folder / "text.bin").write_bytes(header.tobytes() + text.tobytes())
        text = torch.from_numpy(text.astype(numpy.int64))
        inputs, targets = text[:-1].view(total, context), text[1:].view(total, context)
        return {"format": "Tokens", "train": {"files": str(folder / "text.bin")}, "validation": {"last": HELD_OUT}}, inputs, targets


def is_statistic(name):
    return name.rsplit(".", 1)[1].startswith("running_")


def fresh(parameters):
    return {name: value.clone().requires_grad_(not is_statistic(name)) for name, value in parameters.items()}


def job(work, folder, data, steps, batch, optimizer):
    export = {"path": str(folder / "out.safetensors")}
    if work.foreign:
        export["names"] = "HuggingFace"
    return {
        "model": work.spec,
        "data": data,
        "strategy": {"type": "OneDevice"},
        "training": {"steps": steps, "batchSize": batch, "seed": SEED, "optimizer": optimizer},
        "init": {"path": str(folder / "first.safetensors")},
        "export": export,
    }


def exported(work, folder):
    tensors = worker.read_safetensors(folder / "out.safetensors")
    return models.from_hugging_face(tensors) if work.foreign else tensors


def distance(ours, theirs, least=1e-30):
    """Of two tensors, against the largest element (at least `least`)."""
    return (ours - theirs).abs().max().item() / max(theirs.abs().max().item(), least)


def gradients_in(work, kind, inputs, targets):
    p = {name: value.to(kind).requires_grad_(not is_statistic(name)) for name, value in fresh(work.parameters).items()}
    p = {name: value.detach().clone().requires_grad_(value.requires_grad) for name, value in p.items()}
    models.loss(work.function(p, inputs.to(kind) if inputs.is_floating_point() else inputs, True), targets).backward()
    return {name: value.grad.double() for name, value in p.items() if value.grad is not None}


def steady_seed(work, folder):
    """A seed at which PyTorch's own float32 and float64 agree: a rectifier whose input is zero but for rounding turns the
    last bit into a difference of whole examples, and none of both is wrong then."""
    for seed in range(100):
        _, inputs, targets = work.make_data(folder, seed)
        numbers = next(worker.batches(SEED, EXAMPLES, work.lone))
        single, double = (gradients_in(work, kind, inputs[numbers], targets[numbers]) for kind in (torch.float32, torch.float64))
        if worst_of(distance(single[name], double[name], 1e-3 * largest(double)) for name in double) < GRADIENTS / 2:
            return seed
    raise SystemExit(f"{work.name}: no batch of {work.lone} examples is far enough from the rectifiers' edges")


def largest(tensors):
    return worst_of(value.abs().max().item() for value in tensors.values())


def check_gradients(work, program, folder, data, inputs, targets):
    rate = 64  # a power of two, so that the step's rounding stays far below the gradient
    folder.mkdir()
    worker.write_safetensors(folder / "first.safetensors", models.to_hugging_face(work.parameters) if work.foreign else work.parameters)
    worker.run(program, folder, job(work, folder, data, 1, work.lone, {"type": "SGD", "learningRate": str(rate), "momentum": "0"}))
    p, after = fresh(work.parameters), exported(work, folder)
    numbers = next(worker.batches(SEED, EXAMPLES, work.lone))
    models.loss(work.function(p, inputs[numbers], True), targets[numbers]).backward()
    gradients, statistics = [], []
    biggest = largest({name: value.grad for name, value in p.items() if value.grad is not None})
    for name, value in p.items():
        if is_statistic(name):
            statistics.append(distance(after[name], value))
            continue
        # A gradient that is zero but for rounding (a bias before a softmax) is compared with the model's largest.
        gradients.append(distance((work.parameters[name] - after[name]) / rate, value.grad, 1e-3 * biggest))
    verdict(worst_of(gradients), GRADIENTS, work.name, "one step's gradients")
    if statistics:
        verdict(worst_of(statistics), GRADIENTS, work.name, "running statistics")


def lone_step(work, program, folder, data, parameters, seed):
    """The gradients of one step of one example, as the worker takes it, and the example's number."""
    folder.mkdir(parents=True)
    worker.write_safetensors(folder / "first.safetensors", models.to_hugging_face(parameters) if work.foreign else parameters)
    rate = 64
    description = job(work, folder, data, 1, 1, {"type": "SGD", "learningRate": str(rate), "momentum": "0"})
    description["training"]["seed"] = seed
    worker.run(program, folder, description)
    after = exported(work, folder)
    gradients = {name: (value.double() - after[name].double()) / rate for name, value in parameters.items()}
    return gradients, next(worker.batches(seed, EXAMPLES, 1))


def image_outputs(gradients, p, inputs):
    """From the last bias: its gradient is probabilities less 1 for the target."""
    return gradients["output.bias"][None], slice(None)


def token_outputs(gradients, p, inputs):
    """From the head's weight: its gradient is the sum over tokens of features times that. There are more features than tokens, so
    each token's part can be told from the others'. Of a tied table the classes that are among the inputs have a gradient from the
    embedding as well: those are left out."""
    with torch.no_grad():
        features = models.gpt_features({name: value.double() for name, value in p.items()}, inputs)
    head = models.gpt_head(p)
    outputs = torch.linalg.lstsq(features.T, gradients[head].T).solution * len(features)
    classes = torch.ones(len(gradients[head]), dtype=torch.bool)
    if head == "embedding.weight":
        classes[inputs.flatten()] = False
    return outputs, classes


def check_outputs(work, program, folder, data, inputs, targets, parameters, what):
    """The classes' probabilities of lone examples, at each token, in a training step. The worker writes no logits, but gradients
    tell them: probabilities are the logits but for a constant."""
    differences = []
    for seed in range(SEED, SEED + LONE_STEPS):
        gradients, numbers = lone_step(work, program, folder / f"{what.replace(' ', '-')}.{seed}", data, parameters, seed)
        p = fresh(parameters)
        with torch.no_grad():
            theirs = work.function(p, inputs[numbers], True).softmax(1).double()
        theirs[torch.arange(len(theirs)), targets[numbers].flatten()] -= 1
        ours, classes = (token_outputs if work.vocabulary else image_outputs)(gradients, p, inputs[numbers])
        differences.append((ours - theirs)[:, classes].abs().max().item())
    verdict(worst_of(differences), OUTPUTS, work.name, f"outputs of {what}, class by class")


def make_optimizer(work, p):
    trained = [value for value in p.values() if value.requires_grad]
    rate = float(work.optimizer["learningRate"])
    if work.optimizer["type"] == "SGD":
        return torch.optim.SGD(trained, lr=rate, momentum=float(work.optimizer["momentum"]))
    return torch.optim.AdamW(trained, lr=rate, weight_decay=float(work.optimizer["weightDecay"]))


def check_training(work, program, folder, data, inputs, targets):
    folder.mkdir()
    worker.write_safetensors(folder / "first.safetensors", models.to_hugging_face(work.parameters) if work.foreign else work.parameters)
    found = worker.run(program, folder, job(work, folder, data, STEPS, work.batch, work.optimizer))
    p = fresh(work.parameters)
    optimizer, losses = make_optimizer(work, p), []
    for step, numbers in zip(range(1, STEPS + 1), worker.batches(SEED, EXAMPLES, work.batch)):
        optimizer.zero_grad()
        loss = models.loss(work.function(p, inputs[numbers], True), targets[numbers])
        loss.backward()
        optimizer.step()
        losses.append(abs(found["train/loss"][step] - loss.item()) / abs(loss.item()))
    verdict(worst_of(losses), LOSSES, work.name, f"losses of {STEPS} steps")
    # Compares PyTorch's evaluation of the exported weights with the worker's own evaluation.
    with torch.no_grad():
        out = work.function(exported(work, folder), inputs[EXAMPLES:], False)
        theirs = models.loss(out, targets[EXAMPLES:]).item()
        accuracy = (out.argmax(1) == targets[EXAMPLES:].flatten()).float().mean().item()
    ours = list(found["validation/loss"].values())[-1]
    verdict(abs(ours - theirs) / theirs, OUTPUTS, work.name, "outputs of the exported weights (validation loss)")
    if "validation/accuracy" in found:
        verdict(abs(list(found["validation/accuracy"].values())[-1] - accuracy), 1e-6, work.name, "accuracies")


def check_generation(work, program, folder, data):
    """The likeliest token after each prompt of one token. Large biases tell whether --generate adds them."""
    folder.mkdir()
    p = {name: value + torch.randn_like(value) if name.endswith(".bias") else value for name, value in work.parameters.items()}
    worker.write_safetensors(folder / "first.safetensors", models.to_hugging_face(p) if work.foreign else p)
    (folder / "job.json").write_text(json.dumps(job(work, folder, data, 1, 1, work.optimizer)))
    with torch.no_grad():
        theirs = work.function(p, torch.arange(work.vocabulary)[:, None], False).argmax(1).tolist()
    ours = [worker.generate(program, folder, [token], 1)[-1] for token in range(work.vocabulary)]
    verdict(sum(a != b for a, b in zip(ours, theirs)), 0, work.name, f"greedy tokens after {work.vocabulary} prompts")


def works():
    torch.manual_seed(5)
    sgd = {"type": "SGD", "learningRate": "0.002", "momentum": "0.9"}
    slow = {**sgd, "learningRate": "0.0005"}  # a hundred steps of a deep net amplify each rounding
    adamw = {"type": "AdamW", "learningRate": "1e-3", "weightDecay": "0.1"}
    gpt = models.gpt_parameters(GPT["width"], GPT["depth"], GPT["context"], 256, False)
    tied = models.gpt_parameters(GPT["width"], GPT["depth"], GPT["context"], 300, True)
    return [
        Work("mlp", {"preset": "mlp"}, models.mlp, models.mlp_parameters(), sgd, (28, 28, 1)),
        Work("lenet", {"preset": "lenet"}, models.lenet, models.lenet_parameters(), sgd, (28, 28, 1), lone=8),
        Work("resnet20", {"preset": "resnet20"}, models.resnet20, models.resnet20_parameters(), slow, (32, 32, 3), batch=16, lone=2),
        Work("gpt-bytes", {"preset": "gpt-bytes", **GPT}, models.gpt, gpt, adamw, vocabulary=256),
        Work("gpt2", {"preset": "gpt2-124m", **GPT, "vocabulary": 300}, models.gpt, tied, adamw, vocabulary=300, foreign=True),
    ]


def greedy_tokens(parameters, prompt, count, context, heads):
    """The most probable tokens, one after another. A full context keeps its newer half, as the worker's does (generate.h)."""
    window, found = list(prompt), []
    for _ in range(count):
        logits = models.gpt(parameters, torch.tensor([window]), False, heads)[-1]
        best, second = logits.topk(2).values
        assert best - second > 1e-3, "two tokens are equally probable but for rounding: take another seed"
        found.append(logits.argmax().item())
        window = (window if len(window) < context else window[context // 2 :]) + found[-1:]
    return found


def golden_text(folder):
    """Weights, and what PyTorch continues a prompt of each token with."""
    torch.manual_seed(10)
    context, vocabulary, heads = 12, 11, 2
    parameters = models.gpt_parameters(8, 2, context, vocabulary, False)
    for name in ("embedding.weight", "embedding.position"):
        parameters[name] *= 10  # so that the texts differ, and do not stand still
    p = {key: value.double() for key, value in parameters.items()}
    texts = [greedy_tokens(p, [token], 4 * context, context, heads) for token in range(vocabulary)]
    out = {"w/" + key: value for key, value in parameters.items()}
    worker.write_safetensors(pathlib.Path(folder) / "text.safetensors", {**out, "tokens": torch.tensor(texts).float()})


def golden(folder):
    """Weights, one batch, and what PyTorch makes of them, in double precision: a few KB a model."""
    torch.manual_seed(7)
    resnet = models.resnet20_parameters(width=2, depth=1, channels=1, classes=5)
    gpt = models.gpt_parameters(8, 1, 6, 11, True)
    cases = {
        "resnet": (lambda p, x: models.resnet20(p, x, True, 1), resnet, torch.rand(4, 8, 8, 1), torch.tensor([0, 4, 2, 2])),
        "gpt": (lambda p, x: models.gpt(p, x, True, 2), gpt, torch.randint(0, 11, (3, 6)), torch.randint(0, 11, (3, 6))),
    }
    for name, (function, parameters, x, y) in cases.items():
        p = fresh({key: value.double() for key, value in parameters.items()})
        loss = models.loss(function(p, x.double() if x.is_floating_point() else x), y)
        loss.backward()
        out = {"x": x.float(), "y": y.float(), "loss": loss.reshape(1).float()}
        for key, value in p.items():
            out["w/" + key] = parameters[key]
            # For running statistics what a step subtracts from them.
            out["g/" + key] = (parameters[key].double() - value).float() if is_statistic(key) else value.grad.float()
        worker.write_safetensors(pathlib.Path(folder) / f"{name}.safetensors", out)
    golden_text(folder)


def main():
    if sys.argv[1] == "--golden":
        golden(sys.argv[2])
        return
    torch.set_num_threads(2)
    wanted = sys.argv[2:]
    for work in works():
        if wanted and work.name not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="coxswain-parity-") as name:
            folder = pathlib.Path(name)
            data, inputs, targets = work.make_data(folder, steady_seed(work, folder))
            check_gradients(work, sys.argv[1], folder / "one", data, inputs, targets)
            check_outputs(work, sys.argv[1], folder / "lone", data, inputs, targets, work.parameters, "the first weights")
            check_training(work, sys.argv[1], folder / "many", data, inputs, targets)
            trained = exported(work, folder / "many")
            check_outputs(work, sys.argv[1], folder / "lone", data, inputs, targets, trained, "the exported weights")
            if work.vocabulary:
                check_generation(work, sys.argv[1], folder / "generated", data)
    sys.exit(failed > 0)


main()
