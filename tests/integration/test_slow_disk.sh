#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Disks that stand still, or take 200 ms for each call: training does not wait for them, saved files are whole, and a worker that is asked
# to leave meanwhile ends with 143 before it is killed, even if it only waits for another worker's disk. Prints ok/not ok lines (see
# tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/abandoned.sh"
. "$root/tests/integration/slow_disk.sh"

# apart NAME CHIEFS WORKERS: standing, with these grace periods in seconds for worker 0 and worker 1
apart() {
    local grace=$COXSWAIN_GRACE_SECONDS index
    strategy=MultiWorkerMirrored job "$1"
    cluster="{\"worker\":$(hosts 1 2)}"
    pids=()
    for index in 0 1; do
        stand "$1.$index.log"
        export COXSWAIN_GRACE_SECONDS=${*:index+2:1}
        start_member "$1" worker "$index"
    done
    export COXSWAIN_GRACE_SECONDS=$grace
    until_true 60 has_applied "$1" 5
}

# ---- a worker that waits for another's disk

disk_of export
strategy=MultiWorkerMirrored job export
hold export export.safetensors
start_crew export 2
until_true 60 there_is 'export.safetensors.draft-*'
verdict $? "a chief exports" "$(tails export)"
kill -TERM "${pids[1]}"
await "${pids[1]}"
has_abandoned $? export.1.log "what follows the last step"
verdict $? "a worker that waits for the export leaves in time" "$(tails export)"
kill -TERM "${pids[0]}"
await "${pids[0]}"
has_abandoned $? export.0.log "what follows the last step" && [[ $(saved_step export) == 12 ]]
verdict $? "the chief, with its last checkpoint complete, leaves in time, too" "$(tails export)"
quick export
crew export 2 && same_weights export
verdict $? "a later start exports the same bits" "$(tails export)"

# ---- a chief that is lost while it exports to where an earlier job's file lies

# starts NAME INCARNATION: this chief of a job that has a name of its own
starts() {
    COXSWAIN_JOB_UID=uid-of-$1 COXSWAIN_ATTEMPT=1 COXSWAIN_INCARNATION=$2 launch "$1" "$1.$2.log" &
    chief=$!
}

for name in undisturbed over; do
    job "$name"
    sed -i 's/seed: 7/seed: 8/' "$name.yaml"
done
disk_of over
starts undisturbed 1
await "$chief" && ! same_weights undisturbed
verdict $? "a job with other weights" "$(tails undisturbed)"
cp reference.safetensors over.safetensors
hold over over.safetensors
starts over 1
until_true 60 there_is 'over.safetensors.draft-*' && [[ $(saved_step over) == 12 ]]
verdict $? "it exports, when its last checkpoint is there" "$(tails over)"
kill -KILL "$chief"
wait "$chief" 2>/dev/null
same_weights over
verdict $? "and is lost before it has"
quick over
starts over 2
await "$chief" && same_weights over undisturbed
verdict $? "its successor takes the older file for none of its own" "$(tails over)"
starts over 3
await "$chief" && grep -q 'this job is complete' over.3.log && same_weights over undisturbed
verdict $? "and the next one its predecessor's for one" "$(tails over)"

disk_of parting
apart parting 600 2
hold parting .saving-
kill -TERM "${pids[0]}"
undelay parting
until_true 60 there_is 'parting/.saving-*/rank-00000.safetensors'
verdict $? "a chief that is asked to leave saves" "$(tails parting)"
kill -TERM "${pids[1]}"
await "${pids[1]}"
has_abandoned $? parting.1.log "the wait for the chief's last save"
verdict $? "a worker that waits for the chief's save leaves in time" "$(tails parting)"
quick parting
left parting 0 && has_saved parting 6
verdict $? "and the save ends, however long it takes" "$(tails parting) $(ls -A parting)"

hold parting /step-
start_crew parting 2
until_true 60 has_open "${pids[0]}" /step-
verdict $? "a later chief reads it" "$(tails parting)"
kill -TERM "${pids[1]}"
left parting 1
verdict $? "a worker that waits for the chief's state leaves in time" "$(tails parting)"
kill -TERM "${pids[0]}"
left parting 0
verdict $? "the chief, with nothing to lose yet, leaves in time, too" "$(tails parting)"
quick parting
crew parting 2 && same_weights parting
verdict $? "a later start ends in the same bits" "$(tails parting)"

# ---- training beside a slow disk

export COXSWAIN_GRACE_SECONDS=240

# slowly NAME STRATEGY WORD WHAT: saves every second step; calls on files with WORD in their path are slow
slowly() {
    disk_of "$1"
    strategy=$2 job "$1"
    sed -i 's/everySteps: 1000/everySteps: 2/' "$1.yaml"
    hold "$1" "$3"
    export COXSWAIN_RECORD=$work/$1.record
    start_crew "$1" 2
    until_true 60 has_applied "$1" 12
    verdict $? "$4: training takes all its steps while the first save stands" "$(tails "$1")"
    ! any_has_ended "${pids[@]}" && [[ $(saved_step "$1") == 0 ]]
    verdict $? "$4: and does not end without the last" "$(tails "$1") $(ls -A "$1")"
    slow "$1" 200 "/$1/"
    await_crew && [[ $(saved_step "$1") == 12 ]] && same_weights "$1"
    verdict $? "$4: which is there in the end, at 200 ms a call" "$(tails "$1") $(ls -A "$1")"
}

# leaves_slowly NAME STRATEGY WHAT
leaves_slowly() {
    disk_of "$1"
    standing "$1" "$2"
    slow "$1" 200 "/$1/"
    kill -TERM "${pids[@]}"
    undelay "$1"
    left "$1" 0 && left "$1" 1 && has_saved "$1" 6
    verdict $? "$3: a crew that is asked to leave saves at 200 ms a call" "$(tails "$1") $(ls -A "$1")"
    quick "$1"
    crew "$1" 2 && same_weights "$1"
    verdict $? "$3: a later start ends in the same bits" "$(tails "$1")"
}

slowly mirrored MultiWorkerMirrored /.saving- "a chief's disk"
slowly sharded "MultiWorkerMirrored, shardedOptimizer: true" /.part- "another rank's disk"
leaves_slowly leaves MultiWorkerMirrored "a crew"
leaves_slowly shares "MultiWorkerMirrored, shardedOptimizer: true" "a sharded optimizer"
leaves_slowly stages Pipeline "a pipeline"
