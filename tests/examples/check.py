#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every manifest of deploy/examples through `cox run`, as a user would: it must succeed and learn, its status must be true, its
checkpoints and its export must be what the manifest says, and nothing may be left behind. Prints ok/not ok/skip lines (see
tests/run).

Data: MNIST's test set and a text from COXSWAIN_DATA (mnist/, tinyshakespeare/input.txt), else bright bars as digits and this
project's own documentation, made here.

Environment: BUILD; EXAMPLES, a regular expression of names; EXAMPLES_SHORT=1, the quick few in SHORT, each a few seconds;
EXAMPLES_SECONDS, the most that one may take (600).
"""
import array
import glob
import gzip
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.abspath(os.environ.get("BUILD", "build"))
LIMIT = float(os.environ.get("EXAMPLES_SECONDS", 600))
DIGITS, HELD_OUT = 10000, 1000

# Goals of each example on its held-out examples: (least accuracy, largest loss). None: no goal.
GOALS = {
    "bytes": (None, 2.6),
    "central-storage": (0.93, 0.25),
    "digits": (0.96, 0.15),
    "elastic": (0.96, 0.15),
    "first": (0.9, 0.3),
    "gpt2": (None, 1.5),
    "hangs-and-stragglers": (0.95, 0.2),
    "local-steps": (0.95, 0.2),
    "mirrored": (0.93, 0.25),
    "one-device": (0.93, 0.25),
    "parameter-server": (0.95, 0.2),
    "peer-to-peer": (0.95, 0.2),
    "per-replica-batch": (0.9, 0.4),
    "pipeline": (0.95, 0.2),
    "pipeline-gpt": (None, 2.8),
    "pipeline-hybrid": (0.95, 0.2),
    "pipeline-split": (0.9, 0.35),
    "resnet20": (0.5, 1.5),  # two epochs of 2,048 images
    "sharded-optimizer": (0.96, 0.15),
}

# Those that ask for GPUs, on processors and of a size for these, which a user may set too: (settings, goals).
ON_PROCESSORS = {
    "gpt2-gpus": (["spec.devices.type=Auto", "spec.devices.count=2", "spec.coxswain.model.depth=2", "spec.coxswain.model.width=64",
                   "spec.coxswain.model.heads=4", "spec.coxswain.model.context=64", "spec.coxswain.training.steps=60", "spec.coxswain.training.batchSize=16",
                   "spec.coxswain.training.optimizer.schedule.warmupSteps=10", "spec.coxswain.training.optimizer.learningRate=3e-3"], (None, 3.6)),
}
ONE_EPOCH = ["spec.coxswain.training.epochs=1"]
# A user may change these settings: a shorter run, or several devices in a worker. The goals are lower.
SHORT = {
    "gpt2-gpus": ON_PROCESSORS["gpt2-gpus"],
    "local-steps": (["spec.coxswain.training.epochs=2", "spec.devices.count=2"], (0.7, 1.5)),
    "one-device": (ONE_EPOCH, (0.7, 1.5)),
    "parameter-server": (ONE_EPOCH + ["spec.devices.count=2"], (0.7, 1.5)),
    "peer-to-peer": (ONE_EPOCH + ["spec.devices.count=2"], (0.7, 1.5)),
    "pipeline-split": (ONE_EPOCH, (0.7, 1.5)),
}


class Wrong(Exception):
    pass


def check(holds, words):
    if not holds:
        raise Wrong(words)


# ---- data

def make_digits(folder):
    """Ten classes: a bright bar at one of ten heights, over noise."""
    os.makedirs(folder)
    chance = random.Random(1)
    images, labels = bytearray(), bytearray()
    dim = bytes(value % 60 for value in range(256))
    bright = bytes(200 + value % 56 for value in range(256))
    for number in range(DIGITS):
        label = chance.randrange(10)
        image = bytearray(chance.randbytes(784).translate(dim))
        for row in range(2 * label + 3, 2 * label + 6):
            image[28 * row + 4:28 * row + 24] = chance.randbytes(20).translate(bright)
        images += image
        labels.append(label)
    for name, header, content in (("images-idx3", struct.pack(">4I", 0x803, DIGITS, 28, 28), images),
                                  ("labels-idx1", struct.pack(">2I", 0x801, DIGITS), labels)):
        with gzip.open(os.path.join(folder, f"t10k-{name}-ubyte.gz"), "wb", compresslevel=1) as file:
            file.write(header + content)


def make_volumes(work):
    """claim -> folder, of what the examples read."""
    given = os.environ.get("COXSWAIN_DATA", "")
    digits, text = os.path.join(work, "digits"), os.path.join(work, "text")
    os.makedirs(digits)
    os.makedirs(text)
    if os.path.exists(os.path.join(given, "mnist", "t10k-images-idx3-ubyte.gz")):
        shutil.copytree(os.path.join(given, "mnist"), os.path.join(digits, "mnist"))
    else:
        make_digits(os.path.join(digits, "mnist"))
    corpus = os.path.join(given, "tinyshakespeare", "input.txt")
    with open(os.path.join(text, "corpus.txt"), "wb") as file:
        for part in [corpus] if os.path.exists(corpus) else sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
            file.write(open(part, "rb").read())
    return {"digits": digits, "text": text}


# ---- what belongs to a run

def processes_of(work):
    """Those that know of the folder: by their arguments, environment or working directory."""
    needle, found = os.fsencode(work), {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) == os.getpid():
            continue
        texts = []
        for part in ("cmdline", "environ"):
            try:
                texts.append(open(f"/proc/{name}/{part}", "rb").read())
            except OSError:
                pass
        try:
            texts.append(os.fsencode(os.readlink(f"/proc/{name}/cwd")))
        except OSError:
            pass
        if any(needle in text for text in texts):
            found[int(name)] = texts[0].replace(b"\0", b" ").decode(errors="replace")[:80] if texts else "?"
    return found


def listening():
    """(address, port) in the kernel's words -> inode of the socket"""
    found = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = open(table).readlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A":
                found[fields[1]] = fields[9]
    return found


def sockets_of(process):
    try:
        names = os.listdir(f"/proc/{process}/fd")
    except OSError:
        return set()
    found = set()
    for name in names:
        try:
            match = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process}/fd/{name}"))
        except OSError:
            continue
        if match:
            found.add(match[1])
    return found


def shared_memory_of(processes):
    """Names in /dev/shm that one of the processes maps or holds open."""
    found = set()
    for process in processes:
        try:
            found |= set(re.findall(r"(/dev/shm/[^\s]+)", open(f"/proc/{process}/maps").read()))
        except OSError:
            pass
    return {name for name in found if not name.endswith("(deleted)")}


class Watch:
    """Ports and shared memory that the run's processes have held at any time."""

    def __init__(self, work):
        self.work, self.ports, self.areas = work, set(), set()

    def look(self):
        processes = processes_of(self.work)
        inodes = set().union(*(sockets_of(process) for process in processes)) if processes else set()
        self.ports |= {place for place, inode in listening().items() if inode in inodes}
        self.areas |= shared_memory_of(processes)

    def check_nothing_left(self):
        deadline = time.monotonic() + 10
        while processes_of(self.work) and time.monotonic() < deadline:
            time.sleep(0.1)
        left = processes_of(self.work)
        check(not left, f"left behind: processes {left}")
        check(self.ports, "no port was ever seen: this check looks at the wrong processes")
        still = self.ports & set(listening())
        check(not still, f"left behind: listening on {sorted(still)}")
        still = {area for area in self.areas if os.path.exists(area)}
        check(not still, f"left behind: {sorted(still)}")


# ---- a run

def run(name, settings, volumes, work):
    """`cox run` to its end; what it printed. All within the folder."""
    runs, state = os.path.join(work, "runs"), os.path.join(work, "state")
    os.makedirs(runs)
    manifest = os.path.join(ROOT, "deploy", "examples", f"{name}.yaml")
    with open(manifest, encoding="utf-8") as file:
        claims = set(re.findall(r"^[^#\n]*claimName: ([\w-]+)", file.read(), re.M))
    command = [os.path.join(BIN, "cox"), "run", manifest, "--state", state]
    for claim, folder in {**volumes, "runs": runs}.items():
        if claim in claims:
            command += ["--volume", f"{claim}={folder}"]
    for setting in settings:
        command += ["--set", setting]
    watch, log = Watch(work), os.path.join(work, "log")
    with open(log, "wb") as file:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + LIMIT
    while child.poll() is None:
        if time.monotonic() > deadline:
            child.send_signal(signal.SIGINT)
            child.wait(60)
            raise Wrong(f"did not end within {LIMIT:.0f} s")
        watch.look()
        time.sleep(0.2)
    text = open(log, errors="replace").read()
    check(child.returncode == 0, f"exit code {child.returncode}: {' | '.join(text.splitlines()[-8:])}")
    watch.check_nothing_left()
    return text


def read_job(work, job):
    """The job as the control plane has stored it, asked for as a user would."""
    state = os.path.join(work, "state")
    kubeconfig = os.path.join(state, "kubeconfig")
    if os.path.exists(kubeconfig):
        os.remove(kubeconfig)
    log = open(os.path.join(work, "again"), "wb")
    plane = subprocess.Popen([os.path.join(BIN, "coxswain-standalone"), "--state", state, "--crd",
                              os.path.join(ROOT, "deploy", "crd")], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(kubeconfig) and time.monotonic() < deadline and plane.poll() is None:
            time.sleep(0.05)
        answer = subprocess.run([os.path.join(BIN, "cox"), "get", job, "-o", "json", "--kubeconfig", kubeconfig],
                                capture_output=True, text=True, timeout=60)
        check(answer.returncode == 0, f"cox get {job}: {answer.stderr.strip()}")
        return json.loads(answer.stdout)
    finally:
        plane.terminate()
        plane.wait(60)
        log.close()


# ---- what must hold afterwards

def expected_steps(spec, volumes):
    """(steps, steps of a pass through the examples), by what docs/worker.md promises."""
    ours = spec["coxswain"]
    training, data = ours["training"], ours["data"]
    held_out = data.get("validation", {}).get("last", 0)
    if data["format"] == "Synthetic":
        examples = data["examples"] - held_out
    elif data["format"] == "IDX":
        with gzip.open(os.path.join(volumes["digits"], data.get("path", ""), data["train"]["labels"])) as file:
            examples = struct.unpack(">2I", file.read(8))[1] - held_out
    else:
        size = os.path.getsize(os.path.join(volumes["text"], data.get("path", ""), data["train"]["text"]))
        examples = (size - 1) // ours["model"]["context"] - held_out
    replicas = spec["workers"]["replicas"] * spec["devices"]["count"]
    batch = training.get("batchSize") or training["perReplicaBatchSize"] * replicas
    per_epoch = math.ceil(examples / batch)
    steps = training.get("steps") or training["epochs"] * per_epoch
    return steps, per_epoch


def check_status(name, job, goals, volumes):
    status, spec = job["status"], job["spec"]
    progress = status.get("progress", {})
    steps, per_epoch = expected_steps(spec, volumes)
    conditions = {item["type"]: item["status"] for item in status.get("conditions", [])}
    check(conditions.get("Succeeded") == "True" and conditions.get("Failed", "False") == "False", f"conditions {conditions}")
    check(progress.get("step") == steps and progress.get("totalSteps") == steps and progress.get("percent") == 100,
          f"step {progress.get('step')} of {progress.get('totalSteps')}, not {steps}")
    check(progress.get("secondsRemaining") == 0, f"{progress.get('secondsRemaining')} s remaining")
    epoch = (steps - 1) // per_epoch
    check(progress.get("epoch") in (epoch, epoch + 1), f"epoch {progress.get('epoch')}, not {epoch} or {epoch + 1}")
    saved = steps if "checkpoint" in spec["coxswain"] else None
    check(progress.get("lastCheckpointStep") == saved, f"last checkpoint {progress.get('lastCheckpointStep')}, not {saved}")
    attempt = status["controllerState"].get("attempt")
    check(attempt == 1 and status.get("restarts", {}).get("failures", 0) == 0, f"attempt {attempt}, {status.get('restarts')}")
    check(0 < float(progress.get("goodput", "nan")) <= 1, f"goodput {progress.get('goodput')}")
    check(float(progress.get("examplesPerSecond", "nan")) > 0, f"examplesPerSecond {progress.get('examplesPerSecond')}")
    metrics = {item["name"]: float(item["value"]) for item in progress.get("metrics", [])}
    check(all(map(math.isfinite, metrics.values())) and "loss" in metrics, f"metrics {metrics}")
    accuracy, loss = goals
    check(metrics.get("validationLoss", math.inf) <= loss, f"held-out loss {metrics.get('validationLoss')}, above {loss}")
    check(accuracy is None or metrics.get("validationAccuracy", 0) >= accuracy,
          f"held-out accuracy {metrics.get('validationAccuracy')}, below {accuracy}")
    return metrics


def check_crew(job):
    """Every pod of every role has ended well, none failed."""
    spec = job["spec"]
    sections = {"chief": "chief", "worker": "workers", "ps": "parameterServers", "evaluator": "evaluator"}
    wanted = {role for role, section in sections.items() if role == "worker" or section in spec}
    counted = {item["role"]: item for item in job["status"].get("replicaStatuses", [])}
    check(wanted <= set(counted), f"roles {sorted(counted)} in the status, not {sorted(wanted)}")
    failed = {role: item["failed"] for role, item in counted.items() if item.get("failed", 0) > 0}
    check(not failed, f"failed pods {failed}")


def read_safetensors(path):
    """name -> floats; raises when the file is not whole."""
    content = open(path, "rb").read()
    length, = struct.unpack("<Q", content[:8])
    header, tensors = json.loads(content[8:8 + length]), {}
    metadata = header.pop("__metadata__", {})
    for name, tensor in header.items():
        start, end = tensor["data_offsets"]
        values = array.array("f", content[8 + length + start:8 + length + end])
        check(tensor["dtype"] == "F32" and len(values) == math.prod(tensor["shape"]), f"{path}: tensor {name} is not whole")
        check(all(map(math.isfinite, values)), f"{path}: tensor {name} is not finite")
        tensors[name] = values
    check(tensors, f"{path} holds no tensor")
    return tensors, metadata


def check_files(job, work):
    """Of a job that has storage: its checkpoints, and its export."""
    spec, runs = job["spec"]["coxswain"], os.path.join(work, "runs")
    if "checkpoint" not in spec:
        return
    checkpoint, steps = spec["checkpoint"], job["status"]["progress"]["step"]
    folder = os.path.join(runs, checkpoint["path"])
    names = sorted(os.listdir(folder))
    saved = [name for name in names if name.startswith("step-")]
    check(saved and int(saved[-1][5:13]) == steps, f"checkpoints {saved}, and the last is not step {steps}")
    check(len(saved) <= checkpoint["keep"], f"{len(saved)} checkpoints, more than keep {checkpoint['keep']}")
    rest = [name for name in names if name.startswith((".saving-", ".replaced-", ".bad-", ".part-"))]
    check(not rest, f"left among the checkpoints: {rest}")
    manifest = json.load(open(os.path.join(folder, saved[-1], "manifest.json")))
    check(manifest["step"] == steps, f"the manifest says step {manifest['step']}")
    exported, _ = read_safetensors(os.path.join(runs, spec["export"]["path"]))
    if checkpoint.get("keepBest"):
        best, metadata = read_safetensors(os.path.join(folder, "best.safetensors"))
        check(sorted(map(len, best.values())) == sorted(map(len, exported.values())),
              f"the best weights, of step {metadata.get('step')}, are another model's than the exported ones")


def check_words(text, job):
    """What the person saw."""
    spec = job["spec"]
    check(spec.get("devices", {}).get("type") != "Auto" or "devices.type Auto takes the CPU" in text,
          "the worker does not say why it computes on the CPU")
    check(f"{job['metadata']['name']} is done" in text, "cox run does not say that it is done")
    export = spec["coxswain"].get("export")
    check(not export or os.path.basename(export["path"]) in text, "cox run does not say where the weights are")


def example(name, settings, goals, volumes):
    work = tempfile.mkdtemp(prefix="coxswain-example-")
    try:
        start = time.monotonic()
        text = run(name, settings, volumes, work)
        seconds = time.monotonic() - start
        job = read_job(work, name)
        metrics = check_status(name, job, goals, volumes)
        check_crew(job)
        check_files(job, work)
        check_words(text, job)
        found = f"accuracy {100 * metrics['validationAccuracy']:.1f} %, " if "validationAccuracy" in metrics else ""
        print(f"ok {name}: {found}loss {metrics['validationLoss']:.4f} after {job['status']['progress']['step']} steps, "
              f"{seconds:.0f} s", flush=True)
    except (Wrong, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as wrong:
        print(f"not ok {name}: {type(wrong).__name__ + ': ' if not isinstance(wrong, Wrong) else ''}{wrong}", flush=True)
    finally:
        for process in processes_of(work):
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(work, ignore_errors=True)


def needs_devices(name):
    with open(os.path.join(ROOT, "deploy", "examples", f"{name}.yaml")) as file:
        return any(re.search(r"\btype: *[GT]PU|nvidia\.com/gpu", line.split("#")[0]) for line in file)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    short, wanted = bool(os.environ.get("EXAMPLES_SHORT")), re.compile(os.environ.get("EXAMPLES", ""))
    data = tempfile.mkdtemp(prefix="coxswain-examples-data-")
    try:
        volumes = make_volumes(data)
        for path in sorted(glob.glob(os.path.join(ROOT, "deploy", "examples", "*.yaml"))):
            name = os.path.basename(path)[:-5]
            if not wanted.search(name) or (short and name not in SHORT):
                continue
            if short:
                example(name, *SHORT[name], volumes)
            elif name in ON_PROCESSORS:
                example(name, *ON_PROCESSORS[name], volumes)
            elif needs_devices(name):
                print(f"skip {name}: it needs devices that this check does not look for")
            elif name not in GOALS:
                print(f"not ok {name}: tests/examples/check.py has no goal for it")
            else:
                example(name, [], GOALS[name], volumes)
    finally:
        shutil.rmtree(data, ignore_errors=True)


if __name__ == "__main__":
    main()
