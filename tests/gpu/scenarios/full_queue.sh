# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A step with more parts than an emulated stream has room for, behind a part that does not finish.

# deep NAME STRATEGY: a job in which each layer is a part
deep() {
    local layers='{type: Dense, units: 1450}' i
    for i in {2..8}; do layers+=", {type: Dense, units: 1450}"; done
    cat >"$1.yaml" <<YAML
devices: {type: GPU}
model: {inputShape: [32], layers: [$layers, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 8}
training: {steps: 1, batchSize: 2, logicalShards: 2, seed: 7, optimizer: {type: SGD, learningRate: "1e-3"}}
strategy: {type: $2}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

deep plain OneDevice && lone plain && deep dammed MultiWorkerMirrored
export EMULATED_QUEUE=23 # the launch that is one too many is the own of a host that does not hold back, not of its NCCL
start_pair dammed '' EMULATED_NCCL_SLOW_MS=86400000
until_true 60 says dammed 'functions are on a stream'
kill -STOP "${pids[1]}" # it is missed some time later than if it were killed: by then all that can be queued is
until_true 60 is_missed dammed
lose 1
start_member dammed worker 1 1
await_crew && says dammed 'the crew is whole again' && same_weights dammed plain
verdict $? "a stream that takes no more launches behind a lost worker holds nobody: the bits of one" "$(tails dammed)"
unset EMULATED_QUEUE
