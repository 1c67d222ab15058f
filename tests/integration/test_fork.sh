#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs whose init.path is a checkpoint of another job: they go on from its whole state with other values, and end with the bits of a job
# that has this checkpoint in its own folder. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
make_digits

# job NAME STRATEGY RATE STEPS [INIT]: 600 examples to learn from, so that step 20 is in the middle of an epoch
# of 12 steps; a checkpoint every ten steps
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {steps: $4, batchSize: 50, seed: 7, optimizer: {type: AdamW, learningRate: $3}}
strategy: {$2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 10, keep: 9}
export: {storage: runs, path: $1.safetensors}
YAML
    if [[ ${5:-} ]]; then echo "init: {storage: runs, path: $5}" >>"$1.yaml"; fi
}

# checkpoint NAME STEP: the folder of that checkpoint
checkpoint() {
    find "$1" -maxdepth 1 -name "step-*$2.attempt-*"
}

# state NAME STEP: digests of what that checkpoint has, of parameters and optimizer
state() {
    (cd "$(checkpoint "$1" "$2")" && sha256sum rank-*)
}

contents() {
    find "$1" -type f -print0 | sort -z | xargs -0 sha256sum
}

job source 'type: OneDevice' 0.002 40
# Else a save may still be under way when the next one is due, and is skipped.
echo 20 | tee source.delay >same.delay
lone source
at=$(checkpoint source 20)
[[ $at ]]
verdict $? "a job saves checkpoints" "$(tail -n 1 source.log; ls source)"
contents source >untouched

job same 'type: OneDevice' 0.002 40 "$at"
lone same && grep -q "goes on from step 20 of another job" same.log && [[ $(state same 40) == "$(state source 40)" && $(state same 40) ]]
verdict $? "a fork with the same values ends with the same parameters and optimizer" "$(tail -n 3 same.log)"
[[ $(checkpoint same 30) && ! $(checkpoint same 20) ]]
verdict $? "and has checkpoints of its own" "$(ls same)"

job newest 'type: OneDevice' 0.002 50 source
lone newest && grep -q "goes on from step 40 of another job" newest.log && [[ $(saved_step newest) == 50 ]]
verdict $? "the folder of a job stands for its newest checkpoint" "$(tail -n 3 newest.log)"
job ended 'type: OneDevice' 0.002 40 source
lone ended && same_weights ended source
verdict $? "a fork that has no step to do ends with the same weights" "$(tail -n 3 ended.log)"

cp -r source emptied
job later 'type: OneDevice' 0.002 50 emptied
lone later && rm -r emptied/* && sed -i 's/steps: 50/steps: 60/' later.yaml && rm later.safetensors &&
    lone later && grep -q "resumes from the checkpoint of step 50" later.log && [[ $(saved_step later) == 60 ]]
verdict $? "a fork that has a checkpoint of its own does not need the other job's" "$(tail -n 3 later.log)"

# forks NAME STRATEGY WORKERS SERVERS: with another rate, beside a job that has the checkpoint in its own folder
forks() {
    job "$1-fork" "$2" 0.0005 40 "$at"
    job "$1-hand" "$2" 0.0005 40
    mkdir "$1-hand"
    cp -r "$at" "$1-hand/"
    if (($3 == 1)); then
        lone "$1-hand" && lone "$1-fork"
    else
        crew "$1-hand" "$3" "$4" && crew "$1-fork" "$3" "$4"
    fi
    verdict $? "$1: a fork trains" "$(tails "$1-hand") $(tails "$1-fork")"
    same_weights "$1-fork" "$1-hand" && [[ $(state "$1-fork" 40) == "$(state "$1-hand" 40)" && $(state "$1-fork" 40) ]]
    verdict $? "$1: it ends with the bits of a job that has the checkpoint in its own folder" "$(state "$1-fork" 40) $(state "$1-hand" 40)"
    ! same_weights "$1-fork" source
    verdict $? "$1: which are those of its own rate"
}

forks one 'type: OneDevice' 1 0
forks mirrored 'type: MultiWorkerMirrored' 2 0
forks sharded 'type: MultiWorkerMirrored, shardedOptimizer: true' 2 0
forks stages 'type: Pipeline, microBatches: 2' 2 0
forks servers 'type: ParameterServer, mode: Synchronous' 2 2
grep -q "goes on from step 20 of another job" servers-fork.0.log && ! grep -q "resumes from" servers-fork.0.log && grep -q "resumes from the checkpoint of step 20" servers-hand.0.log
verdict $? "servers: a fork says so" "$(tails servers-fork)"
# goes_on NAME STRATEGY WORKERS SERVERS: asynchronous, so that bits differ from run to run, and the steps of checkpoints, too. A fork goes
# on from the oldest checkpoint of a job like it; one that has no step to do ends with the same weights.
goes_on() {
    local from step
    job "$1-source" "$2" 0.002 40
    crew "$1-source" "$3" "$4" && [[ $(saved_step "$1-source") == 40 ]]
    verdict $? "$1: a job to go on from" "$(tails "$1-source")"
    from=$(find "$1-source" -maxdepth 1 -name 'step-*' | sort | head -n 1)
    step=${from#*step-}
    step=$((10#${step%%.*}))
    job "$1-fork" "$2" 0.0005 40 "$from"
    ((0 < step && step < 40)) && crew "$1-fork" "$3" "$4" && cat "$1-fork".*log | contains "goes on from step $step of another job" && [[ $(saved_step "$1-fork") == 40 ]]
    verdict $? "$1: a fork goes on from the middle of it" "$from $(tails "$1-fork") $(ls "$1-source")"
    job "$1-same" "$2" 0.0005 40 "$1-source"
    crew "$1-same" "$3" "$4" && same_weights "$1-same" "$1-source"
    verdict $? "$1: a fork that has no step to do ends with the same weights" "$(tails "$1-same")"
}

goes_on asynchronous 'type: ParameterServer, mode: Async' 2 2
goes_on peers 'type: PeerToPeer' 2 0

job unfit 'type: ParameterServer, mode: Synchronous' 0.0005 40 "$at"
sed -i 's/width: 32/width: 16/' unfit.yaml
start_crew unfit 2 2
until_true 60 grep -qs "init.path .*does not fit this job (a job can go on only" unfit.ps0.log && ! cat unfit.*.log | contains "another checkpoint.path"
verdict $? "servers: a checkpoint of another job that does not fit is named as one" "$(tails unfit)"
end_crew KILL

# A fork of which the first save is still to come begins again where it began; later it goes on from its own.
job killed 'type: OneDevice' 0.0005 40 "$at"
echo 400 >killed.delay
lone killed 2>/dev/null &
until_true 30 grep -qs '^step *2[2-8]/40' killed.log
pkill -KILL -P $!
wait $! 2>/dev/null
[[ ! $(checkpoint killed 30) ]] && rm -f killed.delay && lone killed && same_weights killed one-fork
verdict $? "a fork that is killed before its first save ends with the same bits" "$(ls killed; tail -n 3 killed.log)"
rm killed.safetensors
rm -r "$(checkpoint killed 40)"
lone killed && grep -q "resumes from the checkpoint of step 30" killed.log && same_weights killed one-fork
verdict $? "later it goes on from its own checkpoint" "$(tail -n 3 killed.log)"

[[ $(contents source) == "$(cat untouched)" ]]
verdict $? "the other job's folder stays as it was" "$(contents source | diff - untouched)"

job misfit 'type: OneDevice' 0.0005 40 "$at"
sed -i 's/width: 32/width: 16/' misfit.yaml
refused 66 "init.path .*does not fit" misfit
cp -r source damaged-source
printf x | dd of="$(checkpoint damaged-source 20)/rank-00000.safetensors" bs=1 seek=5000 conv=notrunc 2>/dev/null
contents damaged-source >untouched
job damaged 'type: OneDevice' 0.0005 40 "$(checkpoint damaged-source 20)"
refused 66 "init.path .*digest" damaged
[[ $(contents damaged-source) == "$(cat untouched)" ]]
verdict $? "a damaged checkpoint of another job stays where it is"
mkdir empty
job nothing 'type: OneDevice' 0.0005 40 empty
refused 66 "init.path .*without checkpoints" nothing
job missing 'type: OneDevice' 0.0005 40 source/step-00000021.attempt-0.incarnation-1
refused 66 "init.path" missing
