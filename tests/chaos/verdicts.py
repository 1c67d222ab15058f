# SPDX-License-Identifier: Apache-2.0
"""What a strategy promises (docs/strategies.md), held against what a disturbed run has left. Each check gives sentences about
what is wrong."""
import re

from arrangements import BATCH, EXAMPLES
from history import check_epochs, check_staleness

ACCURACY = re.compile(r"held-out examples: accuracy ([0-9.]+) %")
LOST = re.compile(r"([0-9]+) acknowledged updates were lost")
RESUMED = re.compile(r"resumes from the checkpoint of step ([0-9]+)")
FINISHED = re.compile(r"has finished ([0-9]+) examples")


def numbers(pattern, lines):
    return [float(match.group(1)) for match in map(pattern.search, lines) if match]


def survivors(crew, names, start, end):
    return [p for p in crew.processes if p.name in names and p.lived_through(start, end)]


def somebody_held_all(arrangement, crew, history, before, after):
    """Whether the state outlived what lies between the two lines, in processes that took the first one's step."""
    left = survivors(crew, history.holders(before), before.at, after.at)
    if arrangement.mirrored:
        size, here = arrangement.roles["worker"], {p.index for p in left}
        return all(rank in here or (rank + 1) % size in here for rank in range(size))
    if not arrangement.alone:
        return bool(left) and sum(arrangement.roles.values()) > 1
    return {p.index % arrangement.alone for p in left} == set(range(arrangement.alone))


def committed_before(crew, moment):
    """The newest checkpoint that was seen until then."""
    return max((step for at, step in crew.committed if at <= moment), default=0)


def check_repeats(arrangement, crew, history):
    """At most one unit where the state lived on; else back to the newest checkpoint and not further."""
    wrong = []
    for back, before, after in history.changes():
        repeated = history.repeated(before, after, arrangement.unit)
        told = f"{before.name} had applied step {before.last}, then {after.name} began with step {after.first}"
        if back < 0:
            wrong.append(f"steps are missing: {told}")
        elif repeated > arrangement.unit and somebody_held_all(arrangement, crew, history, before, after):
            wrong.append(f"{repeated} steps were repeated although the state was there: {told}")
        elif repeated > arrangement.unit and after.first - 1 < committed_before(crew, after.at):
            wrong.append(f"an older checkpoint than the newest, of step {committed_before(crew, after.at)}: {told}")
    return wrong


def servers_died_together(crew):
    """Whether two ps were away at the same time; a successor counts as away until it has the state, which takes its time."""
    away = sorted((p.ended, p.ended + 3, p.index) for p in crew.processes if p.role == "ps" and p.ended)
    away += sorted((begin, (stop or begin) + 3, p.index) for p in crew.processes if p.role == "ps" for begin, stop in p.frozen)
    away.sort()
    return any(a[2] != b[2] and b[0] < a[1] for a, b in zip(away, away[1:]))


def updates_lost(crew):
    """By what the last chief tells."""
    return int(sum(numbers(LOST, crew.chief_logs())))


def check_servers(arrangement, crew):
    if not arrangement.backed or servers_died_together(crew):
        return []
    wrong = []
    if updates_lost(crew):
        wrong.append(f"{updates_lost(crew)} updates were lost although each ps had a backup")
    return wrong


def check_bound(arrangement, history):
    bound = arrangement.strategy.get("staleness")
    return [] if bound is None else check_staleness(history.tickets, bound)[:3]


def check_examples(arrangement, history):
    if not arrangement.epochs_are_exact:
        return []
    batches = history.ticket_batches() if arrangement.serves else history.lockstep_batches()
    return check_epochs(batches, arrangement.steps, BATCH, EXAMPLES)[:3]


def check_end(arrangement, crew, undisturbed):
    """The same bits where they are promised; else as good a model."""
    if arrangement.bits:
        return [] if crew.weights() == undisturbed.weights() else ["the weights are not those of the undisturbed run"]
    wrong = []
    accuracy, expected = (numbers(ACCURACY, c.chief_logs())[-1:] or [0] for c in (crew, undisturbed))
    if accuracy[0] < expected[0] - 10:
        wrong.append(f"accuracy {accuracy[0]} %, undisturbed {expected[0]} %")
    if arrangement.strategy["type"] == "PeerToPeer":
        finished = sum(numbers(FINISHED, crew.logs()))
        if finished < arrangement.steps * BATCH:
            wrong.append(f"{finished:.0f} examples were finished, not {arrangement.steps * BATCH}")
    return wrong


def judge(arrangement, crew, history, undisturbed):
    wrong = list(crew.failures)
    if wrong:
        return wrong
    if arrangement.lockstep:
        wrong += check_repeats(arrangement, crew, history)
    wrong += check_servers(arrangement, crew) + check_examples(arrangement, history) + check_bound(arrangement, history)
    return wrong + check_end(arrangement, crew, undisturbed)
