#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews of real processes with a sharded optimizer: the bits of one device, whichever process is killed or frozen; two
# neighbours lost at once cost the steps since the checkpoint, and checkpoints go from and to any other strategy. Prints
# ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
sharded='type: MultiWorkerMirrored, shardedOptimizer: true'

# job NAME STRATEGY STEPS [DEVICES]: a job document; the caller may set folder (of checkpoints), clip and every
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 64}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training:
  steps: $3
  stepsPerEpoch: 1000
  batchSize: 50
  logicalShards: 12${clip:+
  gradientClipNorm: \"$clip\"}
  optimizer: {type: AdamW, learningRate: "1e-3"}
  seed: 7
strategy: {$2}
devices: {count: ${4:-1}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${folder:-$1}, everySteps: ${every:-10}, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

# tells NAME INDEX WORDS
tells() {
    grep -q -- "$3" "$1.$2.log"
}

make_digits
clip=0.5 job reference 'type: OneDevice' 60
lone reference
verdict $? "one device trains" "$(tails reference)"

# ---- the same bits

for size in 2 3 4; do
    clip=0.5 job "crew$size" "$sharded" 60
    crew "crew$size" "$size" && same_weights "crew$size"
    verdict $? "a crew of $size gives the bits of one device" "$(tails "crew$size")"
done
clip=0.5 job wide "$sharded" 60 2
crew wide 2 && same_weights wide
verdict $? "so do two workers of two devices each" "$(tails wide)"
tells crew4 0 'optimizer slots of .* MiB, shared out'
verdict $? "the plan tells what slots each worker keeps" "$(head -n 8 crew4.0.log | tr '\n' ' ')"

# ---- one run, handed on. The logical shards stay, so the bits do

job whole 'type: OneDevice' 160
lone whole
verdict $? "a run to compare with" "$(tails whole)"
folder=relay steps=0
while read -r strategy; do
    steps=$((steps + 20))
    name=relay$steps
    case $strategy in
    sharded*) job "$name" "$sharded" "$steps" && crew "$name" "${strategy#sharded }" ;;
    servers) job "$name" 'type: ParameterServer, mode: Synchronous' "$steps" && crew "$name" 2 2 ;;
    *) job "$name" "$strategy" "$steps" 2 && lone "$name" ;;
    esac
    verdict $? "goes on from step $((steps - 20)): $strategy" "$(tails "$name")"
done <<'END'
sharded 3
type: Mirrored
sharded 2
type: Pipeline, stages: 2
sharded 4
servers
sharded 3
type: CentralStorage
END
folder=
same_weights relay160 whole
verdict $? "and ends in the bits of one device that did it all" "$(ls)"

# ---- losses

every=100
job undisturbed 'type: OneDevice' 1000
lone undisturbed
verdict $? "a longer run to compare with" "$(tails undisturbed)"

# start_slow NAME: a crew of three that cannot be done before something has happened to it: one waits for each batch
start_slow() {
    job "$1" "$sharded" 1000
    delay "$1" 0 50
    start_crew "$1" 3
    until_true 60 has_saved "$1"
}

# ends_as_undisturbed NAME WHAT
ends_as_undisturbed() {
    undelay "$1"
    await_crew && same_weights "$1" undisturbed
    verdict $? "$2" "$(tails "$1")"
}

# recoveries NAME INDEX: how often that worker has seen the crew whole again
recoveries() {
    grep -c 'whole again' "$1.$2.log"
}

has_recovered_more_than() {
    (($(recoveries "$1" "$2") > $3))
}

start_slow killed
for victim in 0 1 2; do
    witness=$(((victim + 1) % 3))
    before=$(recoveries killed "$witness")
    lose "$victim"
    start_member killed worker "$victim" "$((victim + 1))"
    until_true 60 has_recovered_more_than killed "$witness" "$before"
    verdict $? "worker $victim of 3 is killed, and replaced" "$(tails killed)"
done
ends_as_undisturbed killed "they end in the same bits"
! grep -h 'back to step\|steps were repeated' killed.*.log
verdict $? "since their neighbours had what was lost" "$(grep -h 'back to\|repeated' killed.*.log)"

start_slow frozen
kill -STOP "${pids[1]}"
until_true 60 tells frozen 0 'declared dead' # its address is not free before it has gone
kill -CONT "${pids[1]}"
await "${pids[1]}"
[[ $? == 163 ]]
verdict $? "one of 3 that was frozen is superseded when it returns" "$(tails frozen)"
start_member frozen worker 1 1
ends_as_undisturbed frozen "and its successor goes on to the same bits"

start_slow neighbours
lose 1 2
start_member neighbours worker 1 1
start_member neighbours worker 2 1
ends_as_undisturbed neighbours "two neighbours are killed at once: the same bits"
tells neighbours 0 'a shard of the optimizer was lost .* back to step [0-9]*00'
verdict $? "the log says what that cost" "$(tails neighbours)"

job lone "$sharded" 20
lone lone
[[ $? == 64 ]] && grep -q 'shardedOptimizer.*this job has only one' lone.log
verdict $? "a lone worker is refused" "$(tails lone)"
