#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A few of the points of tests/chaos/crash-points.sh (make crash-points has all): the operator dies around the writes with
# which an evicted pod is replaced, and what it had created by then is removed by force before its successor looks.
set -uo pipefail
CRASH_SCHEDULERS=Removed CRASH_FROM=10 CRASH_TO=12 exec "$(dirname "$0")/../chaos/crash-points.sh"
