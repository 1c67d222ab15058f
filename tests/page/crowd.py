# SPDX-License-Identifier: Apache-2.0
"""Makes very many runs of this machine and jobs of an API server, for the tests of the page of `cox ui` and for its benchmark."""

import http.client
import json
import os
import threading
from urllib.parse import urlsplit

JOBS = "/apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs"


def record(i, step):
    """What run.json says of a run; a third of them have failed."""
    return {"name": f"many-{i}", "namespace": "default", "kind": "TrainingJob", "state": "Failed" if i % 3 == 0 else "Succeeded", "step": step, "steps": 1000,
            "loss": 1 / (i + 1), "accuracy": 0.5 + i % 500 / 1000, "startTime": f"2026-01-{1 + i // 1000:02}T{i // 60 % 24:02}:{i % 60:02}:00Z",
            "lastUpdateTime": f"2026-02-{1 + i // 1000:02}T{i // 60 % 24:02}:{i % 60:02}:{step % 60:02}Z", "volumes": {}, "version": 1}


def write_run(folder, i, step):
    """As cox run does: a reader finds the old file or the new one."""
    directory = f"{folder}/default-many-{i}"
    with open(directory + "/run.json.new", "w") as file:
        json.dump(record(i, step), file)
    os.rename(directory + "/run.json.new", directory + "/run.json")


def make_runs(folder, count):
    """State directories of ended runs, with a database that nobody opens."""
    for i in range(count):
        os.makedirs(f"{folder}/default-many-{i}/volumes")
        with open(f"{folder}/default-many-{i}/objects.db", "wb") as file:
            file.write(b"-" * 4096)
        write_run(folder, i, 1000)


class Server:
    """An API server, through one connection that stays open."""

    def __init__(self, url, context, headers):
        self.connection = http.client.HTTPSConnection(urlsplit(url).netloc, context=context, timeout=60)
        self.headers = headers

    def send(self, method, path, body):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        self.connection.request(method, path, json.dumps(body), {**self.headers, "Content-Type": kind})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")

    def create(self, i):
        self.send("POST", JOBS, {"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingJob", "metadata": {"name": f"many-{i}"}, "spec": {"coxswain": {
            "strategy": {"type": "OneDevice"}, "model": {"preset": "mlp"}, "data": {"format": "Synthetic", "examples": 100},
            "training": {"steps": 1000, "batchSize": 10, "optimizer": {"type": "SGD", "learningRate": 0.1}}}}})

    def write_status(self, i, step):
        """As the operator does, which must not run."""
        self.send("PATCH", f"{JOBS}/many-{i}/status", {"status": {
            "conditions": [{"type": "Failed" if i % 3 == 0 else "Running", "status": "True", "reason": "Test", "message": "written by a test", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "progress": {"step": step, "totalSteps": 1000, "secondsRemaining": 1000 - step, "throughput": {"value": "1000", "unit": "examples"},
                         "metrics": [{"name": "loss", "value": str(1 / (i + 1))}, {"name": "validationAccuracy", "value": str(0.5 + i % 500 / 1000)}]}}})


def make_jobs(server, count, threads=8):
    """`server`: makes a Server for each thread."""
    failures = []

    def some(first):
        try:
            own = server()
            for i in range(first, count, threads):
                own.create(i)
                own.write_status(i, i % 1000)
        except Exception as error:
            failures.append(error)

    all_of_them = [threading.Thread(target=some, args=(first,)) for first in range(threads)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    if failures:
        raise failures[0]
