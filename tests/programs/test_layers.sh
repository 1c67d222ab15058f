#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Presets and layers that XLA computes (worker/model/lowering.h), beside the worker's own operations: each kind of layer, whole models
# for 100 steps, the strategies' bits, kills, and TPUs, whose place a CPU's devices take. Prints ok/not ok lines (see tests/run).
#
#   BUILD    the ordinary build; the one with XLA=1 lies below it
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/programs/with_plugin.sh"
. "$root/tests/programs/models.sh"
unset COXSWAIN_PJRT_PLUGIN

make_digits
perl -e 'print join(" ", map { (qw(to be or not that is the question))[$_ * $_ % 8 ^ $_ % 3] } 1 .. 4000)' >corpus.txt

digits="{format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}"
texts="{format: Bytes, train: {text: $work/corpus.txt}, validation: {last: 16}}"
sgd='{type: SGD, learningRate: "1"}' adamw='{type: AdamW, learningRate: "2e-3"}'

# job NAME MODEL DATA STEPS OPTIMIZER [STRATEGY [DEVICES]]
job() {
    cat >"$1.yaml" <<YAML
model: $2
data: $3
training: {steps: $4, batchSize: 50, logicalShards: 4, seed: ${seed:-7}, optimizer: $5}
strategy: {type: ${6:-OneDevice}}
devices: {count: ${7:-1}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${from:-$1}, everySteps: 5, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

# through_xla NAME: the same job by the plugin, as NAME-xla
through_xla() {
    sed "s|^devices: {|&plugin: $newer, |; s|path: $1|path: $1-xla|" "$1.yaml" >"$1-xla.yaml"
}

# near NAME MOST [START]: by our own operations and by XLA, the job NAME ends with weights that are no further apart than MOST; with the
# export START, the changes since then
near() {
    local apart=failed
    through_xla "$1"
    lone "$1" && lone "$1-xla" && grep -q "^model .*cpu by PJRT" "$1-xla.log" &&
        apart=$(python "$root/tests/programs/distance.py" "$1.safetensors" "$1-xla.safetensors" ${3:+"$3.safetensors"}) &&
        awk -v apart="$apart" -v most="$2" 'BEGIN { exit !(apart <= most) }'
    verdict $? "$1: by XLA, $apart from our own operations" "$(tails "$1") $(tails "$1-xla")"
}

# gradients NAME MODEL DATA: those of one step
gradients() {
    job "$1-start" "$2" "$3" 1 '{type: SGD, learningRate: "1e-38"}'
    lone "$1-start"
    job "$1" "$2" "$3" 1 "$sgd"
    near "$1" 1e-5 "$1-start"
}

# ---- one step: the gradients

gradients layers "$images_layers" "$digits"
gradients text-layers "$small_gpt" "$texts"
gradients tied "$tied" "$texts"
gradients squares '{inputShape: [28, 28, 1], loss: MeanSquaredError, layers: [{type: Flatten}, {type: Dense, units: 3}, {type: Tanh}, {type: Dense, units: 1}]}' \
    "$(python -c "
import numpy as np
images = np.random.RandomState(1).rand(200, 28, 28, 1).astype(np.float32)
np.save('pixels.npy', images)
np.save('sums.npy', images.mean(axis=(1, 2)))
print('{format: NPY, train: {images: $work/pixels.npy, labels: $work/sums.npy}}')")"
# With seed 7 a sum of a residual block is zero but for rounding, so that its rectifier passes the gradient in one of the two only.
seed=8 gradients resnet "$small_resnet" "$digits"
newest=$newer newer=$older
gradients older "$images_layers" "$digits"
gradients older-text "$small_gpt" "$texts"
newer=$newest

# ---- 100 steps

for model in mlp lenet; do
    job "$model" "{preset: $model}" "$digits" 100 '{type: SGD, learningRate: "5e-2", momentum: "0.9"}'
    near "$model" 1e-3
    grep -q "held-out examples: accuracy \(9[0-9]\|100\)" "$model-xla.log"
    verdict $? "$model: learns the digits by XLA" "$(tails "$model-xla")"
done
job gpt "$small_gpt" "$texts" 100 '{type: SGD, learningRate: "5e-2", momentum: "0.9"}'
near gpt 1e-3
job halves '{preset: lenet}' "$digits" 30 "$adamw"
sed -i 's/^training: {/&precision: BFloat16, /' halves.yaml
through_xla halves
lone halves-xla && grep -q "held-out examples: accuracy \(9[0-9]\|100\)" halves-xla.log
verdict $? "BFloat16: learns the digits by XLA" "$(tails halves-xla)"

# ---- the same bits for any number of workers, through kills, and on what stands for TPUs

# xla_job NAME [STRATEGY [DEVICES]]: of a network with dropout and statistics of batches
xla_job() {
    job "$1" "$images_layers" "$digits" 30 "$adamw" "${@:2}"
    sed -i "s|^devices: {|&plugin: $newer, |" "$1.yaml"
}

xla_job one
lone one
xla_job pair MultiWorkerMirrored
crew pair 2 && same_weights pair one
verdict $? "two workers: the bits of one" "$(tails pair)"
xla_job central CentralStorage 2
lone central && same_weights central one
verdict $? "CentralStorage: the bits of one device" "$(tails central)"
xla_job served ParameterServer
sed -i 's/^strategy: {/&mode: Synchronous, /' served.yaml
crew served 2 1 && same_weights served one
verdict $? "ParameterServer, Synchronous: the bits of one device" "$(tails served)"
xla_job killed
killed killed one
# Two workers choose two shards, and one goes on with as many.
xla_job chosen MultiWorkerMirrored
sed -i 's/logicalShards: 4, //; s/steps: 30/steps: 15/' chosen.yaml
crew chosen 2
from=chosen xla_job left
sed -i 's/logicalShards: 4, //' left.yaml
xla_job both MultiWorkerMirrored
sed -i 's/logicalShards: 4, //' both.yaml
crew both 2 && lone left && same_weights left both && ! grep -q 'step *15/30' left.log
verdict $? "what two workers began one goes on with: the same bits" "$(tails chosen) $(tails left) $(tails both)"
xla_job lost MultiWorkerMirrored
lost lost 3 one
export COXSWAIN_PJRT_PLUGIN=$newer COXSWAIN_PJRT_CPU_DEVICES=4
while read -r type strategy devices more; do
    name=${type,,}-$strategy
    job "$name" "$images_layers" "$digits" 30 "$adamw" "$strategy" "$devices"
    sed -i "s|^devices: {|&type: $type, $more|" "$name.yaml"
    lone "$name" && same_weights "$name" tpu-OneDevice
    verdict $? "${type}s, $strategy: the bits of one TPU" "$(tails "$name")"
done <<END
TPU OneDevice 1
TPU Mirrored 4
GPU Mirrored 4 plugin: $newer,
END
unset COXSWAIN_PJRT_PLUGIN COXSWAIN_PJRT_CPU_DEVICES

# ---- our own operations use what XLA has trained, and go on with it

said=$("$worker" --job tpu-OneDevice.yaml --storage runs="$work" --predict all 2>said.log | tail -n 1)
last=$(sed -n 's/^held-out examples: accuracy \([0-9.]*\).*/\1/p' tpu-OneDevice.log | tail -n 1)
[[ $last && $said == *"accuracy $last %"* ]]
verdict $? "--predict all of a job for TPUs, without a plugin: the accuracy that training told: $last" "$said; $(tail -n 1 said.log)"
from=one job onwards "$images_layers" "$digits" 40 "$adamw"
lone onwards && ! grep -q 'step *30/40' onwards.log && grep -q 'step *40/40' onwards.log
verdict $? "a job without a plugin goes on from XLA's checkpoint" "$(tails onwards)"

"$worker" --job /dev/stdin --storage runs="$work" --threads 1 <one.yaml >piped.log 2>&1 && same_weights one one
verdict $? "a job that comes through a pipe" "$(tail -n 1 piped.log)"

# ---- ahead of time, and refusals

said=$("$worker" --job one.yaml --storage runs="$work" --compile-model 2>/dev/null)
[[ $said == "compiled for cpu by PJRT "*" in each call of 13 examples" ]]
verdict $? "--compile-model says what the layers need" "$said"
xla_job stages Pipeline
refused 64 'strategy.type: XLA runs a model as a whole' stages
xla_job again
sed -i 's/^strategy: {/&recompute: true, /' again.yaml
refused 64 'strategy.recompute: XLA decides itself' again
xla_job float16
sed -i 's/^training: {/&precision: Float16, /' float16.yaml
refused 64 'training.precision: Float16 is for GPUs' float16
job tokens "{inputShape: [8], layers: [{type: Embedding, size: 20, units: 4}, {type: Dense, units: 256}]}" "$texts" 1 "$sgd"
through_xla tokens
refused 65 'example [0-9]* of the batch has the token [0-9]*, and the model.s vocabulary is 20' tokens-xla
job global "$images_layers" "$digits" 1 "$sgd"
sed -i 's/type: BatchNorm/&, statistics: Global/' global.yaml
through_xla global
refused 69 'statistics: Global over several logical shards is computed by the worker' global-xla
"$worker" --compile-model --describe-model --job one.yaml >conflict.log 2>&1
[[ $? == 64 ]] && grep -q "cannot be combined" conflict.log
verdict $? "exit 64: two commands in one" "$(tail -n 1 conflict.log)"
xla_job on-any
sed -i 's/^devices: {/&type: Auto, /' on-any.yaml
refused 64 'devices.plugin: is for devices.type CPU, GPU or TPU' on-any
