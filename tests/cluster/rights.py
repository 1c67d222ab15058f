#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is every right of deploy/rbac used? Run by tests/cluster/check after all its scripts, with the audit log of what their operators
asked for. That nothing is refused, and what must be, is test_operator.sh's."""
import json
import os
import subprocess
import sys

OPERATOR = "system:serviceaccount:coxswain-system:coxswain-operator"
RBAC = os.path.join(os.path.dirname(__file__), "../../deploy/rbac")
# Their definitions are brought by test_schedulers.sh, where it can.
SCHEDULERS = "kueue.x-k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"
# Rights that no script here uses, and when the operator does.
ELSEWHERE = {
    "coxswain.dev trainingjobs get": "before an orphan is adopted",
    "coxswain.dev trainingjobs/finalizers update": "no request: an admission plugin asks for it where an owner reference blocks",
    "coxswain.dev trainingjobs patch": "a sweep that is suspended",
    "coxswain.dev trainingsweeps/finalizers update": "as of jobs",
    "core pods/log get": "a script whose progress is read from its log",
    "core secrets delete": "in whose place the next certificate of a crew comes, a day later",
    "core nodes get": "a pod that outlives its grace period by a minute",
    "scheduling.k8s.io priorityclasses get": "a job of a queue whose pods have a class",
    "events.k8s.io events patch": "an event that comes again, minutes later",
    "scheduling.x-k8s.io podgroups delete": "as of Volcano's",
    "kueue.x-k8s.io workloads delete": "a job whose label is taken off",
    "kueue.x-k8s.io workloads patch": "an elastic job that is scaled while it waits",
}
# If the name of a create is taken, the operator reads the object to see its owner.
ASKED_WHOSE = "pods", "services", "podgroups", "workloads"


def granted(path):
    """GROUP RESOURCE VERB of each right in a role."""
    text = subprocess.run(["kubectl", "create", "--dry-run=client", "-o", "json", "-f", path], check=True, stdout=subprocess.PIPE).stdout
    for rule in json.loads(text)["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (f"{group or 'core'} {resource} {verb}" for verb in rule["verbs"])


def used(path):
    found = set()
    with open(path, encoding="utf-8") as log:
        for line in log:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # the server was killed as it wrote
            what = event.get("objectRef")
            if what and event["user"]["username"] == OPERATOR and event.get("responseStatus", {}).get("code") != 403:
                resource = "/".join(filter(None, (what["resource"], what.get("subresource"))))
                found.add(f"{what.get('apiGroup') or 'core'} {resource} {event['verb']}")
    return found


def is_told_elsewhere(right, rights):
    group, resource, verb = right.split(" ")
    if right in ELSEWHERE or (verb == "get" and resource in ASKED_WHOSE):
        return True
    if verb == "list" and f"{group} {resource} watch" in rights:
        return True  # a watch brings the list, too, but not with each server
    return (group, resource) == ("scheduling.k8s.io", "podgroups")  # test_native.sh has a control plane of its own


def main():
    asked = used(os.path.join(os.environ["CLUSTER"], "audit.log"))
    if not any(right.split(" ")[0] in SCHEDULERS for right in asked):
        print("skip rights: no definitions of Kueue, Volcano and the scheduler plugins were there")
        return 0
    for name in ("role.yaml", "lease_role.yaml"):
        rights = list(granted(os.path.join(RBAC, name)))
        idle = [right for right in rights if right not in asked and not is_told_elsewhere(right, rights)]
        print(f"not ok every right of {name} is used: not {', '.join(idle)}" if idle else f"ok every right of {name} is used")
    return 0


if __name__ == "__main__":
    sys.exit(main())
