# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# PeerToPeer: workers on GPUs, whose changes and meetings go through the host.
reference alone
export EMULATED_PAGEABLE=refused # pinned memory is what is copied

# peering NAME STEPS DEVICE EXCHANGE FOLDER: a model that learns what it is shown, by as many examples as it takes
peering() {
    cat >"$1.yaml" <<YAML
devices: {type: $3}
model: {inputShape: [64], layers: [{type: dense, units: 32}, {type: relu}, {type: dense, units: 10}], loss: softmaxCrossEntropy}
data: {format: synthetic, examples: 640, validation: {last: 128}}
training: {steps: $2, batchSize: 24, precision: ${precision:-float32}, weightRounding: ${rounding:-Nearest}, seed: 7, optimizer: {type: sgd, learningRate: "${rate:-0.05}", momentum: "0.9"}}
strategy: {type: PeerToPeer, exchange: $4}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $5, everySteps: 100}
export: {storage: runs, to: $1.safetensors}
YAML
}

# learnt NAME: by the mean of all, which its chief scores
learnt() {
    says "$1" 'held-out examples: accuracy \(100\|9[5-9]\)'
}

# has_of NAME INDEX OTHER: by its record the replica of this worker has taken in examples of that one
has_of() {
    grep -qs "^peer .* has $3 [1-9]" "$1.$2.record"
}

# meet_each_other NAME: its first two workers
meet_each_other() {
    has_of "$1" 0 1 && has_of "$1" 1 0
}

# trained NAME WORKERS: they end by themselves, on GPUs, having heard of one another
trained() {
    crew "$1" "$2" && says "$1" 'crew .* GPU' && meet_each_other "$1" && learnt "$1"
}

job lonely 12 GPU PeerToPeer lonely
lone lonely && same_weights lonely alone
verdict $? "PeerToPeer: a worker without peers has the bits of OneDevice" "$(tail -n 1 lonely.log)"
for exchange in SendToAll Gossip; do
    peering "$exchange" 400 GPU "$exchange" "$exchange"
    trained "$exchange" 2
    verdict $? "$exchange: two workers on GPUs exchange by pinned memory, and learn" "$(tails "$exchange")"
done
precision=bfloat16 rounding=Stochastic peering halves 400 GPU SendToAll halves
trained halves 2
verdict $? "likewise in bfloat16, to which weights are rounded by chance" "$(tails halves)"

# from_peers NAME INDEX EPOCH: that worker, so young, has begun with the state of a peer
from_peers() {
    grep -qs "^peer .*-$3 begins $2 [1-9]" "$1.$2.record" && ! grep -qs "^peer .*-$3 restored" "$1.$2.record"
}

# finishes NAME INDEX EPOCH: that worker has come as far as steps of its own
finishes() {
    grep -qs "^peer .*-$3 finished $2 " "$1.$2.record"
}

# replaces NAME INDEX: it is killed while all go on, and another takes its place, and the state of a peer
replaces() {
    lose "$2"
    start_member "$1" worker "$2" 1
    until_true 60 finishes "$1" "$2" 1 && from_peers "$1" "$2" 1
}
for exchange in SendToAll Gossip; do
    name=cut-$exchange
    peering "$name" 100000000 GPU "$exchange" "$name"
    for index in 0 1 2; do delay "$name" "$index" 5; done # so that their records stay small
    start_crew "$name" 3
    until_true 60 at_step "$name" 100 && until_true 60 meet_each_other "$name" && replaces "$name" 1
    verdict $? "$exchange: one of three is killed, and its successor has the state from a GPU" "$(tails "$name")"
    replaces "$name" 0
    verdict $? "$exchange: so has the chief's" "$(tails "$name")"
    end_crew TERM
    undelay "$name"
    saved=$(saved_step "$name")
    ((saved > 100)) && peering "$name-cpu" $((saved + 100)) CPU "$exchange" "$name" && crew "$name-cpu" 2 &&
        says "$name-cpu" "resumes from the checkpoint of step $saved" && learnt "$name-cpu"
    verdict $? "$exchange: their mean goes on on CPUs" "$(tails "$name-cpu")"
    peering "$name-back" $((saved + 200)) GPU "$exchange" "$name" && trained "$name-back" 2 &&
        says "$name-back" "resumes from the checkpoint of step $((saved + 100))"
    verdict $? "$exchange: and back on GPUs" "$(tails "$name-back")"
done

# At a rate at which nothing changes what goes from GPU to GPU, into means and checkpoints stays as it was, to the bit.
rate=1e-30 peering still 100000000 GPU SendToAll SendToAll
for index in 0 1; do delay still "$index" 5; done
start_crew still 2
until_true 60 finishes still 1 0 && until_true 60 finishes still 0 0 && replaces still 0 && until_true 60 meet_each_other still
verdict $? "at a rate of next to nothing a chief's successor has its peer's state" "$(tails still)"
end_crew TERM
undelay still
rate=1e-30 peering stiller $(($(saved_step SendToAll) + 20)) GPU SendToAll SendToAll
crew stiller 2 && says stiller 'resumes from the checkpoint of step' && same_weights stiller SendToAll
verdict $? "and what is saved and exported then has the weights of the checkpoint that all began with, bit for bit" "$(tails stiller)"

# Both wait for their 21st batch in the midst of a step. What the chief saves goes from and to its GPU by another thread than the one
# that trains there.
peering stuck 100000000 GPU SendToAll stuck
hold stuck 0 20
hold stuck 1 20
COXSWAIN_GRACE_SECONDS=4 start_crew stuck 2
until_true 60 grep -qs ' finished 0 228$' stuck.0.record && until_true 60 grep -qs ' finished 1 228$' stuck.1.record
kill -TERM "${pids[0]}"
ended_with 143 'was abandoned; a later start goes on from the checkpoint of the last boundary' stuck 0 &&
    has_saved stuck 9 && grep -qs '"replicas":"2 of 2"' stuck/step-*/manifest.json
verdict $? "a chief abandons its step on a GPU, and has saved the mean of all" "$ended, $(tails stuck)"
end_crew KILL
undelay stuck
peering stuck 400 GPU SendToAll stuck
trained stuck 2 && says stuck 'resumes from the checkpoint of step'
verdict $? "a later start goes on from there" "$(tails stuck)"

if plays_gpus; then
    peering mixed 400 Auto SendToAll mixed
    start_pair mixed '' EMULATED_GPUS=0
    await_crew && says mixed 'crew .* GPU' && grep -q 'takes the CPU' mixed.1.log && meet_each_other mixed && learnt mixed
    verdict $? "a peer on a GPU and one on a CPU" "$(tails mixed)"
    peering lost 100000000 GPU SendToAll lost && unsaved lost
    start_pair lost '' 'EMULATED_FAULT=214 EMULATED_FAULT_GRID=4000'
    ended_with 162 'uncorrectable' lost 1 && start_member lost worker 1 1 && until_true 60 finishes lost 1 1 && from_peers lost 1 1
    verdict $? "a peer whose GPU fails ends with 162, and its successor has the state of the other" "$ended, $(tails lost)"
    end_crew KILL
fi
unset EMULATED_PAGEABLE
