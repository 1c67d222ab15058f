#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Workers that are asked to leave in a step, or an evaluation, that does not end: after half of the grace period they abandon it,
# save the boundary before it and end with 143; what goes on from there ends in the bits of an undisturbed run. Such a step waits
# for examples that do not come. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# job NAME
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: synthetic, examples: 1024, validation: {last: 256}}
training: {steps: 12, batchSize: 64, logicalShards: 2, seed: 7, optimizer: {type: adamw, learningRate: "2e-3"}}
strategy: {type: ${strategy:-OneDevice}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 1000, keep: 2}
evaluate: {everySteps: ${evaluates:-12}}
export: {to: $1.safetensors, storage: runs}
YAML
}

# stand LOG: who writes that log reads six batches, each a step ahead, and then none: the sixth step does not end
stand() {
    echo 0 0 0 0 0 0 86400000 >"${1%.log}.delay"
    export COXSWAIN_RECORD=$work/${1%%.*}.record
}

# has_applied NAME STEP: its chief has
has_applied() {
    grep -qs "^applied [^ ]* worker-0-[^ ]* [0-9]* $2 " "$1.record"
}

# has_abandoned STATUS LOG WHAT
has_abandoned() {
    [[ $1 == 143 ]] && grep -q "left on request: $3 of 12 did not end within half of the grace period (2 s) and was abandoned" "$2"
}

# drawn FOLDER: so many steps' losses stand in its TensorBoard file
drawn() {
    grep -rao 'train/loss' "$1/tensorboard" | wc -l
}

export COXSWAIN_GRACE_SECONDS=2
job reference
lone reference
verdict $? "a run that nobody disturbs" "$(tail -n 1 reference.log)"

# ---- one process

# abandons_alone NAME WHAT: a process that is asked to leave after five steps, with WHAT under way, and a later start of it
abandons_alone() {
    stand "$1.log"
    launch "$1" "$1.log" &
    victim=$!
    until_true 60 has_applied "$1" 5
    kill -TERM "$victim"
    await "$victim"
    has_abandoned $? "$1.log" "$2"
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

# ---- a crew

# standing NAME: a crew of two, each of which has taken five steps and waits for the batch of the sixth
standing() {
    strategy=MultiWorkerMirrored job "$1"
    stand "$1.0.log"
    stand "$1.1.log"
    start_crew "$1" 2
    until_true 60 has_applied "$1" 5
}

standing both
kill -TERM "${pids[@]}"
await "${pids[0]}"
has_abandoned $? both.0.log "step 6"
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
has_abandoned $? one.1.log "step 6"
verdict $? "one of two abandons its step alone" "$(tails one)"
rm one.*.delay
start_member one worker 1 1
await_crew && same_weights one
verdict $? "and its successor brings the crew to the same bits" "$(tails one)"
