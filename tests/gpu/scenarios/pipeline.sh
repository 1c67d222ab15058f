# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Stages on GPUs of several workers, which exchange values and gradients through the host or by NCCL.
reference single

# stages NAME WORKERS: a job with two stages
stages() {
    job "$1" 20 GPU Pipeline "$1" Auto Crew 4
    sed -i "s/^strategy: {/workers: {replicas: $2}\n&stages: 2, /" "$1.yaml"
}

stages piped 2
through_host crew piped 2 && says piped 'through the host, not by NCCL' && same_weights piped single
verdict $? "Pipeline: two workers with a stage on a GPU each, through the host, the bits of one" "$(tails piped)"
stages wound 4 && unsaved wound
through_host loses_one wound 4 && says wound 'through the host' && same_weights wound single
verdict $? "two replicas of two stages, one of them killed during a step, the bits of one" "$(tails wound)"

# vectors LOG: prints the number of vectors that the process has sent and received by NCCL
vectors() {
    sed -n 's/^vectors by NCCL: //p' "$1"
}

if can_sum 2 1 "Pipeline by NCCL"; then
    stages piped1 2
    EMULATED_NCCL_COUNTS=1 crew piped1 2 && says piped1 'from GPU to GPU by NCCL' && same_weights piped1 single
    verdict $? "from GPU to GPU by NCCL, the bits of one" "$(tails piped1)"
fi
if can_sum 4 1 "Pipeline's replicas by NCCL"; then
    stages piped2 4
    EMULATED_LATE=all EMULATED_NCCL_SLOW_MS=5 crew piped2 4 && says piped2 'by NCCL' && same_weights piped2 single
    verdict $? "two replicas, however late streams are" "$(tails piped2)"
    stages wound1 4 && unsaved wound1
    loses_one wound1 4 && says wound1 'by NCCL' && same_weights wound1 single && kept wound1
    verdict $? "and one stage killed during a step: the crew goes on with the other replica's" "$(tails wound1)"
fi
if plays_gpus; then
    stages piped3 4
    EMULATED_NCCL_COUNTS=1 crew piped3 4; (($? == 0 && $(vectors piped3.0.log) == $(vectors piped1.0.log) / 2 + 20 * 4)) && same_weights piped3 single
    verdict $? "replicas with gradients by NCCL, too: half of the micro-batches, and four vectors a step for sums" "$(tails piped3)"
fi

if can_sum 3 1 "three stages by NCCL"; then
    heavy flat OneDevice 1 && lone flat
    heavy layered Pipeline 3 ", device: 0" ", device: 1" ", device: 2"
    sed -i 's/, logicalShards: 5//; s/^strategy: {/&microBatches: 5, /' layered.yaml
    crew layered 3 && says layered 'by NCCL' && same_weights layered flat && [[ -n $(validations flat.log) && $(validations layered.0.log) == "$(validations flat.log)" ]]
    verdict $? "three stages that give each other much, the bits and evaluations of one" "$(tails layered)"
fi

# between NAME TYPE WORKERS [SUFFIX]: two equal stages would be cut at the GELU, which has the SUFFIX
between() {
    cat >"$1.yaml" <<YAML
workers: {replicas: $3}
devices: {type: GPU}
model: {inputShape: [16], layers: [{type: Dense, units: 16}, {type: Tanh}, {type: Dense, units: 512}, {type: GELU${4-}}, {type: Dense, units: 16}, {type: Tanh}, {type: Dense, units: 3}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 160}
training: {steps: 4, batchSize: 40, logicalShards: 4, precision: BFloat16, seed: 7, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: $2}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

precision=BFloat16
tied bound OneDevice 1 && lone bound
tied bound2 Pipeline 2 "stages: 2, recompute: true, "
through_host crew bound2 2 && says bound2 'through the host' && same_weights bound2 bound
verdict $? "bfloat16: a shared table over two stages that compute again, through the host, the bits of one" "$(tails bound2)"
tied bound4 Pipeline 4 "stages: 2, "
loses_one bound4 4 && same_weights bound4 bound
verdict $? "two replicas in bfloat16, one of their stages killed during a step, the bits of one" "$(tails bound4)"
tied joined OneDevice 1 && COXSWAIN_GPU_LT=1 lone joined && ! same_weights joined bound
verdict $? "GELUs by cuBLASLt, with products: other bits" "$(tail -n 1 joined.log)"
tied joined2 Pipeline 2 "stages: 2, recompute: true, "
COXSWAIN_GPU_LT=1 crew joined2 2 && same_weights joined2 joined
verdict $? "and stages have those of one GPU" "$(tails joined2)"
between whole OneDevice 1 && COXSWAIN_GPU_LT=1 lone whole
between parted Pipeline 2
COXSWAIN_GPU_LT=1 crew parted 2 && same_weights parted whole
verdict $? "also where costs would cut a GELU off from its product" "$(tails parted)"
between torn_off Pipeline 2 ", device: 1"
COXSWAIN_GPU_LT=1 crew torn_off 2
[[ $? == 64 ]] && says torn_off 'a GELU and a dense layer beside it in one product; place them on one device, or leave COXSWAIN_GPU_LT out'
verdict $? "exit 64: a GELU that is placed apart from its product" "$(tails torn_off)"
between torn_off Pipeline 2 ", device: 1" && crew torn_off 2 && between unjoined OneDevice 1 && lone unjoined && same_weights torn_off unjoined
verdict $? "without cuBLASLt it may be, with the bits of one GPU" "$(tails torn_off)"
precision=
narrow thin OneDevice 1 && lone thin
narrow thin2 Pipeline 2 ", device: 0" ", device: 1"
sed -i 's/, logicalShards: 5//; s/^strategy: {/&microBatches: 5, /' thin2.yaml
through_host crew thin2 2 && same_weights thin2 thin && [[ -n $(validations thin.log) && $(validations thin2.0.log) == "$(validations thin.log)" ]]
verdict $? "float16: an odd number of values, dropout, the bits and evaluations of one" "$(tails thin2)"
sed -i 's/steps: 8/steps: 12/; s/thin2.safetensors/thinner.safetensors/' thin2.yaml
sed -i 's/steps: 8/steps: 12/' thin.yaml
lone thin
if can_sum 2 1 "float16 by NCCL"; then
    crew thin2 2 && says thin2 'from GPU to GPU by NCCL' && same_weights thinner thin
    verdict $? "and by NCCL, from the checkpoint of stages that went through the host" "$(tails thin2)"
fi
if plays_gpus; then
    precision=BFloat16 tied torn Pipeline 2 "stages: 2, "
    sed -i 's/type: GPU/type: Auto/; s/determinism: Crew/determinism: Run/' torn.yaml
    start_pair torn EMULATED_GPUS=1 EMULATED_GPUS=0
    await_crew
    [[ $? == 64 ]] && says torn 'set devices.type to GPU or to CPU for all workers'
    verdict $? "exit 64: a stage on a GPU and one on a CPU, in 16 bits" "$(tails torn)"
fi

# hangs NAME: worker 1's GPU does not finish, and worker 0 waits for it in NCCL forever when worker 1 is killed
hangs() {
    stages "$1" 2
    start_pair "$1" '' EMULATED_NCCL_SLOW_MS=86400000
    until_true 60 grep -qs '^share ' "$1.0.record"
    lose 1
}

if plays_gpus; then
    hangs cleft
    start_member cleft worker 1 1
    await_crew && says cleft 'by NCCL' && same_weights cleft single
    verdict $? "a stage killed while another waits for it in NCCL: all go on with its successor, the bits of one" "$(tails cleft)"
    EMULATED_NCCL_ABORT=hangs hangs clung
    wait "${pids[0]}"
    [[ $? == 160 ]] && tail -n 1 clung.0.log | grep -q 'NCCL did not abort'
    verdict $? "exit 160: NCCL that does not come back from an abort in a stage" "$(tail -n 2 clung.0.log)"
fi
