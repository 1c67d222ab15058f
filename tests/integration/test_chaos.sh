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
for judge in chaos/test_history e2e/test_witness; do
    PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/$judge.py" --verbose 2>&1 |
        sed -n 's/^test_\([a-z_]*\) .* \.\.\. ok$/ok \1/p; s/^test_\([a-z_]*\) .* \.\.\. \(FAIL\|ERROR\)$/not ok \1/p' | tr _ ' '
done
PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/bench/peers/test_peers.py"
