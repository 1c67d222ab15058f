#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILLs of random members at random moments over every strategy, and other faults between them: one table of what was lost.
Fails when a crew hangs, ends wrongly, or loses more than docs/strategies.md says.

    CHAOS_KILLS=n       1000 by default, over all strategies together
    CHAOS_SEED=n        the same choices again, as far as timing allows
    CHAOS_ONLY=regex    only strategies whose name matches
    CHAOS_FAULTS=a;b    only these faults, by their names in faults.py; where none of them is a SIGKILL, CHAOS_KILLS counts them all
    CHAOS_JOBS=n        crews at a time (2)
    CHAOS_PATIENCE=s    seconds without a step that are a hang (100)
    CHAOS_KEEP=dir      where the remains of crews that did wrong go (logs, records, checkpoints)
"""
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from arrangements import ARRANGEMENTS, document  # noqa: E402
from crew import Crew, Nodes  # noqa: E402
import bucket  # noqa: E402
import faults  # noqa: E402
from history import History  # noqa: E402
import program  # noqa: E402
import verdicts  # noqa: E402

PATIENCE = float(os.environ.get("CHAOS_PATIENCE", "100"))  # seconds without a step are a hang, on a machine however busy
FAULTS = faults.choose(os.environ.get("CHAOS_FAULTS", ""))
KILLS_COUNT = any(fault.kills for fault in FAULTS.values())  # else whatever is done to a crew does
COMING = 5  # seconds within which strangers are to be there; on a busy machine fewer are, then
STAY = 3  # seconds that strangers stay once a member is killed
HASTE = 0.25  # of all faults are followed by the next without waiting for the crew


class Hang(Exception):
    pass


class Totals:
    def __init__(self):
        self.kills, self.others, self.roles = Counter(), Counter(), Counter()
        self.delays, self.delays_among, self.wrong = [], [], []  # seconds until the next step; `among` strangers
        self.among = self.strangers = 0  # kills among them; connections that they made
        self.spoilt = 0  # requests to the bucket
        self.lives = self.repeated = self.most_repeated = self.lost = self.resumed = 0


class Disturbance:
    """One crew from its start to its end, with faults as long as `wants` says."""

    def __init__(self, arrangement, crew, source, totals, wants):
        self.arrangement, self.crew, self.random, self.totals, self.wants = arrangement, crew, source, totals, wants
        self.history = History(crew.record)
        crew.committed = []  # [(when, newest checkpoint)], as seen by whoever starts
        self.moved = time.monotonic()
        self.strangers_until = 0.0
        self.done = False

    def invite_strangers(self, kind, count):
        """Waits until they are there, or as many as the crew lets be."""
        self.send_strangers_away()
        self.crew.invite_strangers(kind, count)
        self.strangers_until = math.inf
        end = time.monotonic() + COMING
        while time.monotonic() < end and not self.crew.strangers.are_there() and not self.look():
            time.sleep(0.02)
        self.strangers_until = time.monotonic() + STAY

    def send_strangers_away(self):
        if self.crew.strangers:
            done = self.crew.strangers.end()
            self.crew.strangers = None
            self.totals.strangers += sum(connections for connections, _ in done.values())

    def look(self):
        if time.monotonic() > self.strangers_until:
            self.send_strangers_away()
        step, generation, lines = self.history.step, self.history.generation, len(self.history.applied)
        self.done = self.crew.look()
        self.history.read()
        if (step, generation, lines) != (self.history.step, self.history.generation, len(self.history.applied)):
            self.moved = time.monotonic()
        if time.monotonic() - self.moved > PATIENCE:
            raise Hang(f"no step for {PATIENCE} s after step {self.history.step}")
        return self.done or bool(self.crew.failures)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.look():
            time.sleep(min(0.02, max(0, end - time.monotonic())))

    def stepped_on(self, victim, start, generation, lines):
        """The first line after the fault that shows that the crew goes on."""
        for applied in self.history.applied[lines:]:
            if applied.at < start or applied.name == victim.name and not victim.runs:
                continue
            if not self.arrangement.lockstep or applied.generation > generation or victim.runs:
                return applied.at
        return None

    def strike(self):
        name = self.choose_fault()
        members = self.crew.running()
        if not members:
            return self.rest(0.05)
        fault = FAULTS[name]
        victim = self.random.choice(members)
        fault.strike(self, victim)
        start, generation, lines = time.monotonic(), self.history.generation, len(self.history.applied)
        (self.totals.kills if fault.kills else self.totals.others)[name] += 1
        if not (fault.needs_elastic or fault.needs_bucket):
            self.totals.roles["chief" if (victim.role, victim.index) == self.crew.chief else victim.role] += 1
        among = fault.kills and self.crew.strangers is not None
        self.totals.among += among
        if fault.kills:
            victim.child.wait()
        self.crew.committed.append((start, self.crew.newest_committed()))
        if self.random.random() < HASTE:
            return self.rest(self.random.random() * 0.3)
        delays = self.totals.delays_among if among else self.totals.delays if fault.kills else []
        return self.await_step(victim, start, generation, lines, delays)

    def await_step(self, victim, start, generation, lines, delays):
        while not self.look():
            at = self.stepped_on(victim, start, generation, lines)
            if at is not None:
                delays.append(at - start)
                self.ask_for_health(start)
                return self.rest(0.05 + self.random.random() * 0.4)
            time.sleep(0.005)
        return None

    def ask_for_health(self, start):
        """One of those that were there before the fault: a newcomer may not listen yet."""
        there = [p for p in self.crew.running() if p.started < start - 1 and not p.asked]
        if self.crew.strangers and there:
            self.crew.ask_for_health(self.random.choice(there))

    def choose_fault(self):
        names = self.arrangement.suffers(FAULTS)
        return self.random.choices(names, [FAULTS[name].share for name in names])[0]

    def run(self):
        self.crew.start()
        while not self.look():
            if self.history.step > self.arrangement.steps * 0.9 or not self.wants():
                self.rest(0.05)
            elif self.history.step > 0 or self.random.random() < 0.02:
                self.strike()
            else:
                self.rest(0.02)
        self.leave()

    def leave(self):
        """The chief has ended: the others do so too, or are asked to, as an operator would."""
        self.send_strangers_away()
        end = time.monotonic() + 10
        while time.monotonic() < end and any(p.runs for p in self.crew.processes):
            self.crew.look(replace=False)
            time.sleep(0.02)
        self.crew.end()
        self.history.read()


def stacks(crew):
    """Where each process of a crew that hangs stands."""
    for process in crew.processes:
        if process.runs and shutil.which("gdb"):
            with open(os.path.join(crew.directory, f"stack-{process.name}"), "w") as file:
                core = os.path.join(crew.directory, f"core-{process.name}")
                subprocess.run(["gdb", "-p", str(process.child.pid), "-batch", "-ex", "thread apply all bt", "-ex",
                                f"generate-core-file {core}"], stdout=file, stderr=subprocess.DEVNULL, timeout=60,
                               check=False)


def last_words(crew):
    """What each process of a crew that hangs has said last: who waits for whom."""
    for process in crew.processes:
        if process.runs:
            with open(process.log, errors="replace") as file:
                print(f"\n# {process.name}: " + "".join(file.readlines()[-3:]).strip().replace("\n", " | "), end="", flush=True)


class Trial:
    """All crews of one strategy."""

    def __init__(self, arrangement, kills, seed, number, work, worker, compiled, server):
        self.arrangement, self.kills, self.work, self.number = arrangement, kills, work, number
        self.program = compiled if arrangement.program else None
        self.server = server if arrangement.bucket else None
        self.worker = self.program.worker if self.program else worker
        self.random = random.Random(f"{seed} {arrangement.name}")
        self.totals = Totals()
        self.struck = 0

    def crew(self, name):
        directory = os.path.join(self.work, f"{self.number}-{name}")
        return Crew(self.worker, document(self.arrangement), directory, self.number * 5 + self.totals.lives,
                    nodes=self.arrangement.nodes, encrypted=self.arrangement.encrypted, program=self.program, server=self.server)

    def wants(self):
        done = self.totals.kills if KILLS_COUNT else self.totals.others
        return sum(done.values()) < self.kills

    def run(self):
        undisturbed = self.crew("undisturbed")
        self.live(undisturbed, lambda: False, None)
        while self.wants() and not self.totals.wrong:
            self.live(self.crew(f"life-{self.totals.lives}"), self.wants, undisturbed)
        if self.totals.among and not self.totals.strangers:
            self.totals.wrong.append("no stranger was let connect")
        if any(FAULTS[name].needs_bucket for name in self.totals.others) and not self.totals.spoilt:
            self.totals.wrong.append("no request to the bucket was spoilt")

    def live(self, crew, wants, undisturbed):
        self.totals.lives += 1
        disturbance = Disturbance(self.arrangement, crew, self.random, self.totals, wants)
        wrong = []
        try:
            disturbance.run()
            wrong = verdicts.judge(self.arrangement, crew, disturbance.history, undisturbed or crew)
        except Hang as hang:
            last_words(crew)
            stacks(crew)
            wrong = [str(hang)]
        finally:
            crew.end()
        self.count(crew, disturbance.history)
        self.totals.spoilt += crew.bucket.spoilt() if crew.bucket else 0
        self.totals.wrong += wrong
        if wrong:
            keep(crew.directory, wrong)
        elif undisturbed:
            shutil.rmtree(crew.directory)

    def count(self, crew, history):
        changes = history.changes() if self.arrangement.lockstep else []
        repeated = [history.repeated(before, after, self.arrangement.unit) for _, before, after in changes]
        if self.arrangement.serves:
            steps = [a.first for a in history.applied]
            repeated = [max(0, a - b + 1) for a, b in zip(steps, steps[1:])]
        self.totals.repeated += sum(repeated)
        self.totals.most_repeated = max([self.totals.most_repeated, *repeated])
        self.totals.lost += verdicts.updates_lost(crew)
        self.totals.resumed += len(verdicts.numbers(verdicts.RESUMED, crew.logs()))


def keep(directory, wrong):
    print(f"\n# {directory}: {wrong}", flush=True)
    if os.environ.get("CHAOS_KEEP"):
        target = os.path.join(os.environ["CHAOS_KEEP"], os.path.basename(directory) + f"-{time.time():.0f}")
        shutil.copytree(directory, target)
        print(f"# kept in {target}", flush=True)


COLUMNS = ["strategy", "kills", "of chief, workers, ps, evaluator", "other faults", "steps repeated (most)", "updates lost",
           "restarts from a checkpoint", "next step, s: median, most", "kills among strangers (their connections)", "next step then",
           "bits", "verdict"]


def spread(delays):
    return f"{statistics.median(delays):.2f}, {max(delays):.2f}" if delays else "-"


def row(trial):
    totals, arrangement = trial.totals, trial.arrangement
    others = ", ".join(f"{count} {name}" for name, count in sorted(totals.others.items())) or "none"
    roles = " ".join(str(totals.roles[role]) for role in ("chief", "worker", "ps", "evaluator"))
    bits = ("other" if any("weights" in w for w in totals.wrong) else "same") if arrangement.bits else "not promised"
    repeated = f"{totals.repeated} ({totals.most_repeated})" if arrangement.lockstep or arrangement.serves else "-"
    return [arrangement.name, str(sum(totals.kills.values())), roles, others, repeated,
            str(totals.lost) if arrangement.serves else "-", str(totals.resumed),
            spread(totals.delays), f"{totals.among} ({totals.strangers})", spread(totals.delays_among), bits, "; ".join(totals.wrong) or "kept"]


def table(trials):
    lines = [COLUMNS, ["---"] * len(COLUMNS), *map(row, trials)]
    return "\n".join("| " + " | ".join(words) + " |" for words in lines)


def follow(trials, threads, kills):
    start = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        done = sum(sum((t.totals.kills if KILLS_COUNT else t.totals.others).values()) for t in trials)
        left = (time.monotonic() - start) * (kills - done) / done if done else 0
        print(f"\r  {done} of {kills} {'kills' if KILLS_COUNT else 'faults'}, about {left / 60:.0f} min left ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def prepared(chosen, trait, prepare):
    """What the chosen rows with this trait need, and the rows; without those, if it cannot be had."""
    others = [a for a in chosen if not getattr(a, trait)]
    if len(others) == len(chosen):
        return None, chosen
    try:
        return prepare(), chosen
    except program.Missing as missing:
        print(f"no rows of {trait}s: {missing} ({len(chosen) - len(others)} left out)")
        return None, others


def main():
    worker = os.path.join(os.environ["BUILD"], "coxswain-worker")
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1 << 31))
    chosen = [a for a in ARRANGEMENTS if re.search(os.environ.get("CHAOS_ONLY", ""), a.name) and a.suffers(FAULTS)]
    if not Nodes.can_be_had():
        print(f"no rows of several nodes: this machine lets nobody mount what is his own ({sum(a.nodes > 0 for a in chosen)} left out)")
        chosen = [a for a in chosen if not a.nodes]
    compiled, chosen = prepared(chosen, "program", lambda: program.prepare(os.environ["BUILD"]))
    minio, chosen = prepared(chosen, "bucket", bucket.prepare)
    kills = int(os.environ.get("CHAOS_KILLS", "1000"))
    print(f"seed {seed}: CHAOS_SEED={seed} CHAOS_KILLS={kills} make chaos", flush=True)
    shares = [kills * (i + 1) // len(chosen) - kills * i // len(chosen) for i in range(len(chosen))]
    with tempfile.TemporaryDirectory(prefix="chaos-") as work:
        server = bucket.Server(minio, os.environ["BUILD"], os.path.join(work, "bucket")) if minio else None
        trials = [Trial(a, n, seed, i, work, worker, compiled, server) for i, (a, n) in enumerate(zip(chosen, shares))]
        waiting, lock = list(trials), threading.Lock()

        def work_off():
            while True:
                with lock:
                    if not waiting:
                        return
                    trial = waiting.pop()
                try:
                    trial.run()
                except Exception as error:  # of the driver: the others go on
                    trial.totals.wrong.append(f"the driver failed: {error!r}")
                print(f"\n| {' | '.join(row(trial))} |", flush=True)

        threads = [threading.Thread(target=work_off) for _ in range(int(os.environ.get("CHAOS_JOBS", "2")))]
        for thread in threads:
            thread.start()
        follow(trials, threads, kills)
        if server:
            server.end()
    done = sum(sum(t.totals.kills.values()) for t in trials)
    print(f"\n{done} kills, {sum(sum(t.totals.others.values()) for t in trials)} other faults, seed {seed}\n")
    print(table(trials))
    return any(t.totals.wrong for t in trials)


if __name__ == "__main__":
    sys.exit(main())
