# SPDX-License-Identifier: Apache-2.0
"""What a strategy promises (docs/strategies.md), held against what a disturbed run has left. Each check gives sentences about
what is wrong."""
import math
import re
import signal

from arrangements import BATCH, EXAMPLES
from history import check_counted, check_epochs, check_held, check_staleness, check_updates, seat

ACCURACY = re.compile(r"held-out examples: accuracy ([0-9.]+) %")
LOST = re.compile(r"([0-9]+) acknowledged updates were lost")
RESUMED = re.compile(r"resumes from the checkpoint of step ([0-9]+)")
RESTORED = re.compile(r"(?:resumes|starts) from the checkpoint of step ([0-9]+)")  # a chief, or a ps
LEFT = 143  # the exit code of who was asked to, and has left nothing behind
RETURN = 3  # seconds until a successor has the state
CUT_SHORT = "the record of steps ends here"  # a process says so when it cannot write on
FINISHED = re.compile(r"has finished ([0-9]+) examples")


def numbers(pattern, lines):
    return [float(match.group(1)) for match in map(pattern.search, lines) if match]


def survivors(crew, history, before, after):
    """Processes that took the first line's step, and were there, for their crew too, until the second. Who has lost its connection to the
    chief of an elastic crew is dead to that one, as it is to the chief, until it comes back."""
    holders, members = history.holders(before), history.members(after.generation)
    return [p for p in crew.processes if p.name in holders and p.lived_through(before.at, after.at)
            and (p.name in members or not p.was_cut_off(before.at, after.at))]


def somebody_held_all(arrangement, crew, history, before, after):
    """Whether the state outlived what lies between the two lines, in processes that took the first one's step."""
    left = survivors(crew, history, before, after)
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
        left = {p.name for p in survivors(crew, history, before, after)}
        redone = history.repeated(before, after, arrangement.unit, left)
        held = somebody_held_all(arrangement, crew, history, before, after)
        told = f"{before.name} had applied step {before.last}, then {after.name} began with step {after.first}"
        if back < 0:
            wrong.append(f"steps are missing: {told}")
        elif redone > arrangement.unit and held:
            wrong.append(f"{redone} steps were repeated although the state was there: {told}")
        elif repeated > arrangement.unit and not held and after.first - 1 < committed_before(crew, after.at):
            wrong.append(f"an older checkpoint than the newest, of step {committed_before(crew, after.at)}: {told}")
    return wrong


def check_newest(crew):
    """Whoever goes on from a checkpoint takes the newest: at least the one that was there when it started."""
    return [f"{p.name} took the checkpoint of step {step:.0f}; the newest was of step {committed_before(crew, p.started)}"
            for p in crew.processes for step in numbers(RESTORED, crew.logs_of(p)) if step < committed_before(crew, p.started)]


def absences(crew, history):
    """[(from, to, index, left)] of each ps that was killed, left or stood still: until the crew has taken a step RETURN seconds later,
    for a successor has to get the state first. Not of those that ended with the run: well, or after its chief."""
    over = min((p.ended for p in crew.processes if (p.role, p.index) == crew.chief and p.code == 0), default=math.inf)
    away = []
    for p in crew.processes:
        if p.role == "ps":
            moments = [(begin, stop or begin) for begin, stop in p.frozen]
            if p.ended and p.code != 0 and p.ended < over:
                moments.append((p.ended, p.ended))
            away += [(begin, history.first_applied(stop + RETURN), p.index, p.code == LEFT and begin == p.ended)
                     for begin, stop in moments]
    return sorted(away)


def updates_lost(crew):
    """By what the last chief tells."""
    return int(sum(numbers(LOST, crew.chief_logs())))


def check_leaving(arrangement, crew, history):
    """Servers that leave on request cost nothing while there is a chief to have them saved: one that has not
    left in another way."""
    if not arrangement.serves or not updates_lost(crew):
        return []
    chiefs = [p for p in crew.processes if (p.role, p.index) == crew.chief]
    if any(p.frozen or p.code not in (0, LEFT, -signal.SIGTERM) for p in chiefs) or not all(left for _, _, _, left in absences(crew, history)):
        return []
    return [f"{updates_lost(crew)} updates were lost although all servers that ended had been asked to leave"]


def check_superseded(crew, history):
    """A superseded ps has no good end, but where it returned before the crew had turned to its successor, and served the end of the
    run: then its shard is in the last checkpoint."""
    last = next((whose for _, fate, _, whose in reversed(history.servers) if fate == "committed"), None)
    served = {seat(name): name for name, fate, _, whose in history.servers if fate == "saved" and whose == last}
    return [f"{p.name}, superseded, ended with 0, and is not in the last checkpoint" for p in crew.processes
            if p.role == "ps" and p.superseded and p.code == 0 and served.get(seat(p.name)) != p.name]


def check_bound(arrangement, history):
    bound = arrangement.strategy.get("staleness")
    return [] if bound is None else check_staleness(history.tickets, bound)[:3]


def check_tickets(arrangement, history):
    """Of those modes in which two workers do not compute the same ticket on purpose."""
    if not arrangement.serves or arrangement.strategy["mode"] == "Synchronous":
        return []
    return check_counted(history.tickets, arrangement.steps * arrangement.shares)[:3]


def check_applied(arrangement, crew, history):
    """No server has applied anything twice, and what it lacks in the end is what the chief says, no more and no less."""
    if not arrangement.serves:
        return []
    synchronous = arrangement.strategy["mode"] == "Synchronous"
    wrong, missing = check_updates(history.servers, arrangement.steps * (1 if synchronous else arrangement.shares))
    if not history.servers:
        wrong.append("the record does not say what the servers applied")
    elif missing != updates_lost(crew):
        wrong.append(f"{missing} updates are missing in the servers, and {updates_lost(crew)} are told to be lost")
    return wrong[:3]


def check_peers(arrangement, history):
    """Peers count nothing that was lost with one of them."""
    if arrangement.strategy["type"] != "PeerToPeer":
        return []
    return check_held(history.peers)[:3] if history.peers else ["the record does not say what the peers have"]


def check_record(crew):
    """That no process has stopped recording, which would look like shares that nobody computed."""
    return [f"a record is not whole: {line.strip()}" for line in crew.logs() if CUT_SHORT in line][:1]


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
    wrong += check_record(crew) + check_superseded(crew, history) + check_newest(crew)
    if arrangement.lockstep:
        wrong += check_repeats(arrangement, crew, history)
    wrong += check_leaving(arrangement, crew, history)
    wrong += check_examples(arrangement, history) + check_bound(arrangement, history)
    wrong += check_tickets(arrangement, history) + check_applied(arrangement, crew, history) + check_peers(arrangement, history)
    return wrong + check_end(arrangement, crew, undisturbed)
