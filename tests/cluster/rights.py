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
# What no script here brings about.
ELSEWHERE = {
    "scheduling.k8s.io podgroups": "test_native.sh has a control plane of its own",
}
# Their definitions are brought by test_schedulers.sh, where it can.
SCHEDULERS = "kueue.x-k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"
# When a create finds the name taken, it is asked whose the object is.
ASKED_WHOSE = ("services", "podgroups", "workloads")


def granted(path):
    """GROUP RESOURCE VERB of each right in a role."""
    text = subprocess.run(["kubectl", "create", "--dry-run=client", "-o", "json", "-f", path], check=True, stdout=subprocess.PIPE).stdout
    for rule in json.loads(text)["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (f"{group} {resource} {verb}" for verb in rule["verbs"])


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
                found.add(f"{what.get('apiGroup', '')} {resource} {event['verb']}")
    return found


def is_told_elsewhere(right):
    group_and_resource, verb = right.rsplit(" ", 1)
    resource = group_and_resource.split(" ")[1]
    # An admission plugin asks for that one, when an owner reference blocks; it is no request.
    return group_and_resource in ELSEWHERE or (resource in ASKED_WHOSE and verb == "get") or right == "coxswain.dev trainingjobs/finalizers update"


def main():
    asked = used(os.path.join(os.environ["CLUSTER"], "audit.log"))
    if not any(right.split(" ")[0] in SCHEDULERS for right in asked):
        print("skip rights: no definitions of Kueue, Volcano and the scheduler plugins were there")
        return 0
    for name in ("role.yaml", "lease_role.yaml"):
        idle = [right for right in granted(os.path.join(RBAC, name)) if right not in asked and not is_told_elsewhere(right)]
        print(f"not ok every right of {name} is used: not {', '.join(idle)}" if idle else f"ok every right of {name} is used")
    return 0


if __name__ == "__main__":
    sys.exit(main())
