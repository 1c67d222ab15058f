#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The mean that the chief of a PeerToPeer crew takes of all replicas: an evaluation and a save after the same step have the
# same, and one that is without a replica says so. Prints ok/not ok lines (see tests/run).
set -uo pipefail

worker=${BUILD:?}/coxswain-worker
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
pids=() saved=none
trap 'kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/network.sh"
. "$root/tests/integration/verdict.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG

# job NAME STEPS SAVES EVALUATIONS: saves and evaluates after every SAVES and EVALUATIONS steps
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {steps: $2, batchSize: 24, seed: 7, optimizer: {type: AdamW, learningRate: "1e-4"}}
strategy: {type: PeerToPeer}
workers: {replicas: 2}
evaluation: {everySteps: $4}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: $3, keep: 100, keepBest: true}
YAML
}

# start NAME: both of its crew; their numbers are in pids
start() {
    local i
    pids=()
    for i in 0 1; do
        export TF_CONFIG="{\"cluster\":{\"worker\":[\"$network.1:2222\",\"$network.2:2222\"]},\"task\":{\"type\":\"worker\",\"index\":$i}}"
        "$worker" --job "$1.yaml" --storage runs="$work" --threads 1 >>"$1.$i.log" 2>&1 &
        pids+=($!)
    done
    unset TF_CONFIG
}

# has_mean NAME WORDS: one of its manifests says so
has_mean() {
    grep -qs "\"replicas\":\"$2\"" "$1"/step-*/manifest.json
}

means() {
    grep -ohs '"replicas":"[^"]*"' "$1"/step-*/manifest.json | sort | uniq -c | tr '\n' ' '
}

# same_parameters BEST CHECKPOINT: all tensors of the one are in the other, bit for bit
same_parameters() {
    python3 - "$@" <<'END'
import json
import sys

def read(path):
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in head.items() if name != "__metadata__"}

best, saved = read(sys.argv[1]), read(sys.argv[2])
sys.exit(not best or any(saved.get(name) != bytes for name, bytes in best.items()))
END
}

# best_is_saved: step is that of the best weights so far, and the checkpoint of that step, a mean of two, is in saved
best_is_saved() {
    cp both/best.safetensors best.safetensors 2>/dev/null || return
    step=$(head -c 2000 best.safetensors | tr -c '[:print:]' ' ' | grep -o '"step":"[0-9]*' | sed 's/.*"//')
    saved=$(echo both/step-*"$(printf %08d "${step:-0}")".*)
    grep -qs '"replicas":"2 of 2"' "$saved/manifest.json"
}

make_digits
job both 100000000 2 2
echo 20 >delay # milliseconds a batch: it learns for minutes, whenever the second comes
export COXSWAIN_READ_DELAY=$work/delay
start both
until_true 30 best_is_saved && same_parameters best.safetensors "$saved/rank-00000.safetensors"
verdict $? "an evaluation and a save after the same step have the same mean, of all" "step ${step:-?}, $(means both)"
unset COXSWAIN_READ_DELAY
! grep -q 'replicas were averaged, without' both.0.log
verdict $? "and nobody is told to be missing" "$(grep 'replicas were averaged, without' both.0.log)"
kill -KILL "${pids[@]}"
wait "${pids[@]}" 2>/dev/null

job frozen 100000000 1 100000000
start frozen
until_true 30 has_mean frozen '2 of 2' && kill -STOP "${pids[1]}" &&
    until_true 30 grep -q 'only 1 of 2 replicas were averaged, without rank 1 (worker 1, ' frozen.0.log
verdict $? "a worker that has not given its replica is named" "$(tail -n 3 frozen.0.log)"
until_true 30 has_mean frozen '1 of 2'
verdict $? "and the manifest says of how many the mean is" "$(means frozen)"
