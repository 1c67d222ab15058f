#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Some of the examples through cox run, shortened with --set; `make check-examples` runs all of them as they stand. Prints
# ok/not ok lines (see tests/run).
set -uo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip examples: python3 is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
unset COXSWAIN_DATA # the same everywhere
EXAMPLES_SHORT=1 exec python3 "$root/tests/examples/check.py"
