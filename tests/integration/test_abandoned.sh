#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Workers that are asked to leave in a step, or an evaluation, that does not end: after half of the grace period they abandon it,
# save the boundary before it and end with 143, also where several hold parts of the state; what goes on from there ends in the
# bits of an undisturbed run. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/abandoned.sh"

# ---- one process

# abandons_alone NAME WHAT: a process that is asked to leave after five steps, with WHAT under way, and a later start of it
abandons_alone() {
    stand "$1.log"
    launch "$1" "$1.log" &
    victim=$!
    until_true 60 has_applied "$1" 5
    kill -TERM "$victim"
    await "$victim"
    has_abandoned $? "$1.log" "$2 of 12"
    verdict $? "${2% [0-9]*} that does not end is abandoned" "$(tail -n 1 "$1.log")"
    [[ $(saved_step "$1") == 5 ]]
    verdict $? "and the boundary before it saved" "$(ls "$1")"
    (($(drawn "$1") == 5))
    verdict $? "no step's curves are lost with it" "$(drawn "$1") of 5 steps"
    rm "$1.delay"
    lone "$1" && same_weights "$1"
    verdict $? "a later start ends in the same bits" "$(tail -n 1 "$1.log")"
}

job alone
abandons_alone alone "step 6"

# The sixth batch is read a step ahead: what stands is the evaluation after the fifth step.
evaluates=5 job tested
abandons_alone tested "the evaluation after step 5"

devices=2 strategy=Pipeline job pipeline
abandons_alone pipeline "step 6"

# ---- a crew

standing both
kill -TERM "${pids[@]}"
await "${pids[0]}"
has_abandoned $? both.0.log "step 6 of 12"
verdict $? "a crew that is asked as a whole abandons its step" "$(tails both)"
await "${pids[1]}"
[[ $? == 143 && $(saved_step both) == 5 ]]
verdict $? "all leave, and the chief has saved the boundary" "$(tails both) $(ls both)"
rm both.*.delay
crew both 2 && same_weights both
verdict $? "a later start ends in the same bits, too" "$(tails both)"

standing one
kill -TERM "${pids[1]}"
await "${pids[1]}"
has_abandoned $? one.1.log "step 6 of 12"
verdict $? "one of two abandons its step alone" "$(tails one)"
rm one.*.delay
start_member one worker 1 1
await_crew && same_weights one
verdict $? "and its successor brings the crew to the same bits" "$(tails one)"

# ---- a crew that shares the state out

# shares_out NAME STRATEGY WHAT: if any of its workers is asked to leave, all save the boundary
shares_out() {
    local asked
    standing "$1-all" "$2"
    kill -TERM "${pids[@]}"
    left "$1-all" 0 && left "$1-all" 1 && grep -qs "step 6 of 12 did not end .* was abandoned" "$1-all".?.log
    verdict $? "$3 that is asked as a whole leaves its step" "$(tails "$1-all")"
    [[ $(saved_step "$1-all") == 5 ]]
    verdict $? "and has saved the boundary, each its part" "$(ls "$1-all")"
    undelay "$1-all"
    crew "$1-all" 2 && same_weights "$1-all"
    verdict $? "a later start ends in the same bits" "$(tails "$1-all")"
    for asked in 0 1; do
        standing "$1-$asked" "$2" 5 "$asked"
        kill -TERM "${pids[$asked]}"
        await "${pids[$asked]}"
        has_abandoned $? "$1-$asked.$asked.log" "step 6 of 12"
        verdict $? "worker $asked of $3 leaves its step alone" "$(tails "$1-$asked")"
        until_true 60 has_saved "$1-$asked" 5
        verdict $? "and the boundary is saved, by the other too" "$(tails "$1-$asked") $(ls -A "$1-$asked")"
        undelay "$1-$asked"
        start_member "$1-$asked" worker "$asked" 1
        await_crew && same_weights "$1-$asked"
        verdict $? "its successor brings the crew to the same bits" "$(tails "$1-$asked")"
    done
}

# in_vain: a worker that stands still is not asked to leave, and does not learn that its part of the save is needed
in_vain() {
    standing vain Pipeline 5 1
    kill -TERM "${pids[0]}"
    await "${pids[0]}"
    has_abandoned $? vain.0.log "step 6 of 12" && [[ $(saved_step vain) == 0 ]]
    verdict $? "a worker's part that does not arrive is not waited for long" "$(tails vain)"
    end_crew KILL
}

shares_out stages Pipeline "a pipeline over two pods"
shares_out shards "MultiWorkerMirrored, shardedOptimizer: true" "a crew with a sharded optimizer"
in_vain
