# SPDX-License-Identifier: Apache-2.0
"""Runs the worker on files of ours, and reads what it leaves: safetensors, TensorBoard's scalars, the order of examples."""
import json
import pathlib
import struct
import subprocess

import numpy
import torch


def write_safetensors(path, tensors):
    header, data, at = {}, [], 0
    for name, value in tensors.items():
        raw = value.detach().contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    """With the library of that name where there is one, as a user would."""
    try:
        from safetensors.torch import load_file
    except ImportError:
        raw = pathlib.Path(path).read_bytes()
        (length,) = struct.unpack_from("<Q", raw)
        header = json.loads(raw[8 : 8 + length])
        header.pop("__metadata__", None)
        data = raw[8 + length :]
        return {
            name: torch.from_numpy(numpy.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"]).copy())
            for name, entry in header.items()
        }
    return load_file(str(path))


def run(program, folder, job, threads=2):
    """Trains in `folder`; returns the losses of all steps and of the last evaluation."""
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    done = subprocess.run(
        [program, "--job", path, "--checkpoint-dir", folder / "run", "--threads", str(threads), "--log-format", "json"],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{path}: the worker ended with {done.returncode}: {done.stderr}{done.stdout}")
    return scalars(folder / "run" / "tensorboard")


def generate(program, folder, prompt, tokens):
    """The prompt, a list of tokens, and the likeliest tokens after it, by the job and the weights in `folder`."""
    done = subprocess.run(
        [program, "--job", folder / "job.json", "--weights", folder / "first.safetensors", "--generate", " ".join(map(str, prompt)),
         "--tokens", str(tokens), "--temperature", "0"],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{folder}: --generate ended with {done.returncode}: {done.stderr}{done.stdout}")
    return [int(token) for token in done.stdout.split()]


def _varint(raw, at):
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(raw):
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        if key & 7 == 0:
            value, at = _varint(raw, at)
        elif key & 7 == 2:
            length, at = _varint(raw, at)
            value, at = raw[at : at + length], at + length
        else:
            size = 8 if key & 7 == 1 else 4
            value, at = raw[at : at + size], at + size
        yield key >> 3, value


def scalars(folder):
    """{tag: {step: value}} of TensorBoard's event files."""
    found = {}
    for path in sorted(folder.iterdir()):
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            (length,) = struct.unpack_from("<Q", raw, at)
            event = list(_fields(raw[at + 12 : at + 12 + length]))
            at += length + 16
            step = next((value for number, value in event if number == 2), 0)
            for summary in (value for number, value in event if number == 5):
                for number, value in _fields(summary):
                    entry = dict(_fields(value)) if number == 1 else {}
                    if 2 in entry:
                        found.setdefault(entry[1].decode(), {})[step] = struct.unpack("<f", entry[2])[0]
    return found


# ---------------------------------------------------------------- the order of examples


def philox(key, low, high):
    mask = 0xFFFFFFFF
    key0, key1 = key & mask, key >> 32
    w = [low & mask, low >> 32, high & mask, high >> 32]
    for _ in range(10):
        left, right = 0xD2511F53 * w[0], 0xCD9E8D57 * w[2]
        w = [(right >> 32) ^ w[1] ^ key0, right & mask, (left >> 32) ^ w[3] ^ key1, left & mask]
        key0, key1 = (key0 + 0x9E3779B9) & mask, (key1 + 0xBB67AE85) & mask
    return w


def order(seed, count, epoch):
    """The permutation of docs: a Feistel network over the numbers, walked until it lands below `count`."""
    bits = 1
    while 1 << 2 * bits < count:
        bits += 1
    mask = (1 << bits) - 1

    def step(value):
        left, right = value >> bits, value & mask
        for turn in range(ROUNDS):
            left, right = right, (left ^ philox(seed, right << 8 | turn, epoch)[0]) & mask
        return left << bits | right

    found = []
    for position in range(count):
        value = step(position)
        while value >= count:
            value = step(value)
        found.append(value)
    return found


ROUNDS = 6


def batches(seed, count, size):
    epoch = 0
    while True:
        numbers = order(seed, count, epoch)
        for at in range(0, count, size):
            yield numbers[at : at + size]
        epoch += 1
