# SPDX-License-Identifier: Apache-2.0
"""The search of digits.yaml by Optuna with PyTorch: the same model, data, optimizer, steps and values, and its SuccessiveHalvingPruner.

    optuna_digits.py DATA STEPS < values.json      (a list of objects with learning_rate, batch_size and weight_decay)

Two processes with one thread each take trials from one study. Prints one object of JSON.
"""
import gzip
import json
import multiprocessing
import pathlib
import sys
import tempfile

import numpy
import optuna
import torch
from optuna.storages.journal import JournalFileBackend
from torch import nn
from torch.nn import functional

PROCESSES = 2
EVERY_STEPS = 40
HELD_OUT = 1000


def read_digits(data):
    folder = pathlib.Path(data) / "mnist"
    images = gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())
    pixels = numpy.frombuffer(images, numpy.uint8, offset=16).reshape(-1, 1, 28, 28).astype(numpy.float32) / 255
    return torch.from_numpy(pixels), torch.from_numpy(numpy.frombuffer(labels, numpy.uint8, offset=8).astype(numpy.int64))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))


def accuracy(model, pixels, labels):
    with torch.no_grad():
        return (model(pixels).argmax(1) == labels).float().mean().item()


def accuracies(pixels, labels, rate, batch, decay, steps):
    """Trains; yields a step and the accuracy on the examples that are held out, every EVERY_STEPS and at the end."""
    torch.manual_seed(1)
    model, learned = lenet(), len(labels) - HELD_OUT
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    order = torch.cat([torch.randperm(learned) for _ in range(steps * batch // learned + 1)])
    for step in range(1, steps + 1):
        chosen = order[(step - 1) * batch : step * batch]
        loss = functional.cross_entropy(model(pixels[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY_STEPS == 0 or step == steps:
            yield step, accuracy(model, pixels[-HELD_OUT:], labels[-HELD_OUT:])


def train(trial, pixels, labels, steps):
    """One trial; returns its accuracy on the examples that are held out."""
    rate = trial.suggest_float("learning_rate", 0.00003, 0.1, log=True)
    batch = trial.suggest_categorical("batch_size", [16, 32, 64])
    decay = trial.suggest_float("weight_decay", 0.0001, 1, log=True)
    for step, reached in accuracies(pixels, labels, rate, batch, decay, steps):
        trial.report(reached, step)
        if step < steps and trial.should_prune():
            raise optuna.TrialPruned
    return reached


def open_study(journal):
    storage = optuna.storages.JournalStorage(JournalFileBackend(journal))
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=EVERY_STEPS, reduction_factor=4)
    return optuna.create_study(study_name="digits", storage=storage, pruner=pruner, direction="maximize", load_if_exists=True)


def take_trials(journal, data, steps, count):
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pixels, labels = read_digits(data)
    study = open_study(journal)

    def objective(trial):
        if trial.number >= count:  # the values given are used up
            study.stop()
            raise optuna.TrialPruned
        return train(trial, pixels, labels, steps)

    study.optimize(objective)


def main():
    data, steps = sys.argv[1], int(sys.argv[2])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        journal = f"{folder}/journal"
        study = open_study(journal)
        given = json.load(sys.stdin)
        for values in given:
            study.enqueue_trial(values | {"batch_size": int(values["batch_size"])})
        spawn, arguments = multiprocessing.get_context("spawn"), (journal, data, steps, len(given))
        crew = [spawn.Process(target=take_trials, args=arguments) for _ in range(PROCESSES)]
        for process in crew:
            process.start()
        for process in crew:
            process.join()
        trials = study.get_trials()[: len(given)]
        taken = sum(trial.last_step or 0 for trial in trials)
        pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in trials)
        result = {"name": f"Optuna {optuna.__version__}, PyTorch", "steps": taken, "best": study.best_value, "pruned": pruned}
        print(json.dumps(result))


if __name__ == "__main__":
    main()
