#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Some of the points of tests/chaos/sweep-crash-points.sh (make crash-points has all): the operator dies before and after it creates each
# trial of a sweep that pauses trials, and of a population.
set -uo pipefail
CRASH_SWEEPS="ASHA PBT" CRASH_CREATES=yes CRASH_FROM=1 CRASH_TO=3 exec "$(dirname "$0")/../chaos/sweep-crash-points.sh"
