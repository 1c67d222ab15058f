#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-worker under the synchronous strategies: every arrangement of workers, devices and collectives gives the bits
# of one device, and each goes on from the checkpoint of any other. Prints ok/not ok lines (see tests/run).
set -uo pipefail

worker=${BUILD:?}/coxswain-worker
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/network.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG

# verdict $? NAME [WHY]: reports that status. Given as a word, since $(…) in WHY sets $? anew.
verdict() {
    if (($1 == 0)); then echo "ok $2"; else echo "not ok $2${3:+: $3}"; fi
}

# job NAME STRATEGY DEVICES COLLECTIVE [STEPS [CHECKPOINTS]]: a job document; `determinism` may be set by the caller
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 64}
data: {format: idx, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training:
  steps: ${5:-30}
  batchSize: 50
  logicalShards: 12
  determinism: ${determinism:-Crew}
  optimizer: {type: adamw, learningRate: "2e-3"}
  seed: 7
strategy: {type: $2, collective: $4}
devices: {count: $3}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${6:-$1}, everySteps: 5, keep: 2}
export: {to: $1.safetensors, storage: runs}
YAML
}

# crew NAME SIZE: a whole crew, from start to end; the status of the last that failed
crew() {
    local i hosts=() list pids=() status=0
    for ((i = 1; i <= $2; i++)); do hosts+=("\"$network.$i:2222\""); done
    list=$(IFS=,; echo "${hosts[*]}")
    for ((i = 0; i < $2; i++)); do
        (($2 == 1)) || export TF_CONFIG="{\"cluster\":{\"worker\":[$list]},\"task\":{\"type\":\"worker\",\"index\":$i}}"
        "$worker" --job "$1.yaml" --storage runs="$work" --threads 2 >>"$1.$i.log" 2>&1 &
        pids+=($!)
    done
    unset TF_CONFIG
    for i in "${pids[@]}"; do wait "$i" || status=$?; done
    return "$status"
}

make_digits
job reference OneDevice 1 Auto
crew reference 1
verdict $? "one device trains" "$(tail -n 1 reference.0.log)"

# ---- the same bits

while read -r strategy workers devices collective; do
    name="$strategy-$workers-$devices-$collective"
    job "$name" "$strategy" "$devices" "$collective"
    crew "$name" "$workers" && cmp -s "$name.safetensors" reference.safetensors
    verdict $? "$strategy, $workers x $devices, $collective: the bits of one device" \
        "$(tail -qn 1 "$name".*.log | tr '\n' ' ')"
done <<'END'
Mirrored 1 2 Auto
Mirrored 1 3 Hierarchical
CentralStorage 1 3 Auto
CentralStorage 1 2 ReduceToOne
MultiWorkerMirrored 2 2 Auto
MultiWorkerMirrored 3 1 ReduceToOne
MultiWorkerMirrored 3 1 Hierarchical
END

# ---- one run, handed on

steps=0 status=0
while read -r strategy workers devices; do
    steps=$((steps + 6))
    job "relay$steps" "$strategy" "$devices" Auto "$steps" relay
    crew "relay$steps" "$workers" || status=1
    ((steps == 6)) || grep -q "resumes from the checkpoint of step $((steps - 6))" "relay$steps.0.log" || status=1
done <<'END'
MultiWorkerMirrored 3 1
Mirrored 1 4
OneDevice 1 1
CentralStorage 1 2
MultiWorkerMirrored 2 2
END
((status == 0)) && cmp -s "relay$steps.safetensors" reference.safetensors
verdict $? "each strategy goes on from the checkpoint of the one before" "$(tail -qn 1 relay*.log | tr '\n' ' ')"

# ---- what keeps no bits, and what is not there

# refused CODE WORDS NAME
refused() {
    local status
    crew "$3" 1
    status=$?
    [[ $status == "$1" ]] && tail -n 1 "$3.0.log" | grep -q -- "$2"
    verdict $? "exit $1: $3" "got $status, $(tail -n 1 "$3.0.log")"
}

job ring MultiWorkerMirrored 1 Ring
refused 64 'determinism to Run' ring
job nccl Mirrored 2 NCCL
refused 69 'NCCL' nccl
determinism=Run job running MultiWorkerMirrored 1 Ring
crew running 3 && grep -q 'accuracy [5-9][0-9]\|accuracy 100' running.0.log
verdict $? "a ring of three trains" "$(tail -qn 1 running.*.log | tr '\n' ' ')"
