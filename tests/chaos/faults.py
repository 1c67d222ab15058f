# SPDX-License-Identifier: Apache-2.0
"""Ways to disturb a crew. Each is a function of a disturbance (the crew's, with a random source of its own) and a victim."""
import ctypes
import dataclasses
import os
import signal
import time
from typing import Callable

DEATH = 5.0  # seconds of silence after which a member is given up
COUNTS = {"silent": 1500, "again": 1500, "half": 600, "garbage": 300, "replay": 100}  # strangers at each port
SYSCALL_PIDFD_GETFD = 438
libc = ctypes.CDLL(None, use_errno=True)


def kill(disturbance, victim):
    victim.send(signal.SIGKILL)


def kill_in_save(disturbance, victim):
    """As soon as a save is under way. Some saves are shorter than our look, so it is not waited for without end."""
    end = time.monotonic() + 1.5
    while time.monotonic() < end and victim.runs and not disturbance.crew.is_saving():
        time.sleep(0.0002)
    time.sleep(disturbance.random.random() * 0.002)
    victim.send(signal.SIGKILL)


def kill_among_strangers(kind):
    """Strangers connect to every port of every member, also of those that come later. Once they are there a member is killed; they
    stay for some seconds more, whatever else is done to the crew."""
    def strike(disturbance, victim):
        disturbance.invite_strangers(kind, COUNTS[kind])
        victim.send(signal.SIGKILL)
    return strike


def terminate(disturbance, victim):
    victim.send(signal.SIGTERM)


def drain(disturbance, victim):
    """Several are asked to leave at once, as when a node is drained; at times all of them."""
    others = [p for p in disturbance.crew.running() if p is not victim]
    disturbance.random.shuffle(others)
    for process in [victim, *others[:disturbance.random.randint(1, max(1, len(others)))]]:
        process.send(signal.SIGTERM)


def pause(disturbance, victim):
    """Shorter than the deadline: all wait."""
    victim.freeze()
    disturbance.rest(0.5 + disturbance.random.random())
    victim.thaw()


def freeze(disturbance, victim):
    """For longer than the deadline; then it returns. It finds its generation refused, or nobody has missed it."""
    victim.freeze()
    disturbance.rest(DEATH + 1 + 2 * disturbance.random.random())
    victim.thaw()


def replace_frozen(disturbance, victim):
    """Its successor is there before it returns: it must leave, and have spoilt nothing. Nobody succeeds it where the others have
    finished the run meanwhile; then it hears of that, and ends well."""
    victim.freeze()
    disturbance.rest(DEATH + 1)
    if not disturbance.done:
        disturbance.crew.supersede(victim)
        disturbance.rest(2 + 2 * disturbance.random.random())
    victim.thaw()


def connections(process):
    """[(descriptor, address of the other end)] of the established TCP connections to other members."""
    ends = {}
    with open(f"/proc/{process}/net/tcp") as file:
        for line in file.readlines()[1:]:
            words = line.split()
            if words[3] == "01" and not words[1].endswith(":1F90"):
                ends[f"socket:[{words[9]}]"] = ".".join(str(byte) for byte in reversed(bytes.fromhex(words[2][:8])))
    found = []
    for number in os.listdir(f"/proc/{process}/fd"):
        try:
            inode = os.readlink(f"/proc/{process}/fd/{number}")
        except FileNotFoundError:
            continue
        if inode in ends:
            found.append((int(number), ends[inode]))
    return found


def cut(disturbance, victim):
    """One of its connections to others breaks under both ends."""
    try:
        handle = os.pidfd_open(victim.child.pid)
        candidates = connections(victim.child.pid)
    except (OSError, AttributeError):
        return
    if candidates:
        descriptor, other_end = disturbance.random.choice(candidates)
        number = libc.syscall(SYSCALL_PIDFD_GETFD, handle, descriptor, 0)
        if number >= 0:
            for process in disturbance.crew.processes:
                if process is victim or process.address == other_end:
                    process.cuts.append(time.monotonic())
            libc.shutdown(number, 2)
            os.close(number)
    os.close(handle)


def scale(disturbance, _):
    """To another number of workers, as `kubectl scale` does it: others join, or those with the highest indices are asked to leave."""
    least, most = disturbance.arrangement.elastic
    there = disturbance.crew.size("worker")
    disturbance.crew.scale("worker", disturbance.random.choice([n for n in range(least, most + 1) if n != there]))


def spoil(*rules):
    """The bucket's answers are spoilt for a second or two."""
    def strike(disturbance, _):
        disturbance.crew.bucket.spoil(list(rules))
        disturbance.rest(1 + disturbance.random.random())
        disturbance.crew.bucket.spoil([])
    return strike


@dataclasses.dataclass(frozen=True)
class Fault:
    strike: Callable
    share: float
    kills: bool = False  # it is a SIGKILL
    needs_several: bool = False
    needs_elastic: bool = False
    needs_bucket: bool = False


FAULTS = {
    "kill": Fault(kill, 70, kills=True),
    "kill in a save": Fault(kill_in_save, 15, kills=True),
    "kill, silent strangers": Fault(kill_among_strangers("silent"), 3, kills=True),
    "kill, strangers again": Fault(kill_among_strangers("again"), 3, kills=True),
    "kill, half handshakes": Fault(kill_among_strangers("half"), 3, kills=True),
    "kill, garbage": Fault(kill_among_strangers("garbage"), 3, kills=True),
    "kill, replays": Fault(kill_among_strangers("replay"), 3, kills=True),
    "SIGTERM": Fault(terminate, 8),
    "cut": Fault(cut, 8, needs_several=True),
    "pause": Fault(pause, 2),
    "freeze": Fault(freeze, 1.5),
    "frozen, replaced": Fault(replace_frozen, 1.5),
    "drain": Fault(drain, 3, needs_several=True),
    "scale": Fault(scale, 20, needs_elastic=True),
    "bucket 503": Fault(spoil({"fault": "status", "status": 503, "every": 2}), 8, needs_bucket=True),
    "bucket cut": Fault(spoil({"method": "PUT", "fault": "cut-request", "every": 3}, {"method": "GET", "fault": "cut-answer", "every": 3}), 8,
                        needs_bucket=True),
    "bucket silent": Fault(spoil({"method": "PUT", "fault": "lose-answer", "every": 2}, {"method": "POST", "fault": "lose-answer", "every": 2}), 8,
                           needs_bucket=True),
}


def choose(names):
    """{name: fault} of those that are listed, "drain; frozen, replaced"; all of them for an empty list."""
    listed = [name.strip() for name in names.split(";") if name.strip()]
    unknown = [name for name in listed if name not in FAULTS]
    if unknown:
        raise SystemExit(f"CHAOS_FAULTS: there is no fault {unknown[0]!r}; there are: {'; '.join(FAULTS)}")
    return {name: FAULTS[name] for name in listed or FAULTS}
