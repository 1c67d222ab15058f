#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connects to a port as a stranger does, COUNT times at once, and stays until it is killed.

    strangers.py HOST PORT COUNT [again]

Connections say nothing. With `again`, each that the other side closes is made anew at once.
Prints "connected" once all have been tried.
"""
import errno
import resource
import select
import socket
import sys

host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
again = sys.argv[4:] == ["again"]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
watch = select.epoll()
strangers = {}


def connect():
    stranger = socket.socket()
    stranger.setblocking(False)
    if stranger.connect_ex((host, port)) not in (0, errno.EINPROGRESS):
        stranger.close()
        return
    strangers[stranger.fileno()] = stranger
    watch.register(stranger.fileno(), select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR)


for _ in range(count):
    connect()
print("connected", flush=True)
while True:
    for descriptor, _ in watch.poll(1):
        strangers.pop(descriptor).close()
        if again:
            connect()
    while again and len(strangers) < count:
        connect()
