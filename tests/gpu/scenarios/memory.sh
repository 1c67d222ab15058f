# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# GPUs that are too small for a job, and the memory plan for them. Emulated only.

# bulky NAME BATCH DEVICES [STRATEGY [COLLECTIVE]]: a job with many parameters and an equally large batch
bulky() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU, count: $3}
model: {inputShape: [1024], layers: [{type: Dense, units: 1024}, {type: ReLU}, {type: Dense, units: 512}, {type: ReLU}, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: $2}
training: {steps: 1, batchSize: $2, logicalShards: $3, seed: 7, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: ${4:-OneDevice}, collective: ${5:-Auto}}
YAML
}

bulky full 20000 1
EMULATED_GPU_MEMORY=300 refused 72 'memory plan needs [0-9]* MiB of a GPU, which has 300 MiB: parameters 6.0 MiB, gradients 6.0 MiB, optimizer 12 MiB, activations .*, work spaces of streams 192 MiB.*would fit with training.batchSize: [0-9]*, or .*a GPU of' full
! grep -q '^step' full.log
verdict $? "and before any step"
named=$(sed -n 's/.*training.batchSize: \([0-9]*\),.*/\1/p' full.log)
bulky fitting "${named:-1}" 1
EMULATED_GPU_MEMORY=300 lone fitting
verdict $? "with the batch that is named it trains there" "$(tail -n 1 fitting.log)"

# on_gpus_of MIB NAME WORKERS
on_gpus_of() {
    local run=(lone "$2")
    (($3 == 1)) || run=(crew "$2" "$3")
    EMULATED_GPU_MEMORY=$1 EMULATED_MEMORY_COUNTS=1 "${run[@]}"
}

# is_refused MIB NAME WORKERS: at least one worker is refused, and the others may wait for it; there is no other error
is_refused() {
    local refused
    EMULATED_GPU_MEMORY=$1 start_crew "$2" "$3"
    until_true 60 any_has_ended "${pids[@]}"
    end_crew KILL
    grep -qs '^exit 72' "$2".[0-9].log
    refused=$?
    rm -f "$2".*log
    return "$refused"
}

# planned LOG: prints the MiB of a GPU by purpose, as the chief has reported them
planned() {
    sed -n 's/.* of a GPU: //p' "$1" | head -n 1 | grep -o '[0-9.]* MiB' | awk '{ sum += $1 } END { printf "%d", sum }'
}

# most NAME EXPRESSION: prints the largest number, in MiB, that this expression finds in the logs of the job's processes
most() {
    sed -n "s/.*$2.*/\\1/p" "$1".*log | sort -n | tail -n 1
}

# as_planned NAME WORKERS WHAT: the job runs on a GPU with the memory of the plan, but not on one with less. The chief's plan by
# purpose (each reported to half a MiB) is what the GPU's memory adds up to, or `slack` MiB more.
as_planned() {
    local needed taken=0 planned=0 log=$1.log
    (($2 == 1)) || log=$1.0.log
    on_gpus_of 70 "$1" "$2"
    needed=$(most "$1" 'memory plan needs \([0-9]*\) MiB of a GPU')
    rm -f "$1".*log
    is_refused "$((${needed:-0} - 16))" "$1" "$2" && on_gpus_of "$((needed + 6))" "$1" "$2" && planned=$(planned "$log") &&
        taken=$(sed -n 's/^taken of a GPU: \([0-9]*\).*/\1/p' "$log") && ((taken - planned < 4 && planned - taken < ${slack:-4}))
    verdict $? "$3: the plan is what is taken" "$needed MiB, chief: $planned MiB planned, $taken taken, $(tails "$1")"
}

# just_fits NAME DEVICES STRATEGY COLLECTIVE [WORKERS]
just_fits() {
    local workers=${5:-1}
    bulky "$1" 64 "$2" "$3" "$4"
    sed -i "s/logicalShards: $2,/logicalShards: $(($2 * workers)),/" "$1.yaml"
    as_planned "$1" "$workers" "$3, workers: $workers, GPUs each: $2, $4"
}

# staged NAME WORKERS PRECISION [SETTING…]: a job with two stages of about the same size, and settings of the strategy
staged() {
    local rest='{type: Tanh}, {type: GELU}, {type: Tanh}, {type: GELU}, {type: Tanh}, {type: GELU}, {type: Tanh}'
    cat >"$1.yaml" <<YAML
workers: {replicas: $2}
devices: {type: GPU}
model: {inputShape: [256], layers: [{type: Dense, units: 256, device: 0}, $rest, {type: Dense, units: 256, device: 1}, $rest, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 8192}
training: {steps: 1, batchSize: 8192, precision: $3, seed: 7, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: Pipeline, stages: 2, ${4-}microBatches: 4}
YAML
}
just_fits one 1 OneDevice Auto
just_fits hosts 2 Mirrored Hierarchical
just_fits nccls 2 Mirrored NCCL
just_fits centre 2 CentralStorage Auto
just_fits through 1 MultiWorkerMirrored Hierarchical 2
just_fits across 1 MultiWorkerMirrored NCCL 2
slack=12 just_fits sends 1 PeerToPeer Auto 2
EMULATED_NCCL_VERSION=21703 slack=12 just_fits send_pairs 2 PeerToPeer Auto 2
just_fits pieces 2 'MultiWorkerMirrored, shardedOptimizer: true' Auto 2
staged keep 2 Float32
as_planned keep 2 "stages in float32, by NCCL"
staged again 2 Float32 'recompute: true, '
EMULATED_NCCL_VERSION=21703 as_planned again 2 "stages in float32 that compute again, through the host"
staged halves 2 BFloat16
EMULATED_NCCL_VERSION=21703 as_planned halves 2 "stages in bfloat16, through the host"
staged halves_again 2 BFloat16 'recompute: true, '
as_planned halves_again 2 "stages in bfloat16 that compute again, by NCCL"
staged replicas 4 Float32
as_planned replicas 4 "two replicas of two stages"
staged lanes 1 Float32 && with_gpus lanes 2
as_planned lanes 1 "two stages on a worker's GPUs"
staged lanes_halves 1 BFloat16 'recompute: true, ' && with_gpus lanes_halves 4
as_planned lanes_halves 1 "two replicas of two stages on a worker's GPUs, in bfloat16, that compute again"
staged uneven 1 Float32 && with_gpus uneven 2 && sed -i 's/{type: Dense, units: 10}/{type: Dense, units: 20480}, &/; s/8192/64/g' uneven.yaml
as_planned uneven 1 "stages of which the second is the larger, where the worker's own stream is not"
staged crossed 2 Float32 && with_gpus crossed 2 && sed -i 's/stages: 2/stages: 4/; s/device: 1}/device: 2}/; s/{type: Tanh}/{type: Tanh, device: 1}/; s/units: 10}/units: 10, device: 3}/' crossed.yaml
as_planned crossed 2 "four stages on two workers' GPUs"
staged cut 2 Float32 && sed -i 's/, device: [01]//g' cut.yaml
start_pair cut EMULATED_GPU_MEMORY=900 EMULATED_GPU_MEMORY=200
await_crew
[[ $? == 72 ]] && tail -n 1 cut.1.log | grep -q 'memory plan needs [0-9]* MiB of a GPU, which has 200 MiB: parameters .*, activations .*would fit with ' &&
    says cut "exit 72 .*1 of the crew's other workers do not have enough memory for their stages" && ! grep -q '^step ' cut.[01].log
verdict $? "exit 72, both: one's stages, which nobody has named, do not fit once they are cut" "$(tails cut)"
bulky spread 64 2 MultiWorkerMirrored && sed -i 's/units: 1024/units: 20480/' spread.yaml
EMULATED_GPU_MEMORY=785 refused 72 'would fit with strategy.shardedOptimizer: true, or with a GPU of' spread
sed -i 's/MultiWorkerMirrored,/MultiWorkerMirrored, shardedOptimizer: true,/' spread.yaml
EMULATED_GPU_MEMORY=785 lone spread
verdict $? "a lone worker's two GPUs share slots out, as they are told to" "$(tail -n 1 spread.log)"
