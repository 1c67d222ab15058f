# SPDX-License-Identifier: Apache-2.0
"""The operator's writes a trial since a place in the API server's audit log, by kind: trial_writes.py LOG OFFSET TRIALS. Prints a table."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cluster"))
import writes

kinds, trials = collections.Counter(writes.writes(sys.argv[1], int(sys.argv[2]))), int(sys.argv[3])
print("| writes | in all | a trial |\n|---|---|---|")
for kind, count in [*kinds.most_common(), ("all", sum(kinds.values()))]:
    print(f"| {kind} | {count} | {count / trials:.2f} |")
