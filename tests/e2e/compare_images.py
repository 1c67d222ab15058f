#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two images (docker archives): the digest of the configuration, which covers all layers, then what differs.

compare_images.py ARCHIVE ARCHIVE        exit status 0: the same
"""
import hashlib
import json
import sys
import tarfile


def entry(layer, member):
    """All that makes one file of a layer what it is."""
    content = hashlib.sha256(layer.extractfile(member).read()).hexdigest()[:12] if member.isreg() else ""
    return {"kind": member.type, "mode": oct(member.mode), "owner": (member.uid, member.gid), "time": member.mtime,
            "link": member.linkname, "size": member.size, "content": content}


def read(path):
    """The digest of the configuration, the configuration, and each layer's files in order."""
    with tarfile.open(path) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        raw = archive.extractfile(manifest["Config"]).read()
        layers = []
        for name in manifest["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(name)) as layer:
                layers.append({member.name: entry(layer, member) for member in layer})
    return hashlib.sha256(raw).hexdigest(), json.loads(raw), layers


def differences(first, second):
    (_, one, layers), (_, other, others) = first, second
    for key in sorted((set(one) | set(other)) - {"rootfs"}):
        if one.get(key) != other.get(key):
            yield f"configuration {key}: {one.get(key)} and {other.get(key)}"
    if len(layers) != len(others):
        yield f"{len(layers)} and {len(others)} layers"
    for number, (left, right) in enumerate(zip(layers, others)):
        for name in sorted(set(left) | set(right)):
            a, b = left.get(name), right.get(name)
            if not a or not b:
                yield f"layer {number} {name}: only in the {'first' if a else 'second'}"
            elif a != b:
                yield f"layer {number} {name}: " + ", ".join(f"{k} {a[k]} and {b[k]}" for k in a if a[k] != b[k])
        if left == right and list(left) != list(right):
            yield f"layer {number}: another order"


def main():
    first, second = read(sys.argv[1]), read(sys.argv[2])
    if first[0] == second[0]:
        print(f"sha256:{first[0]}, {sum(map(len, first[2]))} files")
        return 0
    found = list(differences(first, second)) or ["how it is packed"]
    print(f"{len(found)} differences: " + "; ".join(found[:12]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
