#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps that a crew did again, or that were lost for good, by its record (worker/data/step_record.h).

    steps_lost.py RECORD lockstep UNIT         members that all take the same steps, or rounds of UNIT local ones
    steps_lost.py RECORD servers TICKETS STEPS parameter servers: steps that the chief went back by, and updates that they lack in
                                               the end, TICKETS of which are a step
    steps_lost.py RECORD peers BATCH           peers: what who was lost had finished, and its successor does again, or counts as
                                               finished although nobody has it, in steps of BATCH examples
    steps_lost.py RECORD counted BATCH         of these, the examples that are counted and that nobody has
"""
import os
import sys

TOO_LATE = 9  # the exit status when no successor has begun, as after a crew that was done before its member was killed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "chaos"))
from history import History, check_updates  # noqa: E402


def steps_again(history, unit):
    return sum(history.repeated(before, after, unit) for _, before, after in history.changes())


def steps_missing(history, tickets, steps):
    wrong, missing = check_updates(history.servers, tickets * steps)
    if wrong or not history.servers:
        sys.exit(f"# {wrong[0] if wrong else 'no server has recorded anything'}")
    back = sum(before.last - after.first + 1 for before, after in history.gone_back())
    return back + -(-missing // tickets)


def losses(peers):
    """[(examples done again, examples counted that nobody has)] for each worker that was lost and has a successor."""
    found, finished, holder = [], {}, {}
    for line, (name, fate, seat, examples) in enumerate(peers):
        if fate == "finished":
            finished[seat] = examples
        if fate == "begins" and holder.get(seat, name) != name:
            living = {other for other, *_ in peers[line:]} - {name}
            had = [count for other, fate, of, count in peers[:line] if fate == "has" and of == seat and other in living]
            kept = min(examples, max(had, default=0)) if living else examples
            found.append((max(0, finished.get(seat, 0) - examples), examples - kept))
            finished[seat] = examples
        if fate in ("begins", "finished"):
            holder[seat] = name
    return found


def peers_lost(history, batch):
    found = losses(history.peers)
    if not found:
        sys.exit(TOO_LATE)
    return sum(-(-(again + lost) // batch) for again, lost in found)


def counted_lost(history, _):
    return sum(lost for _, lost in losses(history.peers))


def main(record, kind, *numbers):
    history = History(record).read()
    if not history.applied:
        sys.exit("# the record has no step")
    counts = {"lockstep": steps_again, "servers": steps_missing, "peers": peers_lost, "counted": counted_lost}
    print(counts[kind](history, *map(int, numbers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
