#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# strategy.recompute has the bits of what is kept, under all strategies and across a restart that turns it on; a job that gains
# nothing by it is refused. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
. "$root/tests/integration/same_bits.sh"

gpt='preset: gpt2-124m, depth: 2, width: 24, heads: 2, context: 16, vocabulary: 300, dropout: "0.2"'

# job NAME [FOLDER]: FOLDER is that of its checkpoints
job() {
    cat >"$1.yaml" <<YAML
devices: {count: ${devices:-1}}
model: {${model:-$gpt}}
data: {format: Synthetic, examples: 70, validation: {last: 10}}
training: {steps: ${steps:-12}, batchSize: 10, logicalShards: 4, seed: 7, optimizer: {type: AdamW, learningRate: "2e-3"}}
strategy: {type: ${strategy:-OneDevice}, recompute: ${recompute:-true}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${2:-$1}, everySteps: 6, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

recompute=false job kept
lone kept
verdict $? "trains" "$(tail -n 1 kept.log)"
job again
lone again && same_weights again kept
verdict $? "what is computed again has the bits of what is kept" "$(tail -n 1 again.log)"
whoever_computes kept
steps=6 recompute=false job begun
lone begun && job ended begun && lone ended && same_weights ended kept
verdict $? "and from a checkpoint of a run without it" "$(tail -n 2 ended.log)"

model='preset: mlp' job plain
! lone plain && grep -q 'strategy.recompute: the model has no residual sums' plain.log
verdict $? "a model without residual sums is refused" "$(tail -n 1 plain.log)"
