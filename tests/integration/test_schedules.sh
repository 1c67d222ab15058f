#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Some of the random lives of tests/chaos/schedules.py (make schedules has many), the same ones each time.
set -uo pipefail
if ! command -v python3 >/dev/null; then
    echo "skip schedules: python3 is not installed"
    exit 0
fi
PYTHONDONTWRITEBYTECODE=1 SCHEDULES=24 SCHEDULES_LANES=24 SCHEDULES_SEED=3 SCHEDULES_PATIENCE=400 \
    exec python3 "$(dirname "$0")/../chaos/schedules.py"
