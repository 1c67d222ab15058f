#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Watches a job and its pods until it is asked to end (SIGTERM), then says whether each status told the truth.

    tests/e2e/witness.py NAMESPACE JOB

Every status counts pods: those that have not ended (active) and those that are ready, by role. Resource versions tell what the
pods were when it was written; what it tells must be what they were then, or at most STALE seconds before, and of all roles at
one moment. It says Running only of a moment at which every required worker was ready, or had ended well, Restarting only of one
at which somebody was not; Suspended=True only when no pod was left; Succeeded only when worker 0, or the chief, had ended well;
that pods made it fail only after one had ended badly. Its progress never lies behind a save that it told of. And what the pods have been for LATE seconds, while the API server could be asked, a status tells by then.

Exit status: 0 when all of it was true; else 1, also when fewer than three statuses were seen, and a line for each lie. The last line
says how much was seen.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

STALE = 30
LATE = 60  # an operator may have been killed, and a busy machine takes its time
FAILED_BY_PODS = ("PermanentFailure", "Diverged", "BackoffLimitExceeded", "FailurePolicy")
TYPES = {"tj": ("apis/coxswain.dev/v1beta1", "trainingjobs"), "pods": ("api/v1", "pods")}


def role_of(pod):
    return pod["metadata"].get("labels", {}).get("coxswain.dev/role", "")


def is_alive(pod):
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def exit_code(pod):
    """Of its main container; None while it runs."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if "terminated" in container.get("state", {}):
            return container["state"]["terminated"].get("exitCode")
    return None


def is_ready(pod):
    conditions = pod.get("status", {}).get("conditions", [])
    return (is_alive(pod) and exit_code(pod) is None and "deletionTimestamp" not in pod["metadata"]
            and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions))


def has_ended_well(pod):
    return exit_code(pod) == 0 or pod.get("status", {}).get("phase") == "Succeeded"


def has_ended_badly(pod):
    return exit_code(pod) not in (None, 0) or pod.get("status", {}).get("phase") == "Failed"


def newest(pods):
    """Of each place the pod with the highest incarnation."""
    places = {}
    for pod in pods:
        labels = pod["metadata"].get("labels", {})
        place = labels.get("coxswain.dev/role"), labels.get("coxswain.dev/index")
        incarnation = int(pod["metadata"]["name"].rsplit("-", 1)[1])
        if place not in places or incarnation > places[place][0]:
            places[place] = incarnation, pod
    return {place: pod for place, (_, pod) in places.items()}


def look(pods):
    """What a status would have to say of these pods."""
    places = newest(pods)
    roles = {role_of(pod) for pod in pods}
    counts = {role: (sum(is_alive(pod) for pod in pods if role_of(pod) == role),
                     sum(is_ready(pod) for place, pod in places.items() if place[0] == role)) for role in roles}
    lead = places.get(("chief", "0")) or places.get(("worker", "0"))
    return {"counts": {role: count for role, count in counts.items() if count != (0, 0)},
            "crew": sum(is_ready(pod) or has_ended_well(pod) for place, pod in places.items() if place[0] != "evaluator"),
            "done": bool(lead) and has_ended_well(lead), "bad": any(has_ended_badly(pod) for pod in pods)}


def condition(status, kind):
    """Why it holds; None: it does not."""
    for one in status.get("conditions", []):
        if one["type"] == kind and one["status"] == "True":
            return one.get("reason", "")
    return None


def state_of(status):
    """The first condition that is True."""
    return next((one["type"] for one in status.get("conditions", []) if one["status"] == "True"), "Pending")


def alive(seen):
    return sum(active for active, _ in seen["counts"].values())


def told(status):
    counts = {one["role"]: (one.get("active", 0), one.get("ready", 0)) for one in status.get("replicaStatuses", [])}
    return {role: count for role, count in counts.items() if count != (0, 0)}


def required(spec):
    servers = spec["parameterServers"].get("replicas", 1) if "parameterServers" in spec else 0
    return spec.get("workers", {}).get("replicas", 1) + ("chief" in spec) + servers


class Pods:
    """Their history: from which version, and which time, on they were what they were."""

    def __init__(self, events):
        self.versions = []  # (version, time, look)
        now = {}
        for event in sorted(events, key=lambda event: event["version"]):
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                now.pop(name, None)
            else:
                now[name] = event["object"]
            seen = look(list(now.values()))
            if not self.versions or self.versions[-1][2] != seen:
                self.versions.append((event["version"], event["time"], seen))

    def before(self, version, when):
        """What they were at that version or, at most STALE seconds before, had been."""
        candidates = [{"counts": {}, "crew": 0, "done": False, "bad": False}] if not self.versions or when - self.versions[0][1] < STALE else []
        for i, (begun, _, seen) in enumerate(self.versions):
            ended = self.versions[i + 1][1] if i + 1 < len(self.versions) else when
            if begun <= version and ended >= when - STALE:
                candidates.append(seen)
        return candidates

    def one_had_ended_badly(self, version):
        return any(seen["bad"] for begun, _, seen in self.versions if begun <= version)


def judge_status(job, pods, version, when):
    status = job.get("status", {})
    if not status:
        return None  # nobody has looked at it yet
    there, state, counts = pods.before(version, when), state_of(status), told(status)
    those = [seen for seen in there if seen["counts"] == counts]
    if not those:
        return f"told {counts}, there were {[seen['counts'] for seen in there]}"
    if state == "Running" and not any(seen["crew"] >= required(job["spec"]) for seen in those):
        return f"told Running of {counts}, of {required(job['spec'])} required"
    if state == "Restarting" and not any(seen["crew"] < required(job["spec"]) for seen in there):
        return f"told Restarting of a crew that is whole, {counts}"
    if condition(status, "Suspended") is not None and not any(alive(seen) == 0 for seen in there):
        return f"told Suspended, there were {[seen['counts'] for seen in there]}"
    if state == "Succeeded" and not any(seen["done"] for seen in there):
        return "told Succeeded, and who leads has not ended well"
    if condition(status, "Failed") in FAILED_BY_PODS and not pods.one_had_ended_badly(version):
        return f"told Failed, {condition(status, 'Failed')}, and no pod had ended badly"
    return None


def judge_progress(jobs):
    """What was saved is never lost again, nor a step that was told and saved. A save may be told before its step, and another job
    of the name has everything before it."""
    saved, reached, whose = 0, 0, None
    for event in jobs:
        uid = event["object"].get("metadata", {}).get("uid")
        if uid != whose:
            saved, reached, whose = 0, 0, uid
        progress = event["object"].get("status", {}).get("progress", {})
        step, total, newest_save = (progress.get(name) for name in ("step", "totalSteps", "lastCheckpointStep"))
        where = f"resource version {event['version']}: told step {step} of {total}, saved at {newest_save}"
        if newest_save is not None and newest_save < saved:
            yield f"{where}, and {saved} before"
        saved = max(saved, newest_save or 0)
        if step is None:
            continue
        if step < min(saved, reached):
            yield f"{where}, where {saved} was saved, and {reached} told"
        if total is not None and step > total:
            yield f"{where}, which is behind the last"
        reached = max(reached, step)


def judge_lateness(jobs, pods, outages, end):
    """What stays is told within LATE seconds, in which the API server could be asked."""
    for i, (_, begun, seen) in enumerate(pods.versions):
        ended = pods.versions[i + 1][1] if i + 1 < len(pods.versions) else end
        since = max([begun] + [back for back in outages if begun < back < ended])
        if ended - since < LATE:
            continue
        statuses = [event["object"].get("status", {}) for event in jobs if event["time"] <= since + LATE]
        if statuses and told(statuses[-1]) != seen["counts"]:
            yield f"for {ended - since:.0f} s there were {seen['counts']}, and told was {told(statuses[-1])}"


def judge(jobs, events, outages, end):
    """A line for each lie; at the times of `outages` the API server could not be asked, or not yet again."""
    pods = Pods(events)
    lies = []
    for event in jobs:
        why = judge_status(event["object"], pods, event["version"], event["time"])
        if why:
            lies.append(f"resource version {event['version']}: {why}")
    return lies + list(judge_progress(jobs)) + list(judge_lateness(jobs, pods, outages, end))


class Watch(threading.Thread):
    """All events of a type, over any number of outages. What vanished in one is told as deleted when it is listed anew."""

    def __init__(self, kind, namespace, selector):
        super().__init__(daemon=True)
        group, plural = TYPES[kind]
        self.path = f"/{group}/namespaces/{namespace}/{plural}?{selector}"
        self.events, self.outages, self.there = [], [], {}  # outages: when a stream had just ended
        self.stream = None

    def take(self, kind, thing):
        event = {"type": kind, "object": thing, "version": int(thing["metadata"]["resourceVersion"]), "time": time.monotonic()}
        name = thing["metadata"]["name"]
        if kind == "DELETED":
            self.there.pop(name, None)
        else:
            self.there[name] = thing
        self.events.append(event)
        return event["version"]

    def list(self):
        answer = subprocess.run(["kubectl", "get", "--raw", self.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                timeout=60, check=True)
        answer = json.loads(answer.stdout)
        version = int(answer["metadata"]["resourceVersion"])
        names = {thing["metadata"]["name"] for thing in answer["items"]}
        for name in set(self.there) - names:
            gone = json.loads(json.dumps(self.there[name]))
            gone["metadata"]["resourceVersion"] = str(version)
            self.take("DELETED", gone)
        for thing in answer["items"]:
            if self.there.get(thing["metadata"]["name"], {}).get("metadata", {}).get("resourceVersion") != thing["metadata"]["resourceVersion"]:
                self.take("ADDED", thing)
        return version

    def follow(self, version):
        """Until the stream ends, or the server knows nothing of that version any more."""
        path = f"{self.path}&watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        with subprocess.Popen(["kubectl", "get", "--raw", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as stream:
            self.stream = stream
            for line in stream.stdout:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    stream.kill()
                    return None
                thing = event["object"]
                version = int(thing["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    self.take(event["type"], thing)
        return version

    def run(self):
        version = None
        while True:
            try:
                version = self.follow(self.list() if version is None else version)
            except (subprocess.SubprocessError, ValueError, KeyError):
                version = None  # perhaps cut off within a line
            self.outages.append(time.monotonic())
            time.sleep(0.5)


def main():
    namespace, job = sys.argv[1:]
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    jobs = Watch("tj", namespace, f"fieldSelector=metadata.name%3D{job}")
    pods = Watch("pods", namespace, f"labelSelector=coxswain.dev/job-name%3D{job}")
    pods.start()
    jobs.start()
    while not over.wait(1):
        pass
    time.sleep(2)  # what is on its way of either
    statuses = [event for event in list(jobs.events) if event["type"] != "DELETED"]
    lies = judge(statuses, list(pods.events), sorted(jobs.outages + pods.outages), time.monotonic())
    for lie in lies:
        print(lie)
    print(f"{len(statuses)} statuses, {len(Pods(list(pods.events)).versions)} states of the pods, {len(lies)} lies", flush=True)
    for watch in (jobs, pods):
        if watch.stream:
            watch.stream.kill()
    os._exit(1 if lies or len(statuses) < 3 else 0)


if __name__ == "__main__":
    main()
