# SPDX-License-Identifier: Apache-2.0
"""A crew of real workers under a very small operator: each process has an address of its own, successors get a higher incarnation
and another address, and names follow them (COXSWAIN_HOSTS_FILE)."""
import http.client
import itertools
import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

from bucket import Folder

# Exit codes after which a successor takes the worker's place (docs/worker.md, exit codes). -SIGTERM: it
# was asked to leave before it could handle the signal.
REPLACED = {-signal.SIGKILL, -signal.SIGTERM, 138, 143, 160, 162, 163}
COMPLETE = "this job is complete: its last checkpoint is of the final step"  # who had not begun before the others were done
SAVING = re.compile(r"^\.(saving|part)-")
COMMITTED = re.compile(r"^step-(\d+)\.")


class Process:
    """One incarnation of a member."""

    def __init__(self, role, index, incarnation, child, log, address=None):
        self.role, self.index, self.incarnation, self.child, self.log, self.address = role, index, incarnation, child, log, address
        self.started = time.monotonic()
        self.ended = None
        self.code = None
        self.frozen = []  # [from, to] each time
        self.killed = math.inf  # since then; its end is seen later, and others may go on before
        self.asked = False  # to leave
        self.cuts = []  # when a connection of it was broken
        self.superseded = False  # somebody else has its seat
        self.dismissed = False  # its seat is there no more

    @property
    def name(self):
        return f"{self.role}-{self.index}-{self.incarnation}"

    @property
    def runs(self):
        return self.code is None

    @property
    def is_frozen(self):
        return bool(self.frozen) and self.frozen[-1][1] is None

    def send(self, number):
        if self.runs:
            if number == signal.SIGKILL:
                self.killed = min(self.killed, time.monotonic())
            if number == signal.SIGTERM and self.asked:
                return  # a second time would be a kill (docs/worker.md)
            self.asked |= number == signal.SIGTERM
            os.kill(self.child.pid, number)

    def freeze(self):
        self.send(signal.SIGSTOP)
        self.frozen.append([time.monotonic(), None])

    def thaw(self):
        self.send(signal.SIGCONT)
        self.frozen[-1][1] = time.monotonic()

    def lived_through(self, start, end):
        awake = all(stop is not None and stop < start or begin > end for begin, stop in self.frozen)
        return self.started < start and (self.ended is None or self.ended > end) and self.killed > end and awake


    def was_cut_off(self, start, end):
        """Whether it may have lost its connection to the chief, who goes on without it where the crew is elastic. That is heard of a
        little later."""
        return any(start - HEARD <= moment <= end for moment in self.cuts)


HEARD = 5  # seconds
PORTS = (2222, 2223, 8080)  # control, data, status
HEALTH_SECONDS = 5  # for the answer to a liveness probe
NETWORKS = range(128, 248)  # 127.N.0.0: a crew's own


def claim_network(first):
    """A network that no other crew on this machine has, and what holds it: crews of other runs look there, too."""
    for number in range(len(NETWORKS)):
        network = NETWORKS[(first + number) % len(NETWORKS)]
        claim = socket.socket()
        try:
            claim.bind((f"127.{network}.255.254", 2221))
            return network, claim
        except OSError:
            claim.close()
    raise RuntimeError(f"none of the networks 127.{NETWORKS[0]}.0.0 to 127.{NETWORKS[-1]}.0.0 is free")


class Nodes:
    """Machines, as far as a process can tell: each has a boot id and shared memory of its own."""

    BOOT_ID = "/proc/sys/kernel/random/boot_id"
    MOUNT = 'mount --bind "$1" /dev/shm && mount --bind "$2" ' + BOOT_ID + ' && shift 2 && exec "$@"'

    def __init__(self, count, directory):
        self.shared = tempfile.mkdtemp(prefix="nodes-", dir="/dev/shm")
        self.nodes = []
        for number in range(count):
            memory, boot = os.path.join(self.shared, str(number)), os.path.join(directory, f"boot-id-{number}")
            os.mkdir(memory)
            with open(boot, "w") as file:
                file.write(f"{uuid.uuid4()}\n")
            self.nodes.append((memory, boot))

    @classmethod
    def can_be_had(cls):
        trial = ["unshare", "--mount", "sh", "-c", cls.MOUNT, "sh", "/dev/shm", cls.BOOT_ID, "true"]
        return shutil.which("unshare") is not None and subprocess.run(
            trial, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def command(self, number):
        """What starts a process there."""
        return ["unshare", "--mount", "sh", "-c", self.MOUNT, "sh", *self.nodes[number % len(self.nodes)]]

    def end(self):
        shutil.rmtree(self.shared, ignore_errors=True)


class Strangers:
    """Who connects to every port of a crew and does not belong to it: a process of tests/integration/strangers.py."""

    PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration", "strangers.py")

    def __init__(self, kind, count, addresses, said):
        self.said = said  # a file
        targets = [f"{address}:{port}" for address in addresses for port in PORTS]
        with open(said, "w") as file:
            self.child = subprocess.Popen([sys.executable, self.PROGRAM, kind, str(count)], stdin=subprocess.PIPE, stdout=file,
                                          text=True)
        self.add(targets)

    def add(self, targets):
        self.child.stdin.write("".join(f"{target}\n" for target in targets))
        self.child.stdin.flush()

    def are_there(self):
        return os.path.getsize(self.said) > 0

    def end(self):
        """{port: (connections, bytes)} of what they did."""
        self.child.send_signal(signal.SIGTERM)
        self.child.communicate()
        with open(self.said) as file:
            lines = [list(map(int, line.split())) for line in file if line[0].isdigit()]
        return {port: (connections, sent) for port, connections, sent in lines}


def make_certificate(directory):
    """What the operator mounts where spec.coxswain.encryption.type is TLS."""
    key, certificate = (os.path.join(directory, name) for name in ("key.pem", "certificate.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=crew.coxswain", "-addext", "subjectAltName=DNS:crew.coxswain", "-keyout", key, "-out", certificate],
                   check=True, stderr=subprocess.DEVNULL)
    with open(os.path.join(directory, "even.pem"), "w") as file:
        file.write("from 0\n" + "".join(open(path).read() for path in (certificate, key)))


class Crew:
    """`encrypted`: it speaks TLS under a certificate, as with encryption type TLS. All crews have a key. `program`: what its model is
    (program.py), if that is a program. `server`: of the bucket (bucket.py) where its checkpoints are, if that is not the disk."""

    def __init__(self, worker, job, directory, number, first_incarnation=0, nodes=0, encrypted=False, program=None, server=None):
        self.worker, self.job, self.directory = worker, job, directory
        self.network, self.claim = claim_network(os.getpid() + number)
        self.addresses = itertools.count(1)
        self.incarnations = itertools.count(first_incarnation)
        self.processes = []
        self.failures = []
        self.hosts = {}
        os.makedirs(os.path.join(directory, "runs"))
        self.record = os.path.join(directory, "record")
        open(self.record, "w").close()
        self.checkpoints = os.path.join(directory, "runs", "checkpoints")
        self.nodes = Nodes(nodes, directory) if nodes else None
        self.bucket = Folder(server, directory) if server else None
        self.strangers = None
        self.security = self.make_secrets(encrypted)
        self.plugin = {"COXSWAIN_PJRT_PLUGIN": program.plugin} if program else {}
        if program:
            shutil.copytree(program.folder, os.path.join(directory, "runs", "program"))
        self.setpriv = [shutil.which("setpriv"), "--pdeathsig", "KILL"] if shutil.which("setpriv") else []

    def make_secrets(self, encrypted):
        """What tells a process about them."""
        key = os.path.join(self.directory, "crew.key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        if not encrypted:
            return {"COXSWAIN_CREW_KEY_FILE": key}
        certificates = os.path.join(self.directory, "tls")
        os.mkdir(certificates)
        make_certificate(certificates)
        return {"COXSWAIN_CREW_KEY_FILE": key, "COXSWAIN_CREW_TLS_DIR": certificates}

    def invite_strangers(self, kind, count):
        self.strangers = Strangers(kind, count, [p.address for p in self.members() if p.runs],
                                   os.path.join(self.directory, "strangers"))

    def roles(self):
        return self.job.get("crew", {}).get("roles", [{"name": "worker", "count": 1}])

    def seats(self):
        return [(role["name"], index) for role in self.roles() for index in range(role["count"])]

    def size(self, role):
        return sum(name == role for name, _ in self.seats())

    def scale(self, name, count):
        """Newcomers get the seats that are new; who has one beyond is asked to leave, and nobody succeeds it."""
        role = next(role for role in self.roles() if role["name"] == name)
        former, role["count"] = role["count"], count
        if name == "worker":
            self.job["workers"] = {"replicas": count}
        for index in range(former, count):
            self.spawn(name, index)
        for index in range(count, former):
            for process in self.processes:
                if (process.role, process.index) == (name, index):
                    process.dismissed = True
                    process.send(signal.SIGTERM)

    @property
    def chief(self):
        return ("chief", 0) if ("chief", 0) in self.seats() else ("worker", 0)

    def start(self):
        for role, index in self.seats():
            self.spawn(role, index)

    def write_hosts(self):
        path = os.path.join(self.directory, "hosts")
        with open(path + ".new", "w") as file:
            file.writelines(f"{address} {name}\n" for name, address in self.hosts.items())
        os.replace(path + ".new", path)

    def spawn(self, role, index):
        number, incarnation = next(self.addresses), next(self.incarnations)
        address = f"127.{self.network}.{number // 250}.{number % 250 + 1}"
        self.hosts[f"{role}-{index}"] = address
        self.write_hosts()
        environment = {
            "PATH": os.environ["PATH"], "COXSWAIN_JOB": json.dumps(self.job), "COXSWAIN_JOB_UID": "chaos",
            "COXSWAIN_ATTEMPT": "1", "COXSWAIN_INCARNATION": str(incarnation), "COXSWAIN_ROLE": role, "COXSWAIN_INDEX": str(index),
            "COXSWAIN_POD_IP": address, "COXSWAIN_HOSTS_FILE": os.path.join(self.directory, "hosts"),
            "COXSWAIN_STORAGE": "runs=" + os.path.join(self.directory, "runs"), "COXSWAIN_THREADS": "1",
            "COXSWAIN_RECORD": self.record, **self.security, **self.plugin, **(self.bucket.environment(incarnation) if self.bucket else {}),
            "COXSWAIN_TERMINATION_LOG": os.path.join(self.directory, f"termination-{incarnation}"),
        }
        log = os.path.join(self.directory, f"{role}-{index}-{incarnation}.log")
        with open(log, "wb") as file:
            there = self.nodes.command(incarnation) if self.nodes else []  # a successor is on another one than whom it succeeds
            child = subprocess.Popen([*self.setpriv, *there, self.worker], env=environment, stdout=file, stderr=file)
        process = Process(role, index, incarnation, child, log, address)
        self.processes.append(process)
        if self.strangers:
            self.strangers.add([f"{address}:{port}" for port in PORTS])
        return process

    def current(self, role, index):
        """The one whose seat it is."""
        return next(p for p in reversed(self.processes) if (p.role, p.index) == (role, index))

    def members(self):
        return [self.current(*seat) for seat in self.seats()]

    def running(self):
        return [p for p in self.members() if p.runs and not p.is_frozen]

    def look(self, replace=True):
        """Takes in who has ended; starts the successors of those who need one. True once the chief is done."""
        for process in self.processes:
            if process.runs and process.child.poll() is not None:
                process.code, process.ended = process.child.returncode, time.monotonic()
                self.judge(process, replace)
        return self.current(*self.chief).code == 0

    def judge(self, process, replace):
        if process.code not in REPLACED | {0}:
            self.failures.append(f"{process.name} ended with {process.code}: {self.last_words(process)}")
        elif process.superseded and process.role not in ("evaluator", "ps") and process.code not in REPLACED \
                and not (process.code == 0 and COMPLETE in self.last_words(process)):
            self.failures.append(f"{process.name}, superseded, ended with {process.code}: {self.last_words(process)}")
        elif replace and process.code != 0 and not process.superseded and not process.dismissed:
            self.spawn(process.role, process.index)

    def ask_for_health(self, process):
        """A node's liveness probe. It comes from another address than strangers, of which the port lets in only so many each."""
        connection = http.client.HTTPConnection(process.address, 8080, timeout=HEALTH_SECONDS, source_address=("127.0.0.2", 0))
        try:
            connection.request("GET", "/healthz/live")
            answer = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            answer = repr(error)
        connection.close()
        if answer != 200 and process.child.poll() is None:
            self.failures.append(f"{process.name} answered a liveness probe among strangers with {answer}")

    def supersede(self, process):
        process.superseded = True
        return self.spawn(process.role, process.index)

    def is_saving(self):
        return self.bucket.is_uploading() if self.bucket else self.matching(SAVING)

    def matching(self, pattern):
        try:
            return [match for match in map(pattern.match, os.listdir(self.checkpoints)) if match]
        except FileNotFoundError:
            return []

    def newest_committed(self):
        if self.bucket:
            return self.bucket.newest_committed()
        return max((int(match.group(1)) for match in self.matching(COMMITTED)), default=0)

    def last_words(self, process, lines=1):
        with open(process.log, errors="replace") as file:
            return " | ".join(line.strip() for line in file.readlines()[-lines:])

    def logs_of(self, process):
        with open(process.log, errors="replace") as file:
            yield from file

    def logs(self):
        return itertools.chain.from_iterable(map(self.logs_of, self.processes))

    def chief_logs(self):
        return itertools.chain.from_iterable(self.logs_of(p) for p in self.processes if (p.role, p.index) == self.chief)

    def weights(self):
        with open(os.path.join(self.directory, "runs", "model.safetensors"), "rb") as file:
            return file.read()

    def end(self):
        """Kills whoever is left."""
        if self.strangers:
            self.strangers.end()
            self.strangers = None
        for process in self.processes:
            if process.runs:
                process.child.kill()
                process.child.wait()
                process.code, process.ended = process.child.returncode, time.monotonic()
        if self.nodes:
            self.nodes.end()
        if self.bucket:
            self.bucket.end()
