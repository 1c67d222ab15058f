#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real workers built with a sanitizer: alone, as a crew of two, and a crew in which one is killed and replaced. A report
# of the sanitizer ends a worker, so the status tells. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
worker_options=(--threads 2)

# job NAME STRATEGY STEPS
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 16}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {steps: $3, batchSize: 12, logicalShards: 4, optimizer: {type: AdamW, learningRate: "1e-3"}, seed: 7}
strategy: {type: $2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 10, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

# judge STATUS NAME JOB: as verdict; first shows what the sanitizer has said
judge() {
    (($1 == 0)) || grep -h -A 40 -e 'Sanitizer' -e 'runtime error' "$3".*log || tail -n 5 "$3".*log
    verdict "$1" "$2" "a worker ended with $1"
}

make_digits

job alone OneDevice 40
lone alone
judge $? "one worker of two threads" alone

job crew MultiWorkerMirrored 40
crew crew 2
judge $? "a crew of two" crew

job killed MultiWorkerMirrored 200
start_crew killed 2
until_true 15 has_saved killed
lose 1
start_member killed worker 1 1
await_crew
judge $? "a crew of which one is killed and replaced" killed
