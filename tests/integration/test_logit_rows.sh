#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Logits by parts (COXSWAIN_LOGIT_ROWS; a wide vocabulary's shape asks for them by itself) learn as all at once do, to the same bits
# under all strategies that promise them and across a restart. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
. "$root/tests/integration/same_bits.sh"

# job NAME [FOLDER]: FOLDER is that of its checkpoints; a tied output, shards of unequal size, a number of rows that is not a
# multiple of any part
job() {
    cat >"$1.yaml" <<YAML
devices: {count: ${devices:-1}}
model: {preset: gpt2-124m, depth: 2, width: 24, heads: 2, context: 16, vocabulary: 300}
data: {format: Synthetic, examples: 70, validation: {last: 10}}
training: {steps: ${steps:-12}, batchSize: 10, logicalShards: 4, seed: 7, optimizer: {type: AdamW, learningRate: "2e-3"}}
strategy: {type: ${strategy:-OneDevice}${more:-}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${2:-$1}, everySteps: 6, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

job whole
lone whole
verdict $? "all logits at once train" "$(tail -n 1 whole.log)"
export COXSWAIN_LOGIT_ROWS=11
job parts
lone parts
verdict $? "logits by parts train" "$(tail -n 1 parts.log)"
loss() {
    grep '^step' "$1.log" | sed 's/.*loss \([0-9.]*\).*/\1/' | tail -n 1
}
awk -v a="$(loss whole)" -v b="$(loss parts)" 'BEGIN { exit !(a > 0 && a - b < 0.001 && b - a < 0.001) }'
verdict $? "to the same loss" "$(loss whole) and $(loss parts)"
! same_weights whole parts
verdict $? "with other bits" "else the rest shows nothing"

whoever_computes parts
strategy=Pipeline more=', recompute: true' devices=2 job again
lone again && same_weights again parts
verdict $? "two stages that compute again: the bits of one" "$(tail -n 1 again.log)"
steps=6 job begun
lone begun && job ended begun && lone ended && same_weights ended parts
verdict $? "goes on from a checkpoint, to the same bits" "$(tail -n 2 ended.log)"

COXSWAIN_LOGIT_ROWS=many lone parts
grep -q 'COXSWAIN_LOGIT_ROWS: "many" is not a number' parts.log
verdict $? "a number that is none is refused" "$(tail -n 1 parts.log)"
