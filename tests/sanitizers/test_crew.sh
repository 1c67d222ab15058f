#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real workers built with a sanitizer: alone, as a crew of two, and a crew in which one is killed and replaced. A report
# of the sanitizer ends a worker, so the status tells. Prints ok/not ok lines (see tests/run).
set -uo pipefail

worker=${BUILD:?}/coxswain-worker
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
# shellcheck source=tests/integration/digits.sh
. "$root/tests/integration/digits.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID

# job NAME STRATEGY STEPS
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 16}
data: {format: idx, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {steps: $3, batchSize: 12, logicalShards: 4, optimizer: {type: adamw, learningRate: "1e-3"}, seed: 7}
strategy: {type: $2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 10, keep: 2}
export: {to: $1.safetensors, storage: runs}
YAML
}

# start JOB INDEX EPOCH: one of two; leaves its process in $started
start() {
    local network=127.78.$((BASHPID % 250))
    TF_CONFIG="{\"cluster\":{\"worker\":[\"$network.1:2222\",\"$network.2:2222\"]},\"task\":{\"type\":\"worker\",\"index\":$2}}" \
        COXSWAIN_EPOCH=$3 "$worker" --job "$1.yaml" --storage runs="$work" --threads 2 >"$1.$2.$3.log" 2>&1 &
    started=$!
}

# verdict STATUS NAME LOG…
verdict() {
    local status=$1 name=$2
    shift 2
    if ((status == 0)); then
        echo "ok $name"
    else
        grep -h -A 40 -e 'Sanitizer' -e 'runtime error' "$@" || tail -n 5 "$@"
        echo "not ok $name: a worker ended with $status"
    fi
}

await() {
    local pid status=0
    for pid in "$@"; do wait "$pid" || status=$?; done
    return "$status"
}

await_checkpoint() {
    for _ in {1..1200}; do
        compgen -G "$1/step-*" >/dev/null && return 0
        sleep 0.05
    done
    return 1
}

make_digits

job alone OneDevice 40
"$worker" --job alone.yaml --storage runs="$work" --threads 2 >alone.log 2>&1
verdict $? "one worker of two threads" alone.log

job crew MultiWorkerMirrored 40
start crew 0 0
chief=$started
start crew 1 0
await "$chief" "$started"
verdict $? "a crew of two" crew.*.log

job killed MultiWorkerMirrored 200
start killed 0 0
chief=$started
start killed 1 0
await_checkpoint killed
kill -KILL "$started"
wait "$started" 2>/dev/null
start killed 1 1
await "$chief" "$started"
verdict $? "a crew of which one is killed and replaced" killed.*.log
