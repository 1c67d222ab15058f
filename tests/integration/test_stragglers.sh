#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker with a tenth of the time of the others: synchronous strategies name it within 20 steps. How much of their pace
# strategies keep then: make check-stragglers. Prints ok/not ok lines (see tests/run).
set -uo pipefail

# shellcheck disable=SC2034 # of stragglers.sh
bin=${BUILD:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
finish() {
    crew_stop
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
. "$root/tests/integration/stragglers.sh"

# verdict $? NAME [WHY]
verdict() {
    if (($1 == 0)); then echo "ok $2"; else echo "not ok $2${3:+: $3}"; fi
}

# named_at NAME INDEX: the step at which the chief has first named that worker
named_at() {
    sed -n "s/.*worker $2 is a straggler.*(step \([0-9]*\)).*/\1/p" "$1.log" | head -n 1
}

# names NAME STRATEGY SERVERS: slows worker 1 of 3, and tells whether it is named within 20 steps of that
names() {
    local from at end
    crew_document "$1" "$2"
    crew_start "$1" 3 "$3"
    crew_await 120 "$1" 10 || return
    crew_slow 1
    sleep 0.05 # the step that the others have finished is told
    from=$(crew_step "$1") end=$((SECONDS + 120))
    until at=$(named_at "$1" 1) && [[ -n $at ]]; do
        ((SECONDS < end)) || return
        sleep 0.1
    done
    crew_stop
    ((at - from <= 20))
}

names mirrored 'type: MultiWorkerMirrored' 0
verdict $? "MultiWorkerMirrored names a straggler within 20 steps" "$(tail -n 2 mirrored.log)"
crew_stop
names served 'type: ParameterServer, mode: Synchronous' 1
verdict $? "ParameterServer, Synchronous, names a straggler within 20 steps" "$(tail -n 2 served.log)"
