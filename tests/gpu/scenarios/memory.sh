# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# GPUs that are too small for a job, and what the memory plan says of them: emulated.

# bulky NAME BATCH DEVICES [STRATEGY [COLLECTIVE]]: many parameters, and a batch that is as large
bulky() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU, count: $3}
model: {inputShape: [1024], layers: [{type: dense, units: 1024}, {type: relu}, {type: dense, units: 512}, {type: relu}, {type: dense, units: 10}], loss: softmaxCrossEntropy}
data: {format: synthetic, examples: $2}
training: {steps: 1, batchSize: $2, logicalShards: $3, seed: 7, optimizer: {type: adamw, learningRate: "1e-3"}}
strategy: {type: ${4:-OneDevice}, collective: ${5:-Auto}}
YAML
}

bulky full 20000 1
EMULATED_GPU_MEMORY=300 refused 72 'memory plan needs .* GiB of a GPU, which has 0.29 GiB: parameters 6.0 MiB, gradients 6.0 MiB, optimizer 12 MiB, activations .*, work spaces of streams 192 MiB.*would fit with training.batchSize: [0-9]*, or .*a GPU of' full
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
    EMULATED_GPU_MEMORY=$1 "${run[@]}"
}

# just_fits NAME DEVICES STRATEGY COLLECTIVE [WORKERS]: it runs where a GPU has what the plan says (told to 5 MiB), not where it has less
just_fits() {
    local needed log=$1.log workers=${5:-1}
    ((workers == 1)) || log=$1.0.log
    bulky "$1" 64 "$2" "$3" "$4"
    sed -i "s/logicalShards: $2,/logicalShards: $(($2 * workers)),/" "$1.yaml"
    on_gpus_of 70 "$1" "$workers"
    needed=$(sed -n 's/.*memory plan needs \([0-9.]*\) GiB of a GPU.*/\1/p' "$log" | awk '{ printf "%d", $1 * 1024 + 0.999 }')
    on_gpus_of "$((${needed:-0} - 16))" "$1" "$workers"
    [[ $? == 72 ]] && on_gpus_of "$((needed + 6))" "$1" "$workers"
    verdict $? "$3, workers: $workers, GPUs each: $2, $4: the plan is what is taken" "$needed MiB, $(tail -n 1 "$log")"
}
just_fits one 1 OneDevice Auto
just_fits hosts 2 Mirrored Hierarchical
just_fits nccls 2 Mirrored NCCL
just_fits centre 2 CentralStorage Auto
just_fits through 1 MultiWorkerMirrored Hierarchical 2
just_fits across 1 MultiWorkerMirrored NCCL 2
just_fits sends 1 'PeerToPeer, exchange: SendToAll' Auto 2
just_fits gossips 1 'PeerToPeer, exchange: Gossip' Auto 2
just_fits pieces 2 'MultiWorkerMirrored, shardedOptimizer: true' Auto 2
bulky spread 64 2 MultiWorkerMirrored && sed -i 's/units: 1024/units: 20480/' spread.yaml
EMULATED_GPU_MEMORY=785 refused 72 'would fit with strategy.shardedOptimizer: true, or with a GPU of' spread
sed -i 's/MultiWorkerMirrored,/MultiWorkerMirrored, shardedOptimizer: true,/' spread.yaml
EMULATED_GPU_MEMORY=785 lone spread
verdict $? "a lone worker's two GPUs share slots out, as they are told to" "$(tail -n 1 spread.log)"
