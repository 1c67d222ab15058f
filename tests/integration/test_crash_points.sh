#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Some of the points of tests/chaos/crash-points.sh (make crash-points has all): the operator dies as each of a life's five
# pods has been created, the two of its first crew, the one that replaces an evicted pod, the two after a pause, and what it
# had created by then is removed by force before its successor looks.
set -uo pipefail
CRASH_SCHEDULERS=Removed CRASH_CREATES=yes CRASH_FROM=1 CRASH_TO=5 exec "$(dirname "$0")/../chaos/crash-points.sh"
