#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker that takes ten times as long as the others: strategies that step together name it within 20 steps. The time is slept away beside next to no work, so that it is the same on a machine with other work. How much of their
# pace strategies keep then: make check-stragglers. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/stragglers.sh"
width=16 batch=60
usual_ms=50 slow_ms=500

# named_at NAME INDEX FROM: the step at which the chief has named that worker, the first after FROM
named_at() {
    sed -n "s/.*worker $2 is a straggler.*(step \([0-9]*\)).*/\1/p" "$1.0.log" | awk -v from="$3" '$1 > from { print $1; exit }'
}

is_named() {
    [[ -n $(named_at "$@") ]]
}

# names NAME STRATEGY [SERVERS]: slows worker 1 of 3, and tells whether it is named within 20 steps of that
names() {
    local i from
    crew_document "$1" "$2"
    for i in 0 1 2; do delay "$1" "$i" "$usual_ms"; done
    start_crew "$1" 3 "${3:-0}"
    until_true 60 crew_is_at "$1" 10 || return
    from=$(crew_step "$1")
    delay "$1" 1 "$slow_ms"
    until_true 60 is_named "$1" 1 "$from" || return
    crew_stop
    (($(named_at "$1" 1 "$from") - from <= 20))
}

names mirrored 'type: MultiWorkerMirrored'
verdict $? "MultiWorkerMirrored names a straggler within 20 steps" "$(tails mirrored)"
crew_stop
names local 'type: MultiWorkerMirrored, localSteps: 10'
verdict $? "so it does with local steps, at the end of a round of ten" "$(tails local)"
crew_stop
names served 'type: ParameterServer, mode: Synchronous' 1
verdict $? "ParameterServer, Synchronous, names a straggler within 20 steps" "$(tails served)"
