#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps that a crew did again, or that were lost for good, by its record (worker/data/step_record.h).

    steps_lost.py RECORD lockstep UNIT         members that all take the same steps, or rounds of UNIT local ones
    steps_lost.py RECORD servers TICKETS STEPS parameter servers: steps that the chief went back by, and updates that they lack in
                                               the end, TICKETS of which are a step
"""
import os
import sys

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


def main(record, kind, *numbers):
    history = History(record).read()
    if not history.applied:
        sys.exit("# the record has no step")
    count = steps_again if kind == "lockstep" else steps_missing
    print(count(history, *map(int, numbers)))


if __name__ == "__main__":
    main(*sys.argv[1:])
