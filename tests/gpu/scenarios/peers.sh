# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# PeerToPeer: workers with one or several GPUs each. Changes and meetings go through the host.
reference alone
export EMULATED_PAGEABLE=refused # pinned memory is what is copied

# peering NAME STEPS DEVICE FOLDER [DEVICES]: a job that learns its examples; the caller may set rate, precision and logical shards
peering() {
    cat >"$1.yaml" <<YAML
devices: {type: $3, count: ${5:-1}}
model: {inputShape: [64], layers: [{type: Dense, units: 32}, {type: ReLU}, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 640, validation: {last: 128}}
training: {steps: $2, batchSize: 24, precision: ${precision:-Float32},${shards:+ logicalShards: $shards,} seed: 7, optimizer: {type: SGD, learningRate: "${rate:-0.05}", momentum: "0.9"}}
strategy: {type: PeerToPeer}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $4, everySteps: 100}
export: {storage: runs, path: $1.safetensors}
YAML
}

# learnt NAME: the mean of all replicas, which the chief evaluates, has learnt the examples
learnt() {
    says "$1" 'held-out examples: accuracy \(100\|9[5-9]\)'
}

# has_of NAME INDEX OTHER: by its record, this worker's replica has taken in examples of the other worker
has_of() {
    grep -qs "^peer .* has $3 [1-9]" "$1.$2.record"
}

# meet_each_other NAME: the first two workers meet
meet_each_other() {
    has_of "$1" 0 1 && has_of "$1" 1 0
}

# trained NAME WORKERS: the workers end by themselves, on GPUs, and have received each other's changes
trained() {
    crew "$1" "$2" && says "$1" 'crew .* GPU' && meet_each_other "$1" && learnt "$1"
}

job lonely 12 GPU PeerToPeer lonely
lone lonely && same_weights lonely alone
verdict $? "PeerToPeer: a worker without peers has the bits of OneDevice" "$(tail -n 1 lonely.log)"
peering peers 400 GPU peers
trained peers 2
verdict $? "two workers on GPUs exchange by pinned memory, and learn" "$(tails peers)"
precision=BFloat16 peering halves 400 GPU halves
trained halves 2
verdict $? "two workers learn in bfloat16, too" "$(tails halves)"

# from_peers NAME INDEX INCARNATION: this incarnation of the worker has begun with a peer's state
from_peers() {
    grep -qs "^peer .*-$3 begins $2 [1-9]" "$1.$2.record" && ! grep -qs "^peer .*-$3 restored" "$1.$2.record"
}

# finishes NAME INDEX INCARNATION: this incarnation of the worker has finished steps
finishes() {
    grep -qs "^peer .*-$3 finished $2 " "$1.$2.record"
}

# replaces NAME INDEX: the worker is killed while the others go on, and another takes its place with a peer's state
replaces() {
    lose "$2"
    start_member "$1" worker "$2" 1
    until_true 60 finishes "$1" "$2" 1 && from_peers "$1" "$2" 1
}
name='cut'
peering "$name" 100000000 GPU "$name"
for index in 0 1 2; do delay "$name" "$index" 5; done # so that their records stay small
start_crew "$name" 3
until_true 60 at_step "$name" 100 && until_true 60 meet_each_other "$name" && replaces "$name" 1
verdict $? "one of three is killed, and its successor has the state from a GPU" "$(tails "$name")"
replaces "$name" 0
verdict $? "the chief's successor has the state from a GPU, too" "$(tails "$name")"
end_crew TERM
undelay "$name"
saved=$(saved_step "$name")
((saved > 100)) && peering "$name-cpu" $((saved + 100)) CPU "$name" && crew "$name-cpu" 2 &&
    says "$name-cpu" "resumes from the checkpoint of step $saved" && learnt "$name-cpu"
verdict $? "their mean goes on on CPUs" "$(tails "$name-cpu")"
peering "$name-back" $((saved + 200)) GPU "$name" && trained "$name-back" 2 &&
    says "$name-back" "resumes from the checkpoint of step $((saved + 100))"
verdict $? "and back on GPUs" "$(tails "$name-back")"

# At a rate that changes nothing, the values that go from GPU to GPU, into means and into checkpoints must keep their bits.
rate=1e-30 peering still 100000000 GPU peers
for index in 0 1; do delay still "$index" 5; done
start_crew still 2
until_true 60 finishes still 1 0 && until_true 60 finishes still 0 0 && replaces still 0 && until_true 60 meet_each_other still
verdict $? "at a rate of next to nothing a chief's successor has its peer's state" "$(tails still)"
end_crew TERM
undelay still
rate=1e-30 peering stiller $(($(saved_step peers) + 20)) GPU peers
crew stiller 2 && says stiller 'resumes from the checkpoint of step' && same_weights stiller peers
verdict $? "and what is saved and exported then has the weights of the checkpoint that all began with, bit for bit" "$(tails stiller)"

# gives_up NAME GPUS: two workers with this number of GPUs each both wait for their 21st batch during a step. The thread that copies the
# chief's state for a checkpoint is not the one that trains.
gives_up() {
    peering "$1" 100000000 GPU "$1" "$2"
    hold "$1" 0 $((20 * $2)) # each GPU reads its own
    hold "$1" 1 $((20 * $2))
    COXSWAIN_GRACE_SECONDS=4 start_crew "$1" 2
    until_true 60 grep -qs ' finished 0 228$' "$1.0.record" && until_true 60 grep -qs ' finished 1 228$' "$1.1.record"
    kill -TERM "${pids[0]}"
    ended_with 143 'was abandoned; a later start goes on from the checkpoint of the last boundary' "$1" 0 &&
        has_saved "$1" 9 && grep -qs '"replicas":"2 of 2"' "$1"/step-*/manifest.json
    verdict $? "a chief with GPUs: $2 abandons its step, and has saved the mean of all" "$ended, $(tails "$1")"
    end_crew KILL
    undelay "$1"
}
gives_up stuck 1
peering stuck 400 GPU stuck
trained stuck 2 && says stuck 'resumes from the checkpoint of step'
verdict $? "a later start goes on from there" "$(tails stuck)"

# by_itself NAME: one of two peers is killed before its first step. With fewer steps than between two meetings, the result of the other
# depends on the job only.
by_itself() {
    hold "$1" 0 1
    hold "$1" 1 1
    start_crew "$1" 2
    until_true 60 grep -qs ' begins 0 ' "$1.0.record" && until_true 60 grep -qs ' begins 1 ' "$1.1.record" || return
    lose 1
    undelay "$1"
    await "${pids[0]}"
}

# several_each NAME GPUS: a job for a peer with this number of GPUs, with dropout, batch statistics and a clipped norm
several_each() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU, count: $2}
model: {inputShape: [8, 8, 2], layers: [{type: Conv2D, filters: 4, kernel: 3}, {type: BatchNorm}, {type: ReLU}, {type: Flatten}, {type: Dropout, rate: "0.2"}, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 38, validation: {last: 8}}
training: {steps: 7, batchSize: 16, logicalShards: 8, precision: ${precision:-Float32}, seed: 7, gradientClipNorm: "0.5", optimizer: {type: SGD, learningRate: "1e-2", momentum: "0.9"}}
strategy: {type: PeerToPeer}
evaluation: {everySteps: 2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 3}
export: {storage: runs, path: $1.safetensors}
YAML
}
# twice_by_itself NAME: runs it alone, and again as NAME-on from its last checkpoint, where neither the step nor the place among the
# examples is 0
twice_by_itself() {
    sed "s/steps: 7/steps: 12/; s/path: $1[.]safetensors/path: $1-on.safetensors/" "$1.yaml" >"$1-on.yaml"
    by_itself "$1" && by_itself "$1-on" && says "$1-on" 'resumes from the checkpoint of step 7'
}

# like_one NAME WAY [COMMAND…]: with late streams, both runs have the bits of `one`; WAY is the reported path between the worker's own
# GPUs
like_one() {
    EMULATED_LATE=all "${@:3}" twice_by_itself "$1" && says "$1" ' devices each: GPU' && same_weights "$1" one &&
        same_weights "$1-on" one-on && [[ $(validations "$1.0.log") == "$(validations one.0.log)" ]] &&
        [[ $(sed -n "s/.*own GPUs tell each other goes \([a-zA-Z, ]* NCCL\).*/\1/p" "$1.0.log") == "$2" ]]
}
if can_have 2 "several GPUs in a peer"; then
    job couple 12 GPU PeerToPeer couple Auto Crew 2 2
    lone couple && same_weights couple alone && grep -q '2 devices each: GPU' couple.log
    verdict $? "a worker without peers and with two GPUs has the bits of OneDevice" "$(tail -n 1 couple.log)"
    several_each one 1 && twice_by_itself one && says one 'step 7/7'
    verdict $? "a peer that is left alone does all steps" "$(tails one)"
    for each in 2 4; do
        can_have "$each" "$each GPUs in a peer" || continue
        way=
        if can_sum 1 "$each" "$each GPUs in a peer by NCCL"; then way='from GPU to GPU by NCCL'; fi
        several_each "of$each" "$each" && like_one "of$each" "$way"
        verdict $? "$each GPUs in a peer have the bits of one" "$(tails "of$each")"
        if plays_gpus; then
            several_each "host$each" "$each" && like_one "host$each" 'through the host, not by NCCL' through_host
            verdict $? "and by way of the host, where NCCL cannot connect them" "$(tails "host$each")"
        fi
    done
    if plays_gpus; then
        several_each spoilt2 2 && EMULATED_PEERS_SPOIL=1 like_one spoilt2 'through the host, not by NCCL' &&
            says spoilt2 "this worker's GPUs spoil what they copy" && [[ $(grep -c 'GPU [01] and GPU [01] copy to each other by way of the host' spoilt2.0.log) == 1 ]]
        verdict $? "and where a trial shows that direct copies arrive spoilt" "$(tails spoilt2)"
    fi
    precision=BFloat16 several_each half1 1 && precision=BFloat16 several_each half2 2
    twice_by_itself half1 && twice_by_itself half2 && same_weights half2-on half1-on && same_weights half2 half1 && ! same_weights half2 one
    verdict $? "the same in bfloat16" "$(tails half2)"
    name=pairs
    peering "$name" 400 GPU "$name" 2
    trained "$name" 2
    verdict $? "two workers with two GPUs each learn" "$(tails "$name")"
    name=cut-pairs
    peering "$name" 100000000 GPU "$name" 2
    for index in 0 1; do delay "$name" "$index" 5; done
    start_crew "$name" 2
    until_true 60 at_step "$name" 100 && until_true 60 meet_each_other "$name" && replaces "$name" 1 && replaces "$name" 0
    verdict $? "either is killed, and its successor has the state from the other's first GPU" "$(tails "$name")"
    end_crew TERM
    undelay "$name"
    saved=$(saved_step "$name")
    ((saved > 100)) && peering "$name-one" $((saved + 100)) GPU "$name" && trained "$name-one" 2 &&
        says "$name-one" "resumes from the checkpoint of step $saved"
    verdict $? "their mean goes on on one GPU each" "$(tails "$name-one")"
    gives_up stuck-pairs 2
    through_host gives_up stuck-hosted 2
    shards=2 peering few 400 GPU few 2
    start_crew few 2
    ended_with 64 "training.logicalShards: 2 shards are too few for 2 workers of 2 devices; give at least one a device" few 0
    verdict $? "exit 64: fewer shards than GPUs" "$ended"
    end_crew KILL
    shards=8 peering both 400 GPU both 2 && shards=8 peering sole 400 GPU both 1
    cluster="{\"worker\":$(hosts 1 2)}" pids=()
    start_member both worker 0
    start_member sole worker 1
    await_crew && says both '2 devices each: GPU' && has_of both 0 1 && has_of sole 1 0 && learnt both
    verdict $? "a peer on two GPUs and one on one" "$(tails both) $(tails sole)"
fi

if plays_gpus; then
    peering mixed 400 Auto mixed
    start_pair mixed '' EMULATED_GPUS=0
    await_crew && says mixed 'crew .* GPU' && grep -q 'takes the CPU' mixed.1.log && meet_each_other mixed && learnt mixed
    verdict $? "a peer on a GPU and one on a CPU" "$(tails mixed)"
    peering mixed2 400 Auto mixed2 2
    start_pair mixed2 '' EMULATED_GPUS=0
    await_crew && says mixed2 '2 devices each: GPU' && grep -q 'takes the CPU' mixed2.1.log && meet_each_other mixed2 && learnt mixed2
    verdict $? "a peer on two GPUs and one on two devices of a CPU" "$(tails mixed2)"
    for each in 1 2; do
        name=lost$each
        peering "$name" 100000000 GPU "$name" "$each" && unsaved "$name"
        start_pair "$name" '' 'EMULATED_FAULT=214 EMULATED_FAULT_GRID=4000'
        ended_with 162 'uncorrectable' "$name" 1 && start_member "$name" worker 1 1 && until_true 60 finishes "$name" 1 1 && from_peers "$name" 1 1
        verdict $? "a peer with GPUs: $each, of which one fails, ends with 162, and its successor has the state of the other" "$ended, $(tails "$name")"
        end_crew KILL
    done
fi
unset EMULATED_PAGEABLE
