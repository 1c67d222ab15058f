# SPDX-License-Identifier: Apache-2.0
"""Writes a trial since a place in the API server's audit log, by kind: trial_writes.py LOG OFFSET TRIALS [USER…]. Prints a table.

USER is by default the operator's account.
"""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))
import writes

log, offset, trials = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("| account | writes | in all | a trial |\n|---|---|---|---|")
for user in sys.argv[4:] or [writes.OPERATOR]:
    kinds = collections.Counter(writes.writes(log, offset, user))
    for kind, count in [*kinds.most_common(), ("all", sum(kinds.values()))]:
        print(f"| {user.rsplit(':', 1)[-1]} | {kind} | {count} | {count / trials:.2f} |")
