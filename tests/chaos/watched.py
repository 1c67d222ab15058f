#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a watch of a job's pods, or of a sweep's trials, has seen of their identities.

    tests/chaos/watched.py FILE LEAST

FILE has a watch's events, one JSON object after the other. Says which names have had two uids, or that there were fewer than
LEAST names; then it ends with 1.
"""
import json
import sys
from collections import defaultdict


def identities(text):
    """{name: uids}; what follows the last whole event is cut off by the end of the watch."""
    found, decoder, at = defaultdict(set), json.JSONDecoder(), 0
    text = text.rstrip()
    while at < len(text):
        try:
            event, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            break
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            found[event["object"]["metadata"]["name"]].add(event["object"]["metadata"]["uid"])
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def complaint(text, least):
    """None when all is well."""
    found = identities(text)
    twice = sorted(name for name, uids in found.items() if len(uids) > 1)
    if twice:
        return "created twice: " + " ".join(twice)
    if len(found) < least:
        return f"the watch has seen {len(found)} objects only, not {least}"
    return None


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        wrong = complaint(file.read(), int(sys.argv[2]))
    if wrong:
        sys.exit(wrong)


if __name__ == "__main__":
    main()
