#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-worker under the synchronous strategies: every arrangement of workers, devices and collectives gives the bits
# of one device, and each goes on from the checkpoint of any other. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
worker_options=(--threads 2)

# job NAME STRATEGY DEVICES COLLECTIVE [STEPS [CHECKPOINTS]]: a job document; `determinism` may be set by the caller
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 64}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training:
  steps: ${5:-30}
  batchSize: 50
  logicalShards: 12
  determinism: ${determinism:-Crew}
  optimizer: {type: AdamW, learningRate: "2e-3"}
  seed: 7
strategy: {type: $2, collective: $4}
devices: {count: $3}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${6:-$1}, everySteps: 5, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

# run NAME WORKERS: one of them needs no crew
run() {
    if (($2 == 1)); then lone "$1"; else crew "$1" "$2"; fi
}

make_digits

job reference OneDevice 1 Auto
lone reference
verdict $? "one device trains" "$(tails reference)"

# ---- the same bits

while read -r strategy workers devices collective; do
    name="$strategy-$workers-$devices-$collective"
    job "$name" "$strategy" "$devices" "$collective"
    run "$name" "$workers" && same_weights "$name"
    verdict $? "$strategy, $workers x $devices, $collective: the bits of one device" "$(tails "$name")"
done <<'END'
Mirrored 1 2 Auto
Mirrored 1 3 Hierarchical
CentralStorage 1 3 Auto
CentralStorage 1 2 ReduceToOne
MultiWorkerMirrored 2 2 Auto
MultiWorkerMirrored 3 1 ReduceToOne
MultiWorkerMirrored 3 1 Hierarchical
END

# ---- local steps: other bits than those of one device, but a worker's devices change none

# rounds NAME DEVICES: two workers, rounds of four steps
rounds() {
    job "$1" MultiWorkerMirrored "$2" Auto
    sed -i 's/^strategy: {/&localSteps: 4, /' "$1.yaml"
    crew "$1" 2
}

rounds steps1 1 && rounds steps3 3 && same_weights steps3 steps1 && ! same_weights steps3
verdict $? "local steps, three devices a worker: the bits of one device a worker" "$(tails steps3)"

# ---- a share of servers is computed by all devices of a worker: four shares, of three logical shards each

job served ParameterServer 3 Auto
sed -i 's/^strategy: .*/strategy: {type: ParameterServer, mode: Synchronous}/' served.yaml
crew served 2 2 && same_weights served
verdict $? "ParameterServer, Synchronous, three devices a worker: the bits of one device" "$(tails served)"

# ---- one run, handed on

steps=0 status=0
while read -r strategy workers devices; do
    steps=$((steps + 6))
    job "relay$steps" "$strategy" "$devices" Auto "$steps" relay
    run "relay$steps" "$workers" || status=1
    ((steps == 6)) || grep -qs "resumes from the checkpoint of step $((steps - 6))" "relay$steps"{,.0}.log || status=1
done <<'END'
MultiWorkerMirrored 3 1
Mirrored 1 4
OneDevice 1 1
CentralStorage 1 2
MultiWorkerMirrored 2 2
END
((status == 0)) && same_weights "relay$steps"
verdict $? "each strategy goes on from the checkpoint of the one before" "$(tail -qn 1 relay*.log | tr '\n' ' ')"

# ---- what keeps no bits, and what is not there

job ring MultiWorkerMirrored 1 Ring
refused 64 'determinism to Run' ring
job nccl Mirrored 2 NCCL
refused 64 'NCCL' nccl
determinism=Run job running MultiWorkerMirrored 1 Ring
crew running 3 && grep -q 'accuracy [5-9][0-9]\|accuracy 100' running.0.log
verdict $? "a ring of three trains" "$(tails running)"
