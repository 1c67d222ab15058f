#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random lives of jobs, many at a time, while everything the operator asks of the API server goes through tests/faultproxy
(cut, repeated, refused, late, malformed) and the operator itself is killed again and again, every other one with a Lease as
the chart runs it, which is taken away with it so that its successor need not wait. In each life pods are deleted,
processes die of SIGKILL, the job is suspended and resumed, in a random order; then it succeeds, its pods are deleted, and it
is deleted, or goes by itself when its ttlSecondsAfterFinished are over. Whatever happened, the rules of the contract hold: each disruption and each failure is counted once, no pod has had
its name twice, no index has two current pods unless one came late, no counter goes back, what is over stays over, nothing is
left behind, no job goes before its time. No operator ends by itself, unless it has lost its Lease and says so, as it may where it got no
processor, or no answer, for longer than the Lease allows; its successor is there at once, as a cluster would see to. How each
that did so ended is told, with the end of its log.

    BUILD=build tests/chaos/schedules.py        make schedules
    SCHEDULES=n          so many lives (200)
    SCHEDULES_LANES=n    so many at a time (40)
    SCHEDULES_SECONDS=n  begins no more after this time (1200), and fails when it has not begun all by then
    SCHEDULES_SEED=n     the same choices
    SCHEDULES_KEEP=dir   keeps all logs there; each operator has its own
    SCHEDULES_PATIENCE=n seconds for any one step of a life (240): an operator that lives for a few seconds gets little done in
                         them where a hundred other programs run
Prints ok/not ok lines (see tests/run).
"""
import calendar
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from plane import JOBS, PODS, Plane, wait_until  # noqa: E402

PATIENCE = int(os.environ.get("SCHEDULES_PATIENCE") or 240)
SCRIPT = "trap 'exit 0' USR1; while :; do sleep 1000 & wait $!; done"  # ends well when it is told to
OVER = ("Succeeded", "Failed")


class Broken(Exception):
    """The contract is."""


class World:
    """All jobs and pods, seen without the proxy, and what no single moment of any life may show."""

    def __init__(self, plane, killer):
        self.killer = killer
        self.promised = {}  # by job and incarnation: how many operators had been killed when a status first had it
        self.late = set()  # names of pods that came when nobody wanted them any longer
        self.jobs, self.pods = {}, {}  # by name; pods by job and name
        self.gone = {}  # jobs as they were last, by name
        self.uids = {}  # of pods, by name
        self.broken = []
        self.stirred = {}  # by job: set when something of it has changed
        plane.watch(JOBS, self.take_job)
        plane.watch(PODS, self.take_pod)

    def stir(self, job):
        event = self.stirred.get(job)
        if event:
            event.set()

    def take_job(self, kind, job):
        name = job["metadata"]["name"]
        self.take_job_of(name, kind, job)
        self.stir(name)

    def take_job_of(self, name, kind, job):
        if kind == "DELETED":
            self.check_time_to_live(name, job)
            self.gone[name] = self.jobs.pop(name, job)
            return
        before, now = self.jobs.get(name, {}).get("status", {}), job.get("status", {})
        for part, field in (("controllerState", "attempt"), ("controllerState", "incarnation"), ("restarts", "total")):
            was, count = before.get(part, {}).get(field, 0), now.get(part, {}).get(field, 0)
            if count < was:
                self.broken.append(f"{name}: {part}.{field} goes back from {was} to {count}")
        self.promised.setdefault((name, incarnation_told(now)), self.killer.kills)
        if state_of(before) in OVER and state_of(now) != state_of(before):
            self.broken.append(f"{name}: was {state_of(before)}, and is {state_of(now)}")
        self.jobs[name] = job

    def check_time_to_live(self, name, job):
        """Nobody but the operator deletes a job that has one."""
        lives, ended = job["spec"]["runPolicy"].get("ttlSecondsAfterFinished"), job.get("status", {}).get("completionTime")
        if lives is not None and (not ended or time.time() < seconds_of(ended) + lives):
            self.broken.append(f"{name}: is deleted before its time, having ended at {ended}")

    def take_pod(self, kind, pod):
        job = pod["metadata"]["labels"]["coxswain.dev/job-name"]
        self.take_pod_of(job, kind, pod)
        self.stir(job)

    def take_pod_of(self, job, kind, pod):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        pods = self.pods.setdefault(job, {})
        if name not in self.uids and self.comes_late(job, incarnation_of(pod)):
            self.late.add(name)
        if self.uids.setdefault(name, uid) != uid:
            self.broken.append(f"{name}: created twice")
        if kind == "DELETED":
            pods.pop(name, None)
            return
        pods[name] = pod
        same = [other for other in self.current(job)
                if index_of(other) == index_of(pod) and other["metadata"]["name"] not in self.late]
        if len(same) > 1:
            self.broken.append(f"{name}: not the only current pod of its index")

    def comes_late(self, job, incarnation):
        """A create that was on the wire when its operator was killed: its successor has promised a higher incarnation, or will."""
        kills = self.promised.get((job, incarnation), self.killer.kills)
        return incarnation < incarnation_told(self.status(job)) or kills < self.killer.kills

    def status(self, job):
        """That it had last, where it is gone."""
        return (self.jobs.get(job) or self.gone.get(job) or {}).get("status", {})

    def of(self, job):
        return list(self.pods.get(job, {}).values())

    def current(self, job):
        return [pod for pod in self.of(job) if pod["metadata"]["labels"].get("coxswain.dev/current") == "true"]


def seconds_of(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def index_of(pod):
    return int(pod["metadata"]["labels"]["coxswain.dev/index"])


def state_of(status):
    """The first condition that is True; None: none is."""
    return next((one["type"] for one in status.get("conditions", []) if one["status"] == "True"), None)


def incarnation_told(status):
    return status.get("controllerState", {}).get("incarnation", 0)


def incarnation_of(pod):
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])


def process_of(pod):
    """None: it does not run."""
    for container in pod.get("status", {}).get("containerStatuses", []):
        if "running" in container.get("state", {}):
            return int(container["containerID"].removeprefix("process://"))
    return None


def listens(process):
    """Whether the script has set its trap."""
    try:
        with open(f"/proc/{process}/status", encoding="utf-8") as file:
            caught = next(line for line in file if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1)
    except (OSError, TypeError):
        return False


def is_alive(pod):
    return pod.get("status", {}).get("phase") not in OVER


class Life:
    """One job's."""

    def __init__(self, plane, world, number, seed):
        self.plane, self.world, self.name = plane, world, f"life-{number}"
        self.stirred = world.stirred[self.name] = threading.Event()
        self.draw = random.Random(seed * 1000003 + number)
        self.workers = self.draw.randint(1, 3)
        self.starts_over = self.draw.random() < 0.3
        self.time_to_live = self.draw.choice((1, 2, 4)) if self.draw.random() < 0.25 else None
        self.expected = {"disruptions": 0, "failures": 0, "attempt": 1}

    def await_(self, condition, why, pause=0.5):
        """Looks again when something of this job has changed, and after each pause, for what no watch tells."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise Broken(f"{why}: {self.counts()}, expected {self.expected}, state {state_of(self.world.status(self.name))}")
            self.stirred.wait(pause)
            self.stirred.clear()

    def counts(self):
        status = self.world.status(self.name)
        restarts = status.get("restarts", {})
        return {"disruptions": restarts.get("disruptions", 0), "failures": restarts.get("failures", 0),
                "attempt": status.get("controllerState", {}).get("attempt", 0)}

    def is_counted(self):
        return self.counts() == self.expected

    def is_state(self, state):
        return state_of(self.world.status(self.name)) == state

    def settle(self):
        self.await_(self.is_counted, "counts")
        self.await_(lambda: self.is_state("Running"), "does not run")

    def member(self, index):
        newest = [pod for pod in self.world.current(self.name) if index_of(pod) == index]
        return newest[-1] if newest else None

    def process(self, index):
        pod = self.member(index)
        return process_of(pod) if pod else None

    def signal(self, index, number):
        """Whether it was sent: the watch of the pods may still show one that is gone."""
        process = self.process(index)
        try:
            if process:
                os.kill(process, number)
            return bool(process)
        except ProcessLookupError:
            return False

    def create(self):
        template = {"spec": {"containers": [{"name": "trainer", "readinessProbe": None,
                                             "command": ["/bin/sh", "-c", SCRIPT]}]}}
        policy = {"backoffLimit": 100, "cleanPodPolicy": "None", "restartScope": "Job" if self.starts_over else "Auto"}
        if self.time_to_live is not None:
            policy["ttlSecondsAfterFinished"] = self.time_to_live
        status, answer = self.plane.ask("POST", JOBS, {
            "apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingJob", "metadata": {"name": self.name},
            "spec": {"workers": {"replicas": self.workers, "template": template},
                     "runPolicy": policy,
                     "coxswain": {"strategy": {"type": "MultiWorkerMirrored"},
                                  "model": {"preset": "mlp"}, "data": {"format": "Synthetic", "examples": 1000},
                                  "training": {"steps": 10, "batchSize": 100,
                                               "optimizer": {"type": "SGD", "learningRate": 0.1}}}}})
        if status != 201:
            raise Broken(f"cannot be created: {answer}")

    def suspend(self, suspended):
        self.plane.ask("PATCH", f"{JOBS}/{self.name}", {"spec": {"suspend": suspended}})

    def delete_pod(self, pod):
        self.plane.ask("DELETE", f"{PODS}/{pod['metadata']['name']}")

    def lose_pod(self):
        index = self.draw.randrange(self.workers)
        self.await_(lambda: self.member(index), f"worker {index} is not there")
        self.delete_pod(self.member(index))
        self.expected["disruptions"] += 1
        self.expected["attempt"] += self.starts_over

    def lose_process(self):
        index = self.draw.randrange(self.workers)
        self.await_(lambda: self.signal(index, signal.SIGKILL), f"worker {index} is no process")
        self.expected["failures"] += 1
        self.expected["attempt"] += self.starts_over

    def pause(self):
        self.suspend(True)
        self.await_(lambda: self.is_state("Suspended") and self.is_suspended(), "is not suspended")
        # Asked for, since the two watches may be a moment apart.
        _, pods = self.plane.ask("GET", f"{PODS}?labelSelector=coxswain.dev/job-name%3D{self.name}")
        alive = [pod["metadata"]["name"] for pod in pods["items"] if is_alive(pod)]
        if alive:
            raise Broken(f"is Suspended, and lives: {alive}")
        self.suspend(False)
        self.expected["attempt"] += 1

    def is_suspended(self):
        conditions = self.world.status(self.name).get("conditions", [])
        return any(c["type"] == "Suspended" and c["status"] == "True" for c in conditions)

    def current(self):
        """Indices, of which the watch of the pods may tell a moment after that of the jobs."""
        return sorted(index_of(pod) for pod in self.world.current(self.name))

    def disturb(self):
        self.draw.choice((self.lose_pod, self.lose_process, self.pause))()
        self.settle()
        self.await_(lambda: self.current() == list(range(self.workers)), "not each index has its current pod")

    def succeed(self):
        self.await_(lambda: all(listens(self.process(i)) for i in range(self.workers)), "not every worker is a process", 0.05)
        for index in range(self.workers):
            self.signal(index, signal.SIGUSR1)
        self.await_(lambda: self.is_state("Succeeded"), "does not succeed")
        self.await_(self.is_counted, "counts at the end")

    def pass_away(self):
        self.await_(lambda: self.name not in self.world.jobs, "does not go when its time is over")

    def be_deleted(self):
        before = self.world.of(self.name)
        for pod in before:
            self.delete_pod(pod)
        names = {pod["metadata"]["name"] for pod in before}
        self.await_(lambda: not names & {pod["metadata"]["name"] for pod in self.world.of(self.name)}, "pods stay")
        time.sleep(1)
        if not self.is_state("Succeeded") or self.world.of(self.name):
            raise Broken(f"it is not over for good: {[pod['metadata']['name'] for pod in self.world.of(self.name)]}")
        self.plane.ask("DELETE", f"{JOBS}/{self.name}")

    def vanish(self):
        if self.time_to_live is None:
            self.be_deleted()
        else:
            self.pass_away()
        self.await_(lambda: not self.world.of(self.name), "pods are left")
        del self.world.stirred[self.name]

    def live(self):
        self.create()
        self.settle()
        for _ in range(self.draw.randrange(4)):
            self.disturb()
        self.succeed()
        self.vanish()


LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/coxswain-operator"
LEADING = ("--leader-elect", "--lease-namespace", "default")


LOST_LEASE = 1  # the exit code
LAST_LINES = 12


class Killer(threading.Thread):
    """Starts operators, each with a log of its own, and kills each after a while."""

    def __init__(self, plane, binaries, directory, seed):
        super().__init__(daemon=True)
        self.plane = plane
        self.command = [os.path.join(binaries, "coxswain-operator"), "--kubeconfig", os.path.join(directory, "faulty")]
        self.draw, self.over, self.kills = random.Random(seed), threading.Event(), 0
        self.unasked, self.lost = [], []  # how operators ended by themselves; those of them that had lost their Lease
        self.logs = os.path.join(directory, "operators")
        os.mkdir(self.logs)

    def run(self):
        while not self.over.is_set():
            self.live_once(self.kills % 2 == 1)

    def live_once(self, leads):
        path = os.path.join(self.logs, f"{self.kills}.log")
        with open(path, "wb") as log:
            operator = subprocess.Popen([*self.command, *(LEADING if leads else ())], stdout=log, stderr=log)
        end = time.monotonic() + self.draw.uniform(3, 15)
        while operator.poll() is None and time.monotonic() < end and not self.over.wait(0.1):
            pass
        if operator.poll() is not None:
            self.note_end(operator.returncode, leads, path)
        self.kills += 1
        operator.kill()
        operator.wait()
        if leads:
            self.plane.ask("DELETE", LEASE)

    def note_end(self, code, leads, path):
        with open(path, encoding="utf-8", errors="replace") as log:
            lines = log.read().splitlines()
        how = f"operator {self.kills} ended by itself with exit code {code}"
        say("\n".join(f"# {line}" for line in [f"{how}; its log ends:", *lines[-LAST_LINES:]]))
        lost = leads and code == LOST_LEASE and any("the lease is lost" in line for line in lines)
        (self.lost if lost else self.unasked).append(how)


def setting(name, standard):
    return int(os.environ.get(name) or standard)


def say(text):
    """In one piece: many threads do."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def report(name, why=None):
    say(f"not ok {name}: {why}" if why else f"ok {name}")


def lane(plane, world, numbers, seed, end):
    while time.monotonic() < end and not world.broken:
        try:
            number = numbers.pop()
        except IndexError:
            return
        try:
            Life(plane, world, number, seed).live()
            report(f"life {number}")
        except Broken as broken:
            report(f"life {number} (SCHEDULES_SEED={seed})", str(broken))
        except Exception as error:  # pylint: disable=broad-except
            report(f"life {number} (SCHEDULES_SEED={seed})", repr(error))


def run_lives(plane, seed, killer):
    world = World(plane, killer)
    wanted, seconds = setting("SCHEDULES", 200), setting("SCHEDULES_SECONDS", 1200)
    numbers = list(reversed(range(wanted)))
    end = time.monotonic() + seconds
    lanes = [threading.Thread(target=lane, args=(plane, world, numbers, seed, end), daemon=True)
             for _ in range(setting("SCHEDULES_LANES", 40))]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    lived = wanted - len(numbers)
    report(f"{lived} of {wanted} lives were begun", None if lived == wanted else
           f"{len(numbers)} were not; SCHEDULES_SECONDS={seconds} was too short, or the contract was broken")
    report("no moment broke the contract", "; ".join(world.broken[:5]))


def write_rules(root):
    """The API server answers as badly as in tests/integration, cutting 5 % and refusing 3 % each way."""
    script = '. "$1"/tests/integration/faulty.sh && faulty_rules 0.05 0.03'
    with open("rules.json", "w", encoding="utf-8") as file:
        subprocess.run(["bash", "-c", script, "rules", root], stdout=file, check=True)


def main():
    binaries = os.path.abspath(os.environ["BUILD"])
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    seed = setting("SCHEDULES_SEED", random.randrange(1, 1 << 16))
    directory = tempfile.mkdtemp()
    os.chdir(directory)
    say(f"# SCHEDULES_SEED={seed}")
    write_rules(root)
    plane = Plane(binaries, root, directory)
    proxy = subprocess.Popen([os.path.join(binaries, "tests/faultproxy"), "--kubeconfig", plane.kubeconfig, "--rules",
                              "rules.json", "--seed", str(seed), "--out", "faulty"], stderr=subprocess.DEVNULL)
    killer = Killer(plane, binaries, directory, seed)
    try:
        wait_until(lambda: os.path.exists("faulty"), 60)
        killer.start()
        run_lives(plane, seed, killer)
        report("no operator fell but by the kills, or without its Lease", "; ".join(killer.unasked))
        say(f"# {killer.kills} operators killed, {len(killer.lost)} of them too late: they had lost their Lease")
    finally:
        killer.over.set()
        if killer.is_alive():
            killer.join()
        proxy.kill()
        plane.end()
        keep = os.environ.get("SCHEDULES_KEEP")
        if keep:
            shutil.copytree(directory, keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("state"))
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
