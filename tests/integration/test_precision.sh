#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# training.precision: BFloat16 learns as float32 does, to the same bits under all strategies that promise them, and goes on from
# the other precision's checkpoint; tf32 is float32 where no GPU computes. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
. "$root/tests/integration/same_bits.sh"

# job NAME [FOLDER]: FOLDER is that of its checkpoints
job() {
    cat >"$1.yaml" <<YAML
devices: {count: ${devices:-1}}
model: {preset: ${model:-lenet}}
data:
  format: IDX
  train: {images: $work/images, labels: $work/labels}
  validation: {last: 100}
training:
  steps: ${steps:-36}
  batchSize: 50
  logicalShards: 6
  precision: ${precision:-BFloat16}
  optimizer: {type: AdamW, learningRate: "2e-3"}
  seed: 7
strategy: {type: ${strategy:-OneDevice}${more:-}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${2:-$1}, everySteps: 18, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

make_digits

precision=Float32 job float32
lone float32
verdict $? "float32 trains" "$(tail -n 1 float32.log)"
job one
lone one
verdict $? "bfloat16 trains" "$(tail -n 1 one.log)"
grep -q 'accuracy 9[0-9]\|accuracy 100' one.log && grep -q 'accuracy 9[0-9]\|accuracy 100' float32.log
verdict $? "both learn the digits" "$(grep -h accuracy float32.log one.log | tail -n 2)"
! same_weights one float32
verdict $? "with other weights" "else the rest shows nothing"

precision=TF32 job tf32
lone tf32 && same_weights tf32 float32
verdict $? "TF32 is float32 on a CPU" "$(tail -n 1 tf32.log)"

whoever_computes one

precision=Float32 steps=18 job begun
lone begun && job ended begun && lone ended && grep -q 'step 36/36' ended.log
verdict $? "goes on from a checkpoint of float32" "$(tail -n 2 ended.log)"
precision=Float32 steps=54 job back one
lone back && grep -q 'step 54/54' back.log
verdict $? "and float32 from one of bfloat16" "$(tail -n 2 back.log)"
precision=TF32 steps=72 job cut one
lone cut && grep -q 'step 72/72' cut.log
verdict $? "and TF32 from one of float32" "$(tail -n 2 cut.log)"
