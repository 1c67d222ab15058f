# SPDX-License-Identifier: Apache-2.0
"""Two models trained by programs, by our own graph (LeNet), and by JAX, PyTorch and Keras, in turns within one run (`make bench-programs`).

Each participant is started anew in every round, trains for a while, and is ended. In round 0 it finds no compiled code of its own; in
the others it finds what round 0 has left, where it can keep such. A ratio is ours over theirs in one round; the table has medians of
rounds 1 and later. A rate is given by the clock and by processor time, which says more where others use the machine.

Environment: BUILD, with the worker of XLA=1 in $BUILD/xla; COXSWAIN_PJRT_PLUGIN; BENCH_SECONDS that each trains (4); BENCH_ROUNDS after
round 0 (3); BENCH_MODELS (lenet llama); BENCH_PROCESSES (1 2); BENCH_ONLY, a regular expression of participants; BENCH_TORCH, empty for a run
without PyTorch. Writes $BUILD/bench-programs.json.
"""
import json
import os
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "peers"))
from peers import QUIET, Busy  # noqa: E402
from process import Gone, Process  # noqa: E402
from turns import free_addresses  # noqa: E402

import shared  # noqa: E402

BUILD = os.path.abspath(os.environ["BUILD"])
PLUGIN = os.environ["COXSWAIN_PJRT_PLUGIN"]
SECONDS, ROUNDS = float(os.environ.get("BENCH_SECONDS", 4)), int(os.environ.get("BENCH_ROUNDS", 3))
MODELS = os.environ.get("BENCH_MODELS", "lenet llama").split()
SIZES = [int(size) for size in os.environ.get("BENCH_PROCESSES", "1 2").split()]
ONLY = re.compile(os.environ.get("BENCH_ONLY", ""))
PATIENCE = 240  # seconds until the first step
TICK = os.sysconf("SC_CLK_TCK")
PROCESSORS = len(os.sched_getaffinity(0))
OURS, GRAPH, JAX, EAGER, COMPILED, KERAS = "program", "own graph", "JAX", "PyTorch", "PyTorch compiled", "Keras"
notes = []


class Member(Process):
    """One process of a participant, with the processes that it starts."""

    def family(self):
        """[(process, processor seconds)] of its session"""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid:
                found.append((name, sum(map(int, fields[11:15])) / TICK))
        return found

    def peak_megabytes(self):
        """Resident at most, mapped files included, of its largest process: (all, of its own)."""
        largest = (0, 0)
        for name, _ in self.family():
            try:
                with open(f"/proc/{name}/status") as file:
                    sizes = dict(re.findall(r"(VmHWM|RssAnon):\s+(\d+)", file.read()))
                largest = max(largest, (int(sizes["VmHWM"]) / 1024, int(sizes["RssAnon"]) / 1024))
            except (OSError, KeyError):
                pass
        return largest


class Bench:
    """The files of a run: data, programs, and the folder of each participant's compiled code."""

    def __init__(self, folder):
        self.folder = folder
        shared.write_data(folder)
        with open(self.path("key"), "wb") as file:
            file.write(secrets.token_bytes(32))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def program(self, model, size):
        """Exported once, with the batch of a process."""
        name = f"{model}-{size}"
        if not os.path.exists(self.path(name)):
            subprocess.run([sys.executable, os.path.join(HERE, "models_jax.py"), model, self.path(name), str(shared.WORKS[model].batch // size)],
                           check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
        return name

    def worker(self, name, model, size, cache):
        """Our worker's members: of a program, or of LeNet as a graph."""
        work = shared.WORKS[model]
        job, runs = self.path(f"{cache}.yaml"), self.path(cache)
        os.makedirs(runs, exist_ok=True)
        for left in os.listdir(runs):
            if left != "compiled":  # a checkpoint of the round before
                subprocess.run(["rm", "-rf", os.path.join(runs, left)], check=True)
        data = f"format: IDX, train: {{images: {self.path('images')}, labels: {self.path('labels')}}}" if model == "lenet" else \
            f"format: Bytes, train: {{text: {self.path('text')}}}"
        source = "preset: lenet" if name == GRAPH else f"program: {{storage: bench, path: {self.program(model, size)}}}"
        optimizer = {"sgd": "SGD", "adamw": "AdamW"}[work.optimizer]
        with open(job, "w") as file:
            file.write(f"model: {{{source}}}\ndata: {{{data}}}\n"
                       f"training: {{steps: 1000000, batchSize: {work.batch}, optimizer: {{type: {optimizer}, learningRate: '{work.rate}'}}, seed: 7}}\n"
                       f"strategy: {{type: {'MultiWorkerMirrored' if size > 1 else 'OneDevice'}}}\n"
                       f"storage: [{{name: bench}}, {{name: runs}}]\ncheckpoint: {{storage: runs, path: {cache}, everySteps: 1000000}}\n")
        command = [os.path.join(BUILD, "xla", "coxswain-worker"), "--job", job, "--threads", str(threads_of(size)), "--log-format", "json",
                   "--storage", f"bench={self.folder}", "--storage", f"runs={self.folder}"]
        cluster = {"worker": free_addresses(size)}
        for rank in range(size):
            task = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})} if size > 1 else {}
            yield command, {"COXSWAIN_CREW_KEY_FILE": self.path("key"), "COXSWAIN_PJRT_PLUGIN": PLUGIN, **task}

    def python(self, name, model, size, cache):
        """The members of a framework of Python."""
        script = {JAX: "train_jax.py", KERAS: "train_keras.py"}.get(name, "train_torch.py")
        given = [sys.executable, os.path.join(HERE, script), model, self.folder]
        if script == "train_torch.py":
            given += [str(threads_of(size)), "compiled" if name == COMPILED else "eager"]
        caches = {"JAX_COMPILATION_CACHE_DIR": self.path(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                  "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1", "TORCHINDUCTOR_CACHE_DIR": self.path(cache)}
        threads = {name: str(threads_of(size)) for name in ("NPROC", "PJRT_NPROC", "OMP_NUM_THREADS")}
        address = free_addresses(1)[0]
        for rank in range(size):
            yield given + ([str(rank), str(size), address] if size > 1 else []), {
                "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1", **caches, **threads}

    def members(self, name, model, size, cache):
        return (self.worker if name in (OURS, GRAPH) else self.python)(name, model, size, cache)


def threads_of(size):
    """All processes together have as many threads as there are processors, two at most."""
    return max(1, min(2, PROCESSORS) // size)


def step_of(line):
    """The number in a line about a step; None: it is another line."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told.get("step") if isinstance(told, dict) and "loss" in told else None


def next_step(chief, deadline):
    while True:
        step = step_of(chief.line(deadline))
        if step is not None:
            return step, time.monotonic()


def follow(members, begun, work):
    """What one participant does from its start on. Rates are of the time after the first quarter."""
    chief = members[0]

    def spent():
        return sum(seconds for member in members for _, seconds in member.family())

    first, at = next_step(chief, begun + PATIENCE)
    until_first = at - begun
    quarter, end = at + SECONDS / 4, at + SECONDS
    while at < quarter:
        first, at = next_step(chief, at + PATIENCE)
    from_step, from_time, from_spent = first, at, spent()
    while at < end or first == from_step:
        first, at = next_step(chief, at + PATIENCE)
    units = (first - from_step) * work.batch * work.units
    resident, own = max(member.peak_megabytes() for member in members)
    return {"first": until_first, "clock": units / (at - from_time), "processor": units / max(1 / TICK, spent() - from_spent),
            "resident": resident, "own": own}


def take_turn(bench, name, model, size, round_number):
    """One participant in one round."""
    cache = re.sub(r"\W+", "-", f"{name}-{model}-{size}")
    if round_number == 0:
        shutil.rmtree(bench.path(cache), ignore_errors=True)
    commands = list(bench.members(name, model, size, cache))
    begun, members = time.monotonic(), []
    try:
        for rank, (command, environment) in enumerate(commands):
            members.append(Member(name, command, bench.path(f"{cache}-{rank}.log"), environment))
        return follow(members, begun, shared.WORKS[model])
    finally:
        for member in members:
            member.end()


def participants(model, size):
    names = [OURS, *([GRAPH] if model == "lenet" else []), JAX, *([EAGER, COMPILED] if os.environ.get("BENCH_TORCH", "1") else []), KERAS]
    return [name for name in names if ONLY.search(name)]


def measure(bench, model, size):
    """{participant: [turn of each round]}; whoever fails has no more turns."""
    turns = {name: [] for name in participants(model, size)}
    for round_number in range(ROUNDS + 1):
        for name in list(turns):
            try:
                turns[name].append(take_turn(bench, name, model, size, round_number))
                turn = turns[name][-1]
                print(f"{model}, {size}, round {round_number}: {name}: {turn['clock']:,.0f}/s, {turn['processor']:,.0f} a processor second, first step"
                      f" after {turn['first']:.2f} s; load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            except Gone as gone:
                notes.append(f"{name}, {model}, {size} process{'es' * (size > 1)}: {gone}")
                del turns[name]
    return turns


def row_of(model, size, name, turns, ours):
    warm = turns[1:]
    return {"model": model, "processes": size, "who": name, **{key: statistics.median(turn[key] for turn in warm) for key in warm[0]},
            "cold": turns[0]["first"], "rounds": turns,
            "ratios": {clock: statistics.median(a[clock] / b[clock] for a, b in zip(ours[1:], warm, strict=True)) for clock in ("clock", "processor")}
            if ours else None}


def aims(rows, clock):
    """(what was aimed for, what was reached, whether that is enough); rates are judged by that clock."""
    found = {(row["model"], row["processes"], row["who"]): row for row in rows}
    for (model, size, who), row in found.items():
        where = f"{model}, {size} process{'es' * (size > 1)}"
        if who == OURS:
            yield f"{where}: first step within 1 s from the cache", f"{row['first']:.2f} s", row["first"] <= 1
        elif row["ratios"] and who != GRAPH:
            ours = found[model, size, OURS]
            if size == 1 and who == JAX or size > 1 and who in (EAGER, COMPILED):
                wanted = 1 if size == 1 else 1.5
                reached = row["ratios"][clock]
                yield f"{where}: at least {wanted} x {who}", f"{reached:.2f} x", reached >= wanted
            yield f"{where}: memory below half of {who}'s", f"{ours['resident']:.0f} of {row['resident']:.0f} MB", 2 * ours["resident"] < row["resident"]


def print_table(rows):
    print("| model, processes | who | units/s | program over it: by the clock, by processor time | first step cold, s | from the cache, s |"
          " peak RSS, MB | RssAnon, MB |\n|---|---|---|---|---|---|---|---|")
    for row in rows:
        ratios = f"{row['ratios']['clock']:.2f}, {row['ratios']['processor']:.2f}" if row["ratios"] and row["who"] != OURS else ""
        print(f"| {row['model']}, {row['processes']} | {row['who']} | {row['clock']:,.0f} | {ratios} | {row['cold']:.2f} | {row['first']:.2f} |"
              f" {row['resident']:.0f} | {row['own']:.0f} |")


def main():
    rows, busy = [], Busy()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        for model in MODELS:
            for size in SIZES:
                turns = measure(bench, model, size)
                rows += [row_of(model, size, name, taken, turns.get(OURS)) for name, taken in turns.items()]
    share = busy.share()
    clock = "clock" if share <= QUIET else "processor"
    print_table(rows)
    print(f"Others used {100 * share:.0f} % of {PROCESSORS} processors: rates are judged by {'the clock' if clock == 'clock' else 'processor time'}.")
    for what, reached, enough in aims(rows, clock):
        print(f"{'reached' if enough else 'MISSED '}  {what}: {reached}")
    for note in notes:
        print("note:", note)
    with open(os.path.join(BUILD, "bench-programs.json"), "w") as file:
        json.dump({"rows": rows, "notes": notes, "others": share, "processors": PROCESSORS}, file, indent=1)
    return 0 if any(row["who"] == OURS for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
