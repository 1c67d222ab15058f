# SPDX-License-Identifier: Apache-2.0
"""make gpu-bench: training on a GPU beside PyTorch, and what is aimed for on one H200 (aims.py).

Large models run alone on the GPU, each participant afresh in each round, in turns; small ones stay, and take turns within one second
each. A round's ratio is ours over theirs of that round; what is told is the median. Rows go to $BUILD/gpu-bench.json as well.

Environment:
  GPU_BENCH_PARTS    of `gpt2 resnet50 lenet start checkpoints determinism small` (all, in this order)
  GPU_BENCH_SECONDS  for all (540): a part is left out where too little is left, and says so
  GPU_BENCH_ROUNDS   (3)     GPU_BENCH_TURN  seconds of a large model's turn (6); a small one's is a sixth
  GPU_BENCH_MICRO    examples a pass of gpt2 (0: as many as fit)
  GPU_BENCH_TORCH    python with PyTorch (python3); empty: without
  GPU_BENCH_GPUS     how many the machine has (nvidia-smi -L)
  GPU_BENCH_EVERY    seconds between two checkpoints, for their share of the time (60)
  GPU_BENCH_TINY=1   models that GPUs played by a processor can train: tries the program, its figures mean nothing
  GPU_BENCH_AIMS=1   ends with 1 when an aim is missed
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import aims
from participant import Gone, Participant, compete, run_worker

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", "build")
TINY = os.environ.get("GPU_BENCH_TINY") == "1"
PARTS = os.environ.get("GPU_BENCH_PARTS", "gpt2 resnet50 lenet start checkpoints determinism small").split()
BUDGET = float(os.environ.get("GPU_BENCH_SECONDS", 540))
ROUNDS = int(os.environ.get("GPU_BENCH_ROUNDS", 3))
TURN = float(os.environ.get("GPU_BENCH_TURN", 6))
MICRO = int(os.environ.get("GPU_BENCH_MICRO", 0))
TORCH = os.environ.get("GPU_BENCH_TORCH", "python3")
EVERY = float(os.environ.get("GPU_BENCH_EVERY", 60))
STARTED = time.monotonic()
SHARE = 0.9  # of the GPU's memory that a participant may take when it runs alone

rows, notes, facts = [], [], {}


def left():
    return BUDGET - (time.monotonic() - STARTED)


def log(name):
    return os.path.join(BUILD, f"gpu-bench-{name}.log")


def ours(work, micro=0, share=SHARE, pace="graphs", stays=False):
    def command(passes):
        return [os.path.join(BUILD, "tests", "gpu-bench"), work, str(passes), str(share), pace]

    return Participant(f"Coxswain {work}{'' if pace == 'graphs' else ', ' + pace}", command, micro, log(f"{work}-{pace}"), stays)


def torch(work, mode, micro=0, share=SHARE, stays=False):
    def command(passes):
        return [TORCH, os.path.join(HERE, "train_torch.py"), work, mode, str(passes), str(share)]

    return Participant(f"PyTorch {mode}", command, micro, log(f"{work}-torch-{mode}"), stays)


def show(row):
    """One line; the file has all of it."""
    cells = []
    if "rate" in row:
        cells.append(f"{row['rate']:,.0f} {row['unit']}/s, {row['ms']:.3f} ms a step")
    if "their_rate" in row:
        cells.append(f"theirs {row['their_rate']:,.0f}, {row['their_ms']:.3f} ms: x {row['ratio']:.2f}")
    if row.get("mfu") is not None:
        cells.append(f"MFU {100 * row['mfu']:.1f} % of {row['peak'] / 1e12:g} TFLOP/s")
    if row.get("memory") and row["alone"]:
        cells.append("GPU memory " + " and ".join(f"{x / 1024:.1f}" for x in (row["memory"], row.get("their_memory")) if x) + " GiB")
    if row.get("micro"):
        cells.append("passes of " + " and ".join(str(x) for x in (row["micro"], row.get("their_micro")) if x))
    if "seconds" in row:
        cells.append(f"{row['seconds']:.2f} s")
    if "their_seconds" in row:
        cells.append(f"theirs {row['their_seconds']:.2f} s to the first step")
    if "share" in row:
        cells.append(f"{100 * row['share']:.2f} %")
    if "remark" in row:
        cells.append(row["remark"])
    verdict = aims.judge(row)
    if verdict is not None:
        cells.append(f"aim {verdict[0]}: {'reached' if verdict[1] else 'NOT reached'}")
    print(f"{row['what']:22} {row['beside']:18} {'; '.join(cells)}", flush=True)


def add(part, what, beside, **figures):
    rows.append({"part": part, "what": what, "beside": beside, **figures})
    show(rows[-1])


def add_comparison(part, found, stays):
    own, *theirs = found
    told = own.facts
    base = {"rate": own.rate(), "ms": statistics.median(own.ms), "unit": told["unit"], "batch": told["batch"], "micro": told["micro"],
            "memory": statistics.median(own.memory), "alone": not stays}
    facts.setdefault("gpu", told["gpu"])
    if told["peak"] > 0:
        mfu = told["flops"] / told["units"] * own.rate() / told["peak"]
        add(part, own.name[9:], "its peak", **base, mfu=mfu, peak=told["peak"])
    else:
        add(part, own.name[9:], "", **base, remark="no peak is known of this GPU")
    for peer in theirs:
        if "torch" in peer.facts:
            facts["torch"] = peer.facts["torch"]
        add(part, own.name[9:], peer.name, **base, their_rate=peer.rate(), their_ms=statistics.median(peer.ms), ratio=own.over(peer),
            their_memory=statistics.median(peer.memory), their_micro=peer.facts.get("micro"), **({"their_seconds": min(peer.first)} if "torch" in peer.facts else {}))


# ---- the parts

def large(part, work, modes, micro=0):
    peers = [torch(work, mode, micro) for mode in modes] if TORCH else []
    add_comparison(part, compete([ours(work, micro), *peers], ROUNDS, TURN, left, notes), stays=False)


def small(part, work, modes):
    """With a quarter of the memory for each, far more than they need."""
    peers = [torch(work, mode, 0, 0.2, stays=True) for mode in modes] if TORCH else []
    own = [ours(work, 0, 0.2, pace, stays=True) for pace in ("graphs", "launches", "waits")]
    add_comparison(part, compete([*own[:1], *peers, *own[1:]], ROUNDS, TURN / 6, left, notes), stays=True)


def part_gpt2():
    large("gpt2", "tiny-gpt2" if TINY else "gpt2-124m", ["compiled", "eager"], MICRO)


def part_resnet50():
    large("resnet50", "tiny-resnet" if TINY else "resnet50", ["eager", "compiled"])


def part_lenet():
    small("lenet", "tiny-mlp" if TINY else "lenet", ["graph", "compiled", "plain", "float32"])


def part_small():
    for work in ["tiny-mlp"] if TINY else ["mlp", "gpt-bytes", "mlp-4096", "lenet-2048", "gpt-bytes-128"]:
        if left() < 40:
            notes.append(f"no time left for {work}")
            continue
        small("small", work, ["graph", "plain"])


def micro_of(work):
    """What fits with a little left for what a worker has beside the bench."""
    if work not in facts.setdefault("micros", {}):
        trial = ours(work, MICRO, 0.8)
        try:
            trial.start(time.monotonic() + max(1, left()))
            facts["micros"][work] = trial.facts["micro"], trial.facts["batch"]
            facts.setdefault("gpu", trial.facts["gpu"])
        finally:
            trial.end()
    return facts["micros"][work]


def gpt2_job(steps, gpus=1, determinism="Crew", every=0):
    micro, batch = micro_of("tiny-gpt2" if TINY else "gpt2-124m")
    sizes = ", depth: 1, width: 8, heads: 2, context: 8" if TINY else ""
    saves = f"checkpoint: {{storage: runs, path: saves, everySteps: {every}, keep: 1}}\n" if every else ""
    # Divisible by the GPUs: the last ones of a batch that is not would have less to do.
    return (f"devices: {{type: GPU, count: {gpus}}}\n"
            f"model: {{preset: gpt2-124m{sizes}}}\n"
            "data: {format: Synthetic, examples: 100000}\n"
            f"training: {{steps: {steps}, batchSize: {max(batch, gpus)}, gradientAccumulation: {max(1, batch // micro // gpus)}, "
            f"precision: BFloat16, determinism: {determinism}, seed: 7, optimizer: {{type: AdamW, learningRate: \"3e-4\"}}}}\n"
            f"strategy: {{type: {'OneDevice' if gpus == 1 else 'Mirrored'}}}\n"
            f"storage: [{{name: runs}}]\n{saves}")


def lenet_job(steps):
    model = "preset: mlp, width: 16" if TINY else "preset: lenet"
    return ("devices: {type: GPU}\n"
            f"model: {{{model}}}\n"
            "data: {format: Synthetic, examples: 10000}\n"
            f"training: {{steps: {steps}, batchSize: {4 if TINY else 128}, seed: 7, optimizer: {{type: SGD, learningRate: \"0.05\"}}}}\n"
            "strategy: {type: OneDevice}\nstorage: [{name: runs}]\n")


def run(job, steps, environment=None):
    with tempfile.TemporaryDirectory(prefix="gpu-bench-", dir=os.environ.get("GPU_BENCH_STORAGE")) as folder:
        return run_worker(os.path.join(BUILD, "coxswain-worker"), job, steps, folder, time.monotonic() + max(1, left()), environment)


def their_first(part):
    found = [row["their_seconds"] for row in rows if row["part"] == part and "their_seconds" in row]
    return {"their_seconds": min(found)} if found else {}


def part_start():
    """The worker itself: process start to the line of its first step, of 524,288 tokens in GPT-2."""
    for what, part, job in (("gpt2, first step", "gpt2", gpt2_job(2)), ("lenet, first step", "lenet", lenet_job(2))):
        found = [run(job, 2)[0] for _ in range(ROUNDS)]
        add("start", what, "", seconds=statistics.median(found), **their_first(part))


def part_checkpoints():
    """Steps of a run that saves twice beside those of one that does not, in turns."""
    probe = run(gpt2_job(6), 6)[1]
    every = max(4, round(2 * TURN / probe))
    steps = 2 * every + every // 2
    plain, saving = [], []
    for _ in range(ROUNDS):
        if plain and left() < 3 * steps * probe:
            notes.append(f"checkpoints: {len(plain)} of {ROUNDS} rounds, for want of time")
            break
        plain.append(run(gpt2_job(steps), steps)[1])
        saving.append(run(gpt2_job(steps, every=every), steps)[1])
    cost = statistics.median(a - b for a, b in zip(saving, plain)) * (steps - 3) / 2
    noise = (max(plain) - min(plain)) * (steps - 3) / 2
    add("checkpoints", "gpt2, checkpoints", "", share=cost / EVERY, cost=cost, noise=noise, step=statistics.median(plain),
        remark=f"{1000 * cost:.0f} ms each, one in {EVERY:g} s ({len(plain)} rounds of {steps} steps with two; by as much as {1000 * noise:.0f} ms runs "
               "without differ)")


def count_gpus():
    if "GPU_BENCH_GPUS" in os.environ:
        return int(os.environ["GPU_BENCH_GPUS"])
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 1
    return max(1, len(listed.strip().split("\n")))


# The worker sets Ring and Simple if the environment names no algorithm or protocol. A name for another collective alone leaves the
# choice for sums to NCCL, including LL128 where that is safe, which no list of protocols can express.
FREE = {"NCCL_ALGO": "broadcast:ring", "NCCL_PROTO": "broadcast:Simple"}


def part_determinism():
    gpus = count_gpus()
    if gpus < 2:
        notes.append("determinism: its cost is that of summing in order among GPUs, of which there is one; a GPU's own kernels have no "
                     "other order")
        return
    probe = run(gpt2_job(6, gpus), 6)[1]
    steps = max(6, round(TURN / probe))
    found = {"free": [], "Run": [], "Crew": []}
    for _ in range(ROUNDS):
        for kind, seconds in found.items():
            seconds.append(run(gpt2_job(steps, gpus, "Crew" if kind == "Crew" else "Run"), steps, FREE if kind == "free" else None)[1])
    for kind in ("Run", "Crew"):
        share = statistics.median(a / b - 1 for a, b in zip(found[kind], found["free"]))
        add("determinism", f"gpt2 on {gpus} GPUs", kind, share=share, step=statistics.median(found[kind]),
            remark="beside NCCL's free choice of its algorithm")


# ---- all of it

def attempt(part):
    if left() < (0 if TINY else 30):
        notes.append(f"no time left for {part}: GPU_BENCH_SECONDS says {BUDGET:g}")
        return
    try:
        globals()[f"part_{part}"]()
    except Gone as gone:
        notes.append(f"{part}: {gone}")


def with_torch():
    """Says why PyTorch is left out, where it is."""
    global TORCH
    if not TORCH:
        return
    try:
        if subprocess.run([TORCH, "-c", "import torch"], capture_output=True).returncode == 0:
            return
        why = "has no PyTorch"
    except OSError as error:
        why = f"cannot be run ({error.strerror})"
    notes.append(f"{TORCH} {why}: ours alone (GPU_BENCH_TORCH names another python)")
    TORCH = ""


def main():
    unknown = [part for part in PARTS if f"part_{part}" not in globals()]
    if unknown:
        sys.exit(f"GPU_BENCH_PARTS: no part is called {unknown[0]}")
    with_torch()
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(BUILD, "gpu-bench-inductor"))
    for part in PARTS:
        attempt(part)
    facts.pop("micros", None)
    path = os.path.join(BUILD, "gpu-bench.json")
    with open(path, "w") as file:
        json.dump({**facts, "turn": TURN, "tiny": TINY, "rows": rows, "notes": notes}, file, indent=1)
    print(f"{facts.get('gpu', 'no GPU')}; PyTorch {facts.get('torch', 'not there')}; {time.monotonic() - STARTED:.0f} s; {path}")
    for note in notes:
        print("note:", note)
    if "H200" not in facts.get("gpu", ""):
        print("The aims are those of one H200.")
    lines, reached = aims.summary(rows)
    print("\n".join(lines))
    return 0 if rows and (reached or os.environ.get("GPU_BENCH_AIMS") != "1") else 1


if __name__ == "__main__":
    sys.exit(main())
