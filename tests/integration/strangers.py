#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connects to ports as strangers do, COUNT times at each, and stays until it is terminated.

    strangers.py KIND COUNT [HOST:PORT ...]

    silent   connections that say nothing; one that the other side closes is not made anew
    again    likewise, but made anew at once
    half     a TLS ClientHello, or the beginning of what a member would say, and then nothing
    garbage  random bytes
    replay   what members have said to the same port number when they connected; needs root, since it listens to the loopback interface

Connections of the last three are made anew when the other side closes them. Further HOST:PORT may come on standard input (a
pipe), one a line; strangers leave when it ends. A port where nobody listens yet is tried until somebody does.

Prints "connected" once there have been COUNT connections to each port of the command line, and to each other one where somebody
listens. When it is terminated
(SIGTERM), prints a line "PORT CONNECTIONS BYTES" for each port number: how many connections were accepted, and how many bytes
were sent on them.
"""
import collections
import errno
import os
import random
import resource
import select
import signal
import socket
import ssl
import sys
import time

KINDS = ("silent", "again", "half", "garbage", "replay")
PAUSE = 0.02  # seconds, between tries of a port where nobody listens
AT_ONCE = 64  # connections to one port before others have their turn
RECORDING_MAX = 16384  # bytes
BEGINNINGS = {2222: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 2223: b"CXG2" + bytes(100), 8080: b"GET /status HTTP/1.1\r\nHost: "}


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="crew.coxswain").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Recorder:
    """Records what callers say first, by the port number that they call: a man at the wire of the loopback interface."""

    def __init__(self, is_ours):
        self.is_ours = is_ours  # whether a local port is a stranger's
        self.hosts = set()
        self.flows = {}  # (source, port, destination, port): [next sequence number, bytes]
        self.said = collections.defaultdict(lambda: collections.deque(maxlen=50))  # port: [recording]
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.socket.bind(("lo", 0x0800))
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)

    def listen(self):
        for _ in range(10000):
            try:
                packet, (_, _, kind, _, _) = self.socket.recvfrom(RECORDING_MAX)
            except BlockingIOError:
                return
            if kind == socket.PACKET_OUTGOING and packet[9] == socket.IPPROTO_TCP and packet[16:20] in self.hosts:
                self.take(packet[12:20], packet[4 * (packet[0] & 15):])

    def take(self, addresses, segment):
        flow = addresses + segment[:4]
        number, syn, end = int.from_bytes(segment[4:8], "big"), segment[13] & 2, segment[13] & 5
        if syn and not self.is_ours(int.from_bytes(segment[:2], "big")):
            recording = bytearray()
            self.flows[flow] = [(number + 1) % 2**32, recording]
            self.said[int.from_bytes(segment[2:4], "big")].append(recording)
        elif flow in self.flows:
            expected, recording = self.flows[flow]
            payload = segment[4 * (segment[12] >> 4):]
            if number == expected:
                recording += payload
                self.flows[flow][0] = (number + len(payload)) % 2**32
            if end or len(recording) >= RECORDING_MAX or number > expected:
                del self.flows[flow]

    def recording(self, port):
        whole = [recording for recording in self.said[port] if recording]
        return bytes(random.choice(whole)) if whole else None


class Port:
    def __init__(self, target, awaited):
        host, port = target.rsplit(":", 1)
        self.host, self.number, self.awaited = host, int(port), awaited
        self.open = self.accepted = 0
        self.answers = False  # somebody listens there
        self.next_try = 0.0


class Crowd:
    def __init__(self, kind, count):
        self.kind, self.count = kind, count
        self.watch = select.epoll()
        self.strangers = {}  # descriptor: [socket, port, accepted]
        self.ports, self.sources = [], set()
        self.totals = collections.defaultdict(lambda: [0, 0])  # port number: [connections, bytes]
        self.recorder = None
        if kind == "replay":
            self.recorder = Recorder(self.sources.__contains__)
            self.watch.register(self.recorder.socket, select.EPOLLIN)
        self.hello = client_hello()

    def add(self, target, awaited=False):
        port = Port(target, awaited)
        self.ports.append(port)
        if self.recorder:
            self.recorder.hosts.add(socket.inet_aton(port.host))

    def words(self, number):
        """What a stranger says to that port."""
        if self.kind == "half":
            return random.choice([self.hello, BEGINNINGS.get(number, self.hello)])
        if self.kind == "garbage":
            return random.randbytes(random.choice([1, 16, 300, 4000]))
        if self.kind == "replay":
            return self.recorder.recording(number)
        return b""

    def wants(self, port):
        if not port.answers:
            return port.open == 0 and time.monotonic() >= port.next_try
        if self.kind == "silent" and port.accepted >= self.count:
            return False
        return port.open < self.count and (self.kind != "replay" or self.recorder.recording(port.number) is not None)

    def connect(self, port):
        stranger = socket.socket()
        stranger.setblocking(False)
        if self.recorder:
            stranger.bind(("127.0.0.1", 0))
            self.sources.add(stranger.getsockname()[1])
        port.open += 1
        self.strangers[stranger.fileno()] = [stranger, port, False]
        if stranger.connect_ex((port.host, port.number)) not in (0, errno.EINPROGRESS):
            return self.lose(stranger.fileno())
        return self.watch.register(stranger.fileno(), select.EPOLLOUT | select.EPOLLRDHUP)

    def lose(self, descriptor):
        stranger, port, accepted = self.strangers.pop(descriptor)
        stranger.close()
        port.open -= 1
        if not accepted:
            port.answers = False
            port.next_try = time.monotonic() + PAUSE

    def speak(self, descriptor):
        entry = self.strangers[descriptor]
        stranger, port, _ = entry
        entry[2] = port.answers = True
        port.accepted += 1
        words = self.words(port.number)
        try:
            sent = stranger.send(words) if words else 0
        except OSError:
            return self.lose(descriptor)
        self.totals[port.number][0] += 1
        self.totals[port.number][1] += sent
        return self.watch.modify(descriptor, select.EPOLLRDHUP)

    def ready(self, descriptor, events):
        if descriptor == 0:
            self.read_targets()
        elif self.recorder and descriptor == self.recorder.socket.fileno():
            self.recorder.listen()
        elif events & (select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP):
            self.lose(descriptor)
        else:
            self.speak(descriptor)

    def read_targets(self):
        text = os.read(0, 65536).decode()
        if not text:
            sys.exit()
        for target in text.split():
            self.add(target)

    def is_there(self):
        tried = [port for port in self.ports if port.awaited or port.answers]
        return bool(tried) and all(port.accepted >= self.count for port in tried)

    def stay(self):
        try:
            self.watch.register(0, select.EPOLLIN)
        except PermissionError:  # a file, or /dev/null: nothing will come
            pass
        told = False
        while True:
            for port in self.ports:
                for _ in range(AT_ONCE):
                    if not self.wants(port):
                        break
                    self.connect(port)
            for descriptor, events in self.watch.poll(PAUSE if not any(map(self.wants, self.ports)) else 0):
                self.ready(descriptor, events)
            if not told and self.is_there():
                told = True
                print("connected", flush=True)


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    if kind not in KINDS:
        sys.exit(f"there is no kind {kind!r} of strangers; there are: {', '.join(KINDS)}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    crowd = Crowd(kind, count)

    def leave(*_):
        for number, (connections, sent) in sorted(crowd.totals.items()):
            print(number, connections, sent, flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    for target in sys.argv[3:]:
        crowd.add(target, awaited=True)
    crowd.stay()


if __name__ == "__main__":
    main()
