#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every manifest of deploy/examples by `kubectl apply`, as it stands, one after the other, on the nodes that tests/e2e/nodes
made: what must hold at the end is what tests/examples/check.py asks of `cox run`. Those of other frameworks, in
deploy/examples/foreign, want images that are nowhere here.

    tests/e2e/examples.py make FOLDER                 what the examples read: FOLDER/digits, FOLDER/text
    tests/e2e/examples.py run NAMESPACE FOLDER        FOLDER/runs is what the claim `runs` is
EXAMPLES: a regular expression of names. Prints ok/not ok/skip lines (see tests/run).
"""
import glob
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/examples"))
import check  # noqa: E402


def kubectl(space, *arguments):
    answer = subprocess.run(["kubectl", "-n", space, *arguments], capture_output=True, text=True, timeout=900)
    if answer.returncode != 0:
        raise check.Wrong(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
    return answer.stdout


def example(name, space, folder):
    start = time.monotonic()
    kubectl(space, "apply", "-f", os.path.join(ROOT, "deploy/examples", f"{name}.yaml"))
    try:
        kubectl(space, "wait", f"tj/{name}", "--for=condition=Succeeded", "--timeout=880s")
    except check.Wrong as wrong:
        raise check.Wrong(f"{wrong}: {kubectl(space, 'get', 'tj,pods', '-o', 'wide')}".replace("\n", ";")) from None
    seconds = time.monotonic() - start
    found = json.loads(kubectl(space, "get", "tj", name, "-o", "json"))
    volumes = {claim: os.path.join(folder, claim) for claim in ("digits", "text")}
    metrics = check.check_status(name, found, check.GOALS[name], volumes)
    check.check_crew(found)
    check.check_files(found, folder)
    kubectl(space, "delete", "tj", name)
    accuracy = f"accuracy {100 * metrics['validationAccuracy']:.1f} %, " if "validationAccuracy" in metrics else ""
    return f"{accuracy}loss {metrics['validationLoss']:.4f} after {found['status']['progress']['step']} steps, {seconds:.0f} s"


def run(space, folder):
    wanted = re.compile(os.environ.get("EXAMPLES", ""))
    for path in sorted(glob.glob(os.path.join(ROOT, "deploy/examples/*.yaml"))):
        name = os.path.basename(path)[:-5]
        if not wanted.search(name):
            continue
        if check.needs_devices(name):
            print(f"skip {name}: it needs devices that these nodes have not", flush=True)
            continue
        try:
            print(f"ok {name}: {example(name, space, folder)}", flush=True)
        except (check.Wrong, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as wrong:
            print(f"not ok {name}: {type(wrong).__name__}: {wrong}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        check.make_volumes(sys.argv[2])
    else:
        run(*sys.argv[2:4])
