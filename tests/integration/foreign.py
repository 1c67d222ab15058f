# SPDX-License-Identifier: Apache-2.0
"""A foreign trainer in miniature, with nothing but the standard library: everybody listens on all interfaces, the others
connect to rank 0 by name, and at each step everybody's share is summed. Rank 0 keeps the sum in a file every ten steps. A
lost peer ends the process with 1, as frameworks do.

usage: foreign.py STEPS [HOLD]    the first attempt goes no further than HOLD steps: rank 1 waits for data"""
import faulthandler
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import time

faulthandler.register(signal.SIGTERM, chain=True)  # prints the stack, then ends as before

STEPS = int(sys.argv[1])
HOLD = int(sys.argv[2]) if len(sys.argv) > 2 and os.environ["COXSWAIN_ATTEMPT"] == "1" else STEPS + 1
SAVE_EVERY = 10


def place():
    """Rank, size, host and port, from whichever environment there is."""
    if "TF_CONFIG" in os.environ:
        config = json.loads(os.environ["TF_CONFIG"])
        workers = config["cluster"]["worker"]
        host, port = workers[0].rsplit(":", 1)
        return config["task"]["index"], len(workers), host, int(port)
    return (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]))


def meet(rank, size, host, port):
    """The crew's connections: those of all others for rank 0, the one to rank 0 for them."""
    server = socket.create_server(("", port), backlog=size)
    with socket.create_server(("127.0.0.1", port + 1)):  # nor is what listens on localhost in another pod's way
        socket.create_connection(("localhost", port + 1)).close()
    if rank == 0:
        return [server.accept()[0] for _ in range(size - 1)]
    while True:
        try:
            return [socket.create_connection((host, port))]
        except OSError:  # not there yet, or not known yet
            time.sleep(0.1)


def receive(peer):
    data = b""
    while len(data) < 8:
        part = peer.recv(8 - len(data))
        if not part:
            if HOLD <= STEPS:  # its peer may be ended a moment before it: like most libraries, wait all the same
                time.sleep(10)
            raise ConnectionError("a peer is gone")
        data += part
    return struct.unpack("q", data)[0]


def all_reduce(rank, peers, share):
    if rank > 0:
        peers[0].sendall(struct.pack("q", share))
        return receive(peers[0])
    total = share + sum(receive(peer) for peer in peers)
    for peer in peers:
        peer.sendall(struct.pack("q", total))
    return total


def wait_for_data():
    while True:
        time.sleep(1)


def save(path, step, total):
    new = path.with_suffix(".new")
    new.write_text(f"{step} {total}")
    os.replace(new, path)


def main():
    rank, size, host, port = place()
    path = pathlib.Path(os.environ["COXSWAIN_CHECKPOINT_DIR"]) / "sum"
    path.parent.mkdir(parents=True, exist_ok=True)
    first, total = map(int, path.read_text().split()) if path.exists() else (0, 0)
    peers = meet(rank, size, host, port)
    print(f"{socket.gethostname()}: rank {rank} of {size}, attempt {os.environ['COXSWAIN_ATTEMPT']}, "
          f"begins after step {first}", flush=True)
    for step in range(first, STEPS):
        total += all_reduce(rank, peers, step * (rank + 1))
        if step + 1 >= HOLD and rank == 1:
            wait_for_data()
        if rank == 0:
            print(f"step {step + 1}/{STEPS}", flush=True)
        if rank == 0 and (step + 1) % SAVE_EVERY == 0:
            save(path, step + 1, total)
    print(f"sum {total}", flush=True)


try:
    main()
except ConnectionError as lost:
    print(lost, file=sys.stderr)
    sys.exit(1)
