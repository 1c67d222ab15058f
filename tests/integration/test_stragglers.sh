#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker with a tenth of the time of the others: synchronous strategies name it within 20 steps. How much of their pace
# strategies keep then: make check-stragglers. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/stragglers.sh"

# named_at NAME INDEX: the step at which the chief has first named that worker
named_at() {
    sed -n "s/.*worker $2 is a straggler.*(step \([0-9]*\)).*/\1/p" "$1.0.log" | head -n 1
}

is_named() {
    [[ -n $(named_at "$@") ]]
}

# names NAME STRATEGY SERVERS: slows worker 1 of 3, and tells whether it is named within 20 steps of that
names() {
    local from
    crew_document "$1" "$2"
    start_crew "$1" 3 "$3"
    until_true 30 crew_is_at "$1" 10 || return
    crew_slow 1
    sleep 0.05 # the step that the others have finished is told
    from=$(crew_step "$1")
    until_true 30 is_named "$1" 1 || return
    crew_stop
    (($(named_at "$1" 1) - from <= 20))
}

names mirrored 'type: MultiWorkerMirrored' 0
verdict $? "MultiWorkerMirrored names a straggler within 20 steps" "$(tails mirrored)"
crew_stop
names served 'type: ParameterServer, mode: Synchronous' 1
verdict $? "ParameterServer, Synchronous, names a straggler within 20 steps" "$(tails served)"
