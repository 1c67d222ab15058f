# SPDX-License-Identifier: Apache-2.0
"""Our benchmarks and their counterparts in PyTorch and TensorFlow, in turns, as medians of ratios (`make bench-peers`).

Everybody gets ready, then each works for a while in turn, several times over; a round's ratio is ours over theirs of that
round. A rate is given by the clock, and by processor time (of all processes of a participant), which says more where others
use the machine: where they take more than a twentieth of it, the verdict goes by processor time.

Ends with 1 when a floor is missed on a quiet machine: one process trains every model at least 1.1 x as fast as the best peer. Where
others used the machine floors are told, but not judged. So it is with missed aims, which the last line counts and names, where
PEERS_AIMS=1 is set.

Environment: BUILD; PEERS_TORCH and PEERS_TF, the pythons that have them (empty: without); PEERS_SECONDS for all (520; what has
begun is finished); PEERS_READY, seconds until everybody must be ready (100); PEERS_TURN, seconds a turn (1.0); PEERS_ROUNDS (3);
PEERS_THREADS of one process (2); PEERS_MODELS; PEERS_PARTS of one, two, ps, all-reduce.
"""
import os
import re
import statistics
import sys
import time

from process import Gone, Process

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", "build")
TORCH, TF = os.environ.get("PEERS_TORCH", ""), os.environ.get("PEERS_TF", "")
BUDGET = float(os.environ.get("PEERS_SECONDS", 520))
READY = float(os.environ.get("PEERS_READY", 100))
TURN = float(os.environ.get("PEERS_TURN", 1.0))
ROUNDS = int(os.environ.get("PEERS_ROUNDS", 3))
PROCESSORS = len(os.sched_getaffinity(0))
THREADS = os.environ.get("PEERS_THREADS", str(min(2, PROCESSORS))).split()
MODELS = os.environ.get("PEERS_MODELS", "mlp lenet resnet20 gpt-bytes gpt-6x384").split()
PARTS = os.environ.get("PEERS_PARTS", "one two ps all-reduce").split()
TICK = os.sysconf("SC_CLK_TCK")
STARTED = time.monotonic()

FLOOR, QUIET = 1.1, 0.05
# The aims of docs/performance.md that nothing here looks at, and what does.
ELSEWHERE = ("saves, the stall of a step, all-reduces and parameter servers beside a raw TCP stream, a worker's own memory (make bench); "
             "the operator (make bench-operator); stragglers (make check-stragglers)")
MEMORY_AIM = 1 / 3
notes, rows, spent_by_orphans = [], [], [0.0]
floors = {}  # what has a floor -> why it has no figures, or None


def left():
    return BUDGET - (time.monotonic() - STARTED)


def sessions():
    """Processes of each session: number -> [(process, processor seconds)]."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        found.setdefault(int(fields[3]), []).append((int(name), (int(fields[11]) + int(fields[12])) / TICK))
    return found


def machine_seconds():
    """Processor seconds that the machine has worked, for whomever, or had taken away."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, open("/proc/stat").readline().split()[1:])
    return (user + nice + system + irq + softirq + steal) / TICK


class Participant(Process):
    def __init__(self, name, command):
        super().__init__(name, command, os.path.join(BUILD, f"peers-{re.sub('[^a-z0-9]+', '-', name.lower())}.log"),
                         {"TORCHINDUCTOR_CACHE_DIR": os.path.join(BUILD, "peers-inductor")})
        self.turns, self.peak_mb = [], 0

    def answer(self, pattern, seconds):
        deadline = time.monotonic() + seconds
        while True:
            match = re.match(pattern, self.line(deadline))
            if match:
                return [float(word) for word in match[0].split() if word != "ready"]

    def processes(self):
        return sessions().get(self.process.pid, [])

    def turn(self):
        before = sum(seconds for _, seconds in self.processes())
        self.say(f"SECONDS {TURN}")
        units, wall, *measured = self.answer(r"[\d.e+-]+( [\d.e+-]+)+$", 60 + 20 * TURN)
        spent = measured[0] if measured else sum(seconds for _, seconds in self.processes()) - before
        self.turns.append((units / wall, units / max(spent, 1 / TICK)))
        self.peak_mb = max([self.peak_mb, *measured[1:2], *(self.peak_of(process) for process, _ in self.processes())])

    @staticmethod
    def peak_of(process):
        try:
            return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{process}/status").read())[1]) / 1024
        except (OSError, TypeError):
            return 0

    def rate(self, clock):
        return statistics.median(turn[clock] for turn in self.turns)

    def over(self, other, clock):
        return statistics.median(a[clock] / b[clock] for a, b in zip(self.turns, other.turns))

    def end(self):
        # A participant's own children are killed with it: nobody waits for them, and their time would pass for others'.
        spent_by_orphans[0] += sum(seconds for process, seconds in self.processes() if process != self.process.pid)
        super().end()


def python(interpreter, script, *arguments):
    return [interpreter, os.path.join(HERE, script), *map(str, arguments)]


def bench(program, *arguments):
    return [os.path.join(BUILD, "tests", program), *map(str, arguments)]


def compete(commands, rounds=ROUNDS):
    """Starts all, drops those that do not get ready, gives all others their turns. The first is ours; ours gone, so is all."""
    started = [Participant(name, command) for name, command in commands if command[0]]
    ready, flops, until = [], {}, time.monotonic() + max(20, min(READY, left()))
    try:
        for participant in started:
            try:
                flops[participant.name] = participant.answer(r"ready.*", max(1, until - time.monotonic()))
                ready.append(participant)
            except Gone as gone:
                notes.append(str(gone))
        for _ in range(rounds):
            for participant in list(ready):
                try:
                    participant.turn()
                except Gone as gone:
                    notes.append(str(gone))
                    ready.remove(participant)
    finally:
        for participant in started:
            participant.end()
    if not ready or ready[0] is not started[0]:
        raise Gone(f"{started[0].name}: no figures")
    return ready, flops[ready[0].name]


class Busy:
    """What others used of the machine's processors, all along."""

    def __init__(self):
        self.start, self.machine, self.own = time.monotonic(), machine_seconds(), os.times()

    def share(self):
        now = os.times()
        own = sum(now[:4]) - sum(self.own[:4]) + spent_by_orphans[0]
        others = machine_seconds() - self.machine - own
        return max(0, others / PROCESSORS / (time.monotonic() - self.start))


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def compare(what, ours, theirs, verdict, share=None, memory=True):
    """A row for each of them; `verdict(ratio, clock)` says what is aimed for and whether it is reached."""
    for peer in theirs:
        rows.append({"what": what, "peer": peer.name, "ours": ours.rate(0), "theirs": peer.rate(0),
                     "ratios": (ours.over(peer, 0), ours.over(peer, 1)), "memory": (ours.peak_mb, peer.peak_mb) if memory else None,
                     "share": share, "verdict": verdict})
        print(f"{what:24} {peer.name:26} {number(rows[-1]['ours']):>10} {number(rows[-1]['theirs']):>10}"
              f"   x {rows[-1]['ratios'][0]:.2f}, by processor time {rows[-1]['ratios'][1]:.2f}", flush=True)


def one_process(model, threads):
    ours = f"Coxswain {model} {threads}"
    participants, (flops, *_) = compete([
        (ours, bench("bench_train", "--turns", "--threads", threads, "--model", model)),
        (f"sgemm {threads}", bench("bench_train", "--turns", "--threads", threads, "--model", "sgemm")),
        ("PyTorch eager", python(TORCH, "train_torch.py", model, threads)),
        ("PyTorch compiled", python(TORCH, "train_torch.py", model, threads, "--compile")),
        ("TensorFlow", python(TF, "train_tf.py", model, threads))])
    own, sgemm, *theirs = participants
    share = [own.over(sgemm, clock) * flops for clock in (0, 1)]

    def verdict(ratio, clock):
        return "60 % of sgemm or 2 x, never below 1.1 x", ratio >= 1.1 and (share[clock] >= 0.6 or ratio >= 2)

    what = f"{model}, {threads} thread{'s' * (threads != '1')}"
    if what in floors:
        floors[what] = None if theirs else "no peer got ready"
    compare(what, own, theirs, verdict, share)


def two_processes(model):
    aim = 3.0 if model == "mlp" else 1.5
    apart = f"Coxswain {model} apart"
    participants, _ = compete([
        (f"Coxswain {model} crew", bench("bench_crew", "--turns", model)),
        (apart, bench("bench_crew", "--turns", model, "--apart")),
        ("DDP over gloo", python(TORCH, "ddp_torch.py", model)),
        ("MultiWorkerMirrored", python(TF, "mirrored_tf.py", model))])
    theirs = [p for p in participants[1:] if p.name != apart]
    compare(f"{model}, 2 processes", participants[0], theirs, lambda ratio, _: (f"{aim:g} x", ratio >= aim))
    for ours in participants[1:]:
        if ours.name == apart:
            compare(f"{model}, 2 over TCP", ours, theirs, lambda *_: ("", None))


def parameter_server():
    participants, _ = compete([
        ("Coxswain ps", bench("bench_parameter_server", "--turns")),
        ("ParameterServer", python(TF, "parameter_server_tf.py", 1)),
        ("ParameterServer, 10 a call", python(TF, "parameter_server_tf.py", 10))])
    compare("mlp, 2 workers + 1 ps", participants[0], participants[1:], lambda ratio, _: ("2 x", ratio >= 2), memory=False)


def lines_of(command):
    participant = Participant("all-reduce", command)
    found = []
    try:
        while True:
            found.append(participant.line(time.monotonic() + 120))
    except Gone:
        pass
    participant.end()
    return found


def own_all_reduce():
    times = {}
    for line in lines_of(bench("bench_allreduce", "--pair")):
        match = re.match(r"(shared memory|TCP)\s+2 processes\s+(\d+) bytes\s+([\d.]+) us", line)
        if match:
            times[match[1], int(match[2])] = float(match[3])
    return times


def all_reduce():
    ours, theirs = [own_all_reduce()], []
    for _ in range(2):
        theirs.append({int(a): float(b) for a, b in (x.split() for x in lines_of(python(TORCH, "ddp_torch.py", "all-reduce"))
                                                     if re.match(r"\d+ [\d.]+$", x))})
        ours.append(own_all_reduce())
    for transport in ("shared memory", "TCP"):
        for size in theirs[0]:
            a, b = (statistics.median(x) for x in ([o[transport, size] for o in ours], [t[size] for t in theirs]))
            rows.append({"what": f"all-reduce {size >> 10} KB, us", "peer": f"gloo, {transport}", "ours": a, "theirs": b,
                         "ratios": (b / a, None), "memory": None, "share": None,
                         "verdict": (lambda ratio, _: ("3 x", ratio >= 3)) if transport != "TCP" else (lambda *_: ("", None))})


def table(clock):
    print(f"\n{'what (units/s)':24} {'beside':27} {'ours':>9} {'theirs':>9} {'ratio':>6} {'by CPU':>6} {'sgemm':>6} "
          f"{'MB: ours, theirs':>17}  aim")
    for row in rows:
        by_clock, by_processor = row["ratios"]
        aim, reached = aim_of(row, clock)
        share = f"{100 * row['share'][clock]:.0f} %" if row["share"] else ""
        memory = f"{row['memory'][0]:.0f}, {row['memory'][1]:.0f}" if row["memory"] and row["memory"][0] else ""
        processor = f"{by_processor:.2f}" if by_processor else ""
        print(f"{row['what']:24} {row['peer']:27} {number(row['ours']):>9} {number(row['theirs']):>9} {by_clock:6.2f} "
              f"{processor:>6} {share:>6} {memory:>17}  {aim}: {'reached' if reached else 'NOT reached'}" if aim else
              f"{row['what']:24} {row['peer']:27} {number(row['ours']):>9} {number(row['theirs']):>9} {by_clock:6.2f}")
    most = most_memory(rows)
    if most is not None:
        print(f"peak resident memory, one process: at most {most:.2f} of a peer's; aim a third: "
              f"{'reached' if most <= MEMORY_AIM else 'NOT reached'}")


def aim_of(row, clock):
    by_clock, by_processor = row["ratios"]
    return row["verdict"](by_processor if clock and by_processor else by_clock, clock)


def most_memory(found_rows):
    """The largest share of a peer's memory that we take in one process; None: nothing was measured."""
    return max((row["memory"][0] / row["memory"][1] for row in found_rows if row["share"] and row["memory"][1]), default=None)


def missed_aims(found_rows, clock):
    """(what was missed, in words; how many aims there were)"""
    judged = [(f"{row['what']} beside {row['peer']}: {aim}", reached)
              for row in found_rows for aim, reached in [aim_of(row, clock)] if aim]
    most = most_memory(found_rows)
    if most is not None:
        judged.append(("memory: a third of a peer's", most <= MEMORY_AIM))
    return [words for words, reached in judged if not reached], len(judged)


def judge_aims(found_rows, share, binding):
    """The last lines, and the exit code: a missed aim is one where aims are `binding` and the machine was quiet."""
    missed, count = missed_aims(found_rows, 1 if share > QUIET else 0)
    print(f"Aims that are not looked at here: {ELSEWHERE}.")
    print(f"{count - len(missed)} of {count} aims reached" + "".join(f"; missed: {words}" for words in missed) + ".")
    return 1 if binding and missed and share <= QUIET else 0


def missed_floors(found_rows, wanted):
    """Sentences: by the clock, beside the best of the peers."""
    sentences = []
    for what, why in wanted.items():
        ratios = [(row["ratios"][0], row["peer"]) for row in found_rows if row["what"] == what]
        if not ratios:
            sentences.append(f"{what}: {why or 'no figures'}")
        elif min(ratios)[0] < FLOOR:
            sentences.append(f"{what}: {min(ratios)[0]:.2f} x {min(ratios)[1]}, the floor is {FLOOR} x")
    return sentences


def judge(found_rows, wanted, share):
    """Says which floors are missed, and the exit code."""
    missed = missed_floors(found_rows, wanted)
    for sentence in missed:
        print("floor missed:", sentence)
    if not wanted:
        print("No floor was looked at: they are those of one process (PEERS_PARTS).")
    elif not missed:
        print(f"All {len(wanted)} floors hold.")
    elif share > QUIET:
        print(f"The machine was not quiet (others used {100 * share:.0f} % of it): missed floors are not judged. Run it again.")
    return 1 if missed and share <= QUIET else 0


def attempt(what, function, *arguments):
    if left() < 20:
        notes.append(f"no time left for {what}: PEERS_SECONDS says {BUDGET:.0f}")
        return
    try:
        function(*arguments)
    except Gone as gone:
        notes.append(f"{what}: {gone}")


def main():
    busy = Busy()
    for model in MODELS if "one" in PARTS else []:
        for threads in THREADS:
            if TORCH or TF:
                floors[f"{model}, {threads} thread{'s' * (threads != '1')}"] = "no figures of ours"
            attempt(f"{model}, one process", one_process, model, threads)
    for model in MODELS if "two" in PARTS else []:
        attempt(f"{model}, two processes", two_processes, model)
    if "ps" in PARTS and TF:
        attempt("parameter server", parameter_server)
    if "all-reduce" in PARTS and TORCH:
        attempt("all-reduce", all_reduce)
    share = busy.share()
    table(1 if share > QUIET else 0)
    print(f"Others used {100 * share:.0f} % of {PROCESSORS} processors: verdicts go by "
          f"{'processor time' if share > QUIET else 'the clock'}. {time.monotonic() - STARTED:.0f} s.")
    for note in notes:
        print("note:", note)
    floors_missed = judge(rows, floors, share)
    return judge_aims(rows, share, os.environ.get("PEERS_AIMS") == "1") or floors_missed


if __name__ == "__main__":
    sys.exit(main())
