# SPDX-License-Identifier: Apache-2.0
"""The side of a comparison that takes turns with others: it gets ready, says so, and works only when it is told to.

Lines it reads: `SECONDS s` or `STEPS n`. Lines it writes: `ready`, then one `UNITS SECONDS` a turn.
"""
import os
import socket
import subprocess
import sys
import time

WARM_UP = 4


def say(*words):
    print(*words, flush=True)


def free_addresses(count):
    """Of this machine, one for each of a cluster's servers. Two clusters that meet on one port may both wait for ever: servers
    of TensorFlow share it without a word."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{held.getsockname()[1]}" for held in sockets]
    for held in sockets:
        held.close()
    return addresses


def serve(step, units, warm_up=WARM_UP):
    """`step()` does the work of `units` examples or tokens, to the end."""
    for _ in range(warm_up):
        step()
    say("ready")
    for line in sys.stdin:
        kind, amount = line.split()
        seconds, steps = (float(amount), 0) if kind == "SECONDS" else (0, int(amount))
        done, start = 0, time.perf_counter()
        while done < steps or time.perf_counter() - start < seconds:
            step()
            done += 1
        say(done * units, time.perf_counter() - start)


class Crew:
    """Processes that must take the same number of steps, behind one that speaks for them all."""

    def __init__(self, commands):
        """Each command is a pair: arguments, environment beside this process's own."""
        self.members = [subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env={**os.environ, **environment}) for arguments, environment in commands]
        self.pace = 0.0  # steps a second
        for member in self.members:
            self.answer(member, "ready")

    @staticmethod
    def answer(member, start=""):
        for line in member.stdout:
            words = line.split()
            if start and line.startswith(start) or not start and len(words) == 2 and words[0].replace(".", "").isdigit():
                return [] if start else [float(word) for word in words]
        sys.exit("a process of the crew ended")

    def turn(self, steps):
        for member in self.members:
            member.stdin.write(f"STEPS {steps}\n")
            member.stdin.flush()
        answers = [self.answer(member) for member in self.members]
        seconds = max(answer[1] for answer in answers)
        self.pace = steps / seconds
        return sum(answer[0] for answer in answers), seconds

    def serve(self):
        self.turn(2)
        say("ready")
        for line in sys.stdin:
            say(*self.turn(max(1, round(self.pace * float(line.split()[1])))))
