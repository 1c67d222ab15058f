# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A sharded optimizer with several GPUs in each worker: slots are sharded among workers and among each worker's GPUs.

# shares NAME STEPS STRATEGY DEVICES FOLDER [TYPE]: a job with twenty-two blocks of the norm, and running statistics
shares() {
    cat >"$1.yaml" <<YAML
devices: {type: ${6:-GPU}, count: $4}
model: {inputShape: [32], layers: [{type: Dense, units: 700}, {type: BatchNorm}, {type: ReLU}, {type: Dense, units: 450}, {type: ReLU}, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 96}
training: {steps: $2, batchSize: 24, logicalShards: 12, seed: 7, precision: ${precision:-Float32}, gradientClipNorm: "0.5", optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: $3}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $5, everySteps: 4}
export: {storage: runs, path: $1.safetensors}
YAML
    [[ $3 == OneDevice ]] || sed -i 's/^strategy: {/&shardedOptimizer: true, /' "$1.yaml"
}

# share_crew NAME WORKERS DEVICES [FOLDER [STEPS]]: runs such a crew from start to end
share_crew() {
    shares "$1" "${5:-12}" MultiWorkerMirrored "$3" "${4:-$1}"
    crew "$1" "$2"
}

# shares_break NAME WORKERS DEVICES INDEX…: the same, but these workers stop in the sixth step, are killed while the others wait,
# and are replaced. The checkpoint that is due by then is complete.
shares_break() {
    local name=$1 workers=$2 index
    # Each device reads its own share of a batch, and reads the next step's during this step's passes.
    for index in "${@:4}"; do delay "$name" "$index" "$(printf '0 %.0s' $(seq $((6 * $3))))86400000"; done
    COXSWAIN_RECORD=$work/$name.record start_crew "$name" "$workers"
    until_true 60 grep -qs '^share [^ ]* [^ ]* 6 ' "$name.record"
    ! grep -q '^checkpoint:' "$name.yaml" || until_true 60 has_saved "$name" 4
    lose "${@:4}"
    undelay "$name"
    for index in "${@:4}"; do start_member "$name" worker "$index" 1; done
    await_crew
}

# has_saved FOLDER STEP
has_saved() {
    (($(saved_step "$1") == $2))
}

shares undivided 12 OneDevice 1 undivided && lone undivided
verdict $? "one GPU that has all slots, to compare with" "$(tail -n 2 undivided.log)"
through_host share_crew pairs 2 2 && grep -q 'through the host' pairs.0.log && same_weights pairs undivided
verdict $? "two workers with two GPUs each share the optimizer's slots, through the host, the bits of one" "$(tails pairs)"
grep -q 'shared out: each of 2 workers keeps .*, a part on each of its 2 GPUs' pairs.0.log
verdict $? "and say so" "$(grep 'shared out' pairs.0.log)"
shares torn 12 MultiWorkerMirrored 2 torn && sed -i '/^checkpoint:/d' torn.yaml
through_host shares_break torn 3 2 1 && grep -q 'the crew is whole again: .*, \(nothing was\|one step was\) repeated' torn.0.log && same_weights torn undivided
verdict $? "one of three is killed with slots that were not saved: the bits of one" "$(tails torn)"
shares spent 12 MultiWorkerMirrored 2 spent
through_host shares_break spent 3 2 1 2 && grep -q 'a shard of the optimizer was lost .*: back to step 4' spent.0.log && same_weights spent undivided
verdict $? "two neighbours are killed: all go back to the checkpoint, the bits of one" "$(tails spent)"
if plays_gpus; then # GPUs that are there cannot be kept from it
    through_host share_crew lonely 1 3 && grep -q 'through the host' lonely.0.log && same_weights lonely undivided
    verdict $? "a lone worker shares them among three GPUs, through the host, the bits of one" "$(tails lonely)"
fi

# The checkpoints of one run, from which it goes on four steps at a time with slots that are sharded differently.
share_crew relay1 2 2 relay 4 && share_crew relay2 1 3 relay 8 && shares relay3 12 OneDevice 1 relay && lone relay3 && same_weights relay3 undivided
verdict $? "checkpoints go from two workers with two GPUs to one with three, and to one GPU: the bits of one" "$(tails relay2) $(tail -n 1 relay3.log)"
shares back1 4 OneDevice 1 back && lone back1 && share_crew back2 3 1 back 8 && share_crew back3 2 3 back 12 && same_weights back3 undivided
verdict $? "and from one GPU to three workers, and to two with three GPUs: the bits of one" "$(tails back3)"
shares onto 12 OneDevice 1 pairs CPU && sed -i 's/steps: 12/steps: 14/' onto.yaml && lone onto && grep -q 'step 14/14' onto.log
verdict $? "the CPU goes on from slots that four GPUs had" "$(tail -n 2 onto.log)"

if can_sum 2 2 "slots shared out among several GPUs a worker by NCCL"; then
    share_crew pairs1 2 2 && grep -q 'by NCCL' pairs1.0.log && same_weights pairs1 undivided
    verdict $? "by NCCL: gradients to the GPUs that own slots and their mirrors, parameters to all, the bits of one" "$(tails pairs1)"
    shares torn1 12 MultiWorkerMirrored 2 torn1 && sed -i '/^checkpoint:/d' torn1.yaml
    shares_break torn1 2 2 1 && grep -q 'by NCCL' torn1.0.log && grep -q 'the crew is whole again: .*, \(nothing was\|one step was\) repeated' torn1.0.log && same_weights torn1 undivided
    verdict $? "and killed during a step: the GPUs of the other worker have mirrored its slots" "$(tails torn1)"
fi
if can_sum 1 3 "slots shared out among a lone worker's GPUs by NCCL"; then
    share_crew lonely1 1 3 && grep -q 'by NCCL' lonely1.0.log && same_weights lonely1 undivided
    verdict $? "a lone worker's three GPUs by NCCL, the bits of one" "$(tails lonely1)"
fi
precision=BFloat16
shares brief 12 OneDevice 1 brief && lone brief
share_crew briefs 2 2 && same_weights briefs brief && ! same_weights brief undivided
verdict $? "and in bfloat16" "$(tails briefs)"
precision=
