#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# That what judges the runs of `make chaos`, `make bench-peers` and `make check-e2e` notices each thing that may go wrong. Prints ok/not
# ok lines (see tests/run).
set -uo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip chaos: python3 is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
# judge NAME: a line for each of its cases, and one more where it fails or does not even load
judge() {
    local said status
    said=$(PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/$1.py" --verbose 2>&1)
    status=$?
    sed -n 's/^test_\([a-z_]*\) .* \.\.\. ok$/ok \1/p; s/^test_\([a-z_]*\) .* \.\.\. \(FAIL\|ERROR\)$/not ok \1/p' <<<"$said" | tr _ ' '
    ((status == 0)) || printf 'not ok %s ends with %s:\n%s\n' "$1" "$status" "$said"
}

judge chaos/test_history
judge e2e/test_witness
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/bench/peers/test_peers.py" || echo "not ok bench/peers/test_peers ends with $?"
