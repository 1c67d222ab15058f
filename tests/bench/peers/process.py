# SPDX-License-Identifier: Apache-2.0
"""A process that is spoken with by lines, against a clock: a participant of a benchmark, or a worker whose step lines are read."""
import os
import select
import signal
import subprocess
import time


class Gone(Exception):
    """There is no more to be had of it, and why."""


class Ended(Gone):
    """By itself; with its last words."""


class Process:
    """Leads a session of its own, whose processes end with it. What it says on standard error goes to the file `log`."""

    def __init__(self, name, command, log, environment=None):
        self.name, self.buffer = name, b""
        self.log = open(log, "w")
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True,
                                        env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})})

    def line(self, deadline):
        while b"\n" not in self.buffer:
            wait = deadline - time.monotonic()
            if wait <= 0 or not select.select([self.process.stdout], [], [], wait)[0]:
                raise Gone(f"{self.name} did not answer in time")
            block = os.read(self.process.stdout.fileno(), 65536)
            if not block:
                raise Ended(self.last_words())
            self.buffer += block
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode(errors="replace")

    def say(self, line):
        try:
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Ended(self.last_words()) from None

    def last_words(self):
        with open(self.log.name, errors="replace") as file:
            words = file.read().strip().split("\n")[-1]
        return f"{self.name} ended: {words}" if words else f"{self.name} ended: see {self.log.name}"

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # of a line that it did not live to read
        self.log.close()
