#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# training.weightRounding: Stochastic draws the same weights whoever computes, under all strategies that promise the same bits and
# across a restart; a run that goes on with another rounding says so; it learns. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
. "$root/tests/integration/same_bits.sh"

gpt='preset: gpt2-124m, depth: 2, width: 24, heads: 2, context: 16, vocabulary: 300, dropout: "0.2"' # its output is tied
synthetic='format: synthetic, examples: 70, validation: {last: 10}'

# job NAME [FOLDER]: FOLDER is that of its checkpoints
job() {
    cat >"$1.yaml" <<YAML
devices: {count: ${devices:-1}}
model: {${model:-$gpt}}
data: {${data:-$synthetic}}
training: {steps: ${steps:-12}, batchSize: ${batch:-10}, logicalShards: 4, seed: 7, precision: ${precision:-bfloat16}, weightRounding: ${rounding:-Stochastic}, optimizer: {type: adamw, learningRate: "2e-3"}}
strategy: {type: ${strategy:-OneDevice}${more:-}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${2:-$1}, everySteps: 6, keep: 2}
export: {to: $1.safetensors, storage: runs}
YAML
}

for precision in bfloat16 float16; do
    rounding=Nearest job nearest
    lone nearest
    verdict $? "$precision: trains with the nearest" "$(tail -n 1 nearest.log)"
    job one
    lone one && ! same_weights one nearest
    verdict $? "$precision: trains to other weights with draws" "$(tail -n 1 one.log)"
    whoever_computes one "$precision"
    strategy=MultiWorkerMirrored more=', shardedOptimizer: true' job shards
    crew shards 2 && same_weights shards one
    verdict $? "$precision: two workers that share the slots: the bits of one" "$(tails shards)"
    steps=6 job begun
    lone begun && job ended begun && lone ended && same_weights ended one
    verdict $? "$precision: goes on from a checkpoint with the bits of a run that was not cut" "$(tail -n 2 ended.log)"
    rm -rf nearest one threads crew mirrors stages shards begun
done
precision=bfloat16

job one
lone one
strategy=Pipeline job line
crew line 2 && same_weights line one
verdict $? "stages in two workers: the bits of one" "$(tails line)"
more=', recompute: true' job again
lone again && same_weights again one
verdict $? "what is computed again reads the weights that were drawn: the same bits" "$(tail -n 1 again.log)"
strategy=ParameterServer more=', mode: Synchronous' job served
crew served 2 1 && same_weights served one
verdict $? "two workers of a server that wait for each other: the bits of one" "$(tails served)"

# draws_alone NAME WORKERS WHAT: weights that are nobody else's are drawn, too, and to the same bits again with other threads
draws_alone() {
    rounding=Nearest job "$1-nearest"
    crew "$1-nearest" "$2" && job "$1" && crew "$1" "$2" && ! same_weights "$1" "$1-nearest" && worker_options=(--threads 3) &&
        job "$1-again" && crew "$1-again" "$2" && same_weights "$1-again" "$1"
    verdict $? "$3" "$(tails "$1-nearest") $(tails "$1") $(tails "$1-again")"
    worker_options=(--threads 1)
}
strategy=MultiWorkerMirrored more=', localSteps: 3' draws_alone rounds 2 "local steps draw, the same each time"
strategy=PeerToPeer draws_alone peer 1 "and so does a peer"

rounding=Nearest steps=18 job back one
lone back && grep -q "had training.weightRounding Stochastic, those to come have Nearest" back.log
verdict $? "a run that goes on with the nearest says so" "$(tail -n 2 back.log)"
steps=24 job forth one
lone forth && grep -q "had training.weightRounding Nearest, those to come have Stochastic" forth.log
verdict $? "and one that goes on with draws" "$(tail -n 2 forth.log)"
steps=30 job on one
lone on && ! grep -q "weightRounding" on.log
verdict $? "and one that goes on as before says nothing" "$(tail -n 2 on.log)"

make_digits
model='preset: lenet' data="format: idx, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}" steps=36 batch=50 job digits
lone digits && grep -q 'accuracy 9[0-9]\|accuracy 100' digits.log
verdict $? "learns the digits" "$(grep -h accuracy digits.log | tail -n 1)"

precision=float32 job plain
refused 64 'training.weightRounding' plain
