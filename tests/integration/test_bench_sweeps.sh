#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/bench/sweeps/run with programs that only print what they are called with: without PostgreSQL it measures the operator, and not Katib.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/verdict.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/"{tests/bench/sweeps,tests/cluster,scripts,postgresql/15/bin}
cp "$root/tests/bench/sweeps/run" "$work/tests/bench/sweeps/run"
for program in tests/cluster/get-tools tests/cluster/with scripts/python-environment; do
    printf '#!/bin/sh\necho "$@"\n' >"$work/$program"
    chmod +x "$work/$program"
done

measure() {
    said=$(BENCH_KATIB=1 KATIB_POSTGRESQL=$1 "$work/tests/bench/sweeps/run" cluster 2>&1)
}

measure "$work/nowhere" && [[ $(grep -c '^skip Katib: .*initdb' <<<"$said") == 1 && $said != *sweeps/katib* && $said == *sweeps/cluster ]]
verdict $? "without initdb Katib is skipped, in one sentence, and the operator is measured" "$said"
touch "$work/postgresql/15/bin/initdb"
measure "$work/postgresql" && [[ $(grep -c 'sweeps/katib ' <<<"$said") == 2 && $said != *skip* && $said == *sweeps/cluster ]]
verdict $? "with it both are" "$said"
