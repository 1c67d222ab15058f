# SPDX-License-Identifier: Apache-2.0
"""The search of digits.yaml by Ray Tune with PyTorch: the same model, data, optimizer, steps and values, and its ASHAScheduler.

    ray_digits.py DATA STEPS < values.json      (as optuna_digits.py, whose model it trains)

Two trials at a time with one thread each. Prints one object of JSON as its last line.
"""
import json
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, os.environ.get("PYTHONPATH")]))  # of the trials' processes
os.environ.update({"RAY_AIR_NEW_OUTPUT": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_worker_niceness": "0"})

import ray
import torch
from optuna_digits import EVERY_STEPS, accuracies, read_digits
from ray import tune
from ray.tune.schedulers import ASHAScheduler


def train(config):
    values = config["values"]
    torch.set_num_threads(1)
    pixels, labels = read_digits(config["data"])
    for step, reached in accuracies(pixels, labels, values["learning_rate"], int(values["batch_size"]), values["weight_decay"], config["steps"]):
        tune.report({"accuracy": reached, "step": step})


def main():
    data, steps = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    given = json.load(sys.stdin)
    folder = tempfile.mkdtemp()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    scheduler = ASHAScheduler(time_attr="step", metric="accuracy", mode="max", grace_period=EVERY_STEPS, max_t=steps, reduction_factor=4)
    tuner = tune.Tuner(train, param_space={"data": data, "steps": steps, "values": tune.grid_search(given)},
                       tune_config=tune.TuneConfig(scheduler=scheduler), run_config=tune.RunConfig(verbose=0, storage_path=folder))
    metrics = [result.metrics for result in tuner.fit()]
    taken = [each.get("step", 0) for each in metrics]
    best = max(each.get("accuracy", 0) for each in metrics if each.get("step") == steps)
    pruned = sum(step < steps for step in taken)
    print(json.dumps({"name": f"Ray Tune {ray.__version__}, PyTorch", "steps": sum(taken), "best": best, "pruned": pruned}))
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
