#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the operator has written since a place in the API server's audit log, by kind.

    tests/cluster/writes.py LOG OFFSET SORT PODS BESIDES

Prints a row of a table, after the word `row`, and ok or not ok: no more than BESIDES writes besides the creates of pods. Leases,
refused requests, dry runs and progress, which has a measure of its own, do not count.
"""
import collections
import json
import sys

OPERATOR = "system:serviceaccount:coxswain-system:coxswain-operator"
WRITES = "create", "update", "patch", "delete", "deletecollection"


def writes(path, offset, user=OPERATOR):
    with open(path, "rb") as log:
        log.seek(offset)
        for line in log:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # not written to its end yet
            what = event.get("objectRef", {})
            if (event["user"]["username"] == user and event["verb"] in WRITES and what.get("resource") != "leases"
                    and event.get("responseStatus", {}).get("code", 500) < 400 and "dryRun=" not in event["requestURI"]):
                yield f"{event['verb']} {'/'.join(filter(None, (what['resource'], what.get('subresource'))))}"


def main():
    path, offset, sort, pods, besides = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    kinds = collections.Counter(writes(path, offset))
    more = sum(kinds.values()) - kinds["create pods"]
    told = ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))
    print(f"row | {sort} | {sum(kinds.values())} | {more} | {told} |")
    fine = kinds["create pods"] == pods and more <= besides
    print(f"{'ok' if fine else 'not ok'} {sort}: {more} writes besides its pods, at most {besides}{'' if fine else ': ' + told}")


if __name__ == "__main__":
    main()
