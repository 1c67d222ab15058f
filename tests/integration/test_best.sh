#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The best weights by validation, in runs in which the last weights are not the best: they are kept beside the checkpoints
# and exported, in one process, in crews and in stages, as the mean of peers, and through a kill. Prints ok/not ok lines
# (see tests/run).
set -uo pipefail

worker=${BUILD:?}/coxswain-worker
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/network.sh"
. "$root/tests/integration/verdict.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG

# job NAME STEPS [STRATEGY [DEVICES [WEIGHTS [WORKERS]]]]: the rate goes up and up, so that it learns and then goes wrong
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {steps: $2, batchSize: 24, logicalShards: 4, seed: 7, optimizer: {type: AdamW, learningRate: "2",
    schedule: {type: Constant, warmupSteps: 60}}}
strategy: {${3:-type: OneDevice}}
devices: {count: ${4:-1}}
workers: {replicas: ${6:-1}}
evaluation: {everySteps: 4}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 10, keep: 2, keepBest: true}
export: {path: $1.safetensors, storage: runs, weights: ${5:-Best}}
YAML
}

# crew NAME SIZE [SERVERS]: a whole crew, from start to end; the status of the last that failed
crew() {
    local i hosts=() list pids=() status=0 servers=${3:-0}
    for ((i = 1; i <= $2; i++)); do hosts+=("\"$network.$i:2222\""); done
    list=$(IFS=,; echo "${hosts[*]}")
    ((servers == 0)) || list+="],\"ps\":[\"$network.101:2222\",\"$network.102:2222\""
    for ((i = 0; i < servers; i++)); do
        TF_CONFIG="{\"cluster\":{\"worker\":[$list]},\"task\":{\"type\":\"ps\",\"index\":$i}}" \
            "$worker" --job "$1.yaml" --storage runs="$work" --threads 1 >>"$1.ps$i.log" 2>&1 &
        pids+=($!)
    done
    for ((i = 0; i < $2; i++)); do
        (($2 + servers == 1)) || export TF_CONFIG="{\"cluster\":{\"worker\":[$list]},\"task\":{\"type\":\"worker\",\"index\":$i}}"
        "$worker" --job "$1.yaml" --storage runs="$work" --threads 1 >>"$1.$i.log" 2>&1 &
        pids+=($!)
    done
    unset TF_CONFIG
    for i in "${pids[@]}"; do wait "$i" || status=$?; done
    return "$status"
}

# lowest NAME: the first step with the lowest loss of all evaluations that were told; four digits may not tell two apart
lowest() {
    sed -n 's/.*validation after step \([0-9]*\): loss \([0-9.]*\).*/\2 \1/p' "$1.0.log" | sort -k 1,1g -k 2,2g | head -n 1 | cut -d ' ' -f 2
}

# metadata FILE KEY
metadata() {
    head -c 2000 "$1" | tr -c '[:print:]' ' ' | grep -o "\"$2\":\"[^\"]*" | sed 's/.*"//'
}

make_digits
steps=60
job alone "$steps" && crew alone 1
best=$(lowest alone)
[[ -n $best ]] && ((best < steps && best > 0))
verdict $? "a run with last weights that are not its best" "$(tail -n 1 alone.0.log)"
[[ $(metadata alone/best.safetensors step) == "$best" ]]
verdict $? "keeps those of the lowest validation loss" "$(metadata alone/best.safetensors step), not $best"
grep -q "exports the weights of step $best, the best" alone.0.log
verdict $? "and says which it exports" "$(tail -n 5 alone.0.log)"
job until "$best" "" 1 Last && crew until 1 && cmp -s alone.safetensors until.safetensors
verdict $? "these are what a run until then ends with, bit for bit" "$best"
job last "$steps" "" 1 Last && crew last 1 && ! cmp -s last.safetensors alone.safetensors &&
    [[ $(metadata last/best.safetensors step) == "$best" ]]
verdict $? "weights: Last exports the last, and the best are kept beside"

# ---- other strategies, where no process, or not the first alone, has all weights

while IFS='|' read -r name workers devices strategy; do
    job "$name" "$steps" "$strategy" "$devices" Best "$workers" && crew "$name" "$workers" && cmp -s "$name.safetensors" alone.safetensors
    verdict $? "$strategy, $workers x $devices: the same best weights" "$(tail -qn 2 "$name".*.log | tr '\n' ' ')"
done <<'END'
crew|2|1|type: MultiWorkerMirrored
central|1|2|type: CentralStorage
stages|2|1|type: Pipeline, stages: 2
END

# ---- replicas that differ: what is scored, the mean of all, is what is kept

# close A B: two losses are close; the loss of a model that is right and certain everywhere is 0
close() {
    [[ -n ${1:-} && -n ${2:-} ]] && awk -v a="$1" -v b="$2" 'BEGIN { exit !((a - b) ^ 2 <= (1e-4 * a) ^ 2) }'
}

# scored NAME: the loss of the weights that NAME has exported, by a process that trains next to nothing
scored() {
    job "$1-scored" 1 && sed -i 's/learningRate: "2"/learningRate: "1e-30"/' "$1-scored.yaml" &&
        echo "init: {storage: runs, path: $1.safetensors}" >>"$1-scored.yaml" && crew "$1-scored" 1 &&
        metadata "$1-scored/best.safetensors" validationLoss
}

close "$(scored alone)" "$(metadata alone/best.safetensors validationLoss)"
verdict $? "one process's best weights have the loss that is told of them" "$(tail -n 1 alone-scored.0.log)"
job peers "$steps" 'type: PeerToPeer' 1 Best 2 && crew peers 2 &&
    loss=$(scored peers) && close "$loss" "$(metadata peers/best.safetensors validationLoss)"
verdict $? "PeerToPeer: so have those of two peers" \
    "$loss, not $(metadata peers/best.safetensors validationLoss): $(tail -qn 2 peers.*.log | tr '\n' ' ')"

# ---- servers, which go on while their chief scores what it has pulled

job served "$steps" 'type: ParameterServer, mode: Async' && crew served 1 2
kept=$(metadata served/best.safetensors step)
grep -q "exports the weights of step $kept, the best" served.0.log
verdict $? "ParameterServer keeps and exports its best" "$(tail -n 5 served.0.log)"
loss=$(scored served) && close "$loss" "$(metadata served/best.safetensors validationLoss)"
verdict $? "these are the weights that it has scored" "$loss, not $(metadata served/best.safetensors validationLoss)"

# ---- a kill after the best: the successor knows it

newest_step() {
    find "$1" -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*step-0*\([0-9]*\)[.].*/\1/' | sort -n | tail -n 1
}

job killed "$best" && crew killed 1
before=$(newest_step killed)
job killed "$steps" && crew killed 1 && grep -q "resumes from the checkpoint of step $before" killed.0.log &&
    cmp -s killed.safetensors alone.safetensors
verdict $? "a run that goes on after its best knows it" "$(tail -n 3 killed.0.log)"

# ---- another job that continues from the checkpoints, as after `cox run --fresh`

job first $((best + 8)) && COXSWAIN_JOB_UID=first crew first 1
job second "$steps" && sed -i 's/path: second, /path: first, /' second.yaml && COXSWAIN_JOB_UID=second crew second 1 &&
    grep -q "resumes from the checkpoint of step $((best + 8))" second.0.log && cmp -s second.safetensors alone.safetensors
verdict $? "so does another job that continues from its checkpoints" "$(tail -n 3 second.0.log)"
job third 1 && sed -i 's/path: third, /path: first, required: false, /' third.yaml && rm -r first/step-* && COXSWAIN_JOB_UID=third crew third 1 &&
    [[ $(metadata first/best.safetensors step) == [01] ]]
verdict $? "but not one that starts anew" "$(tail -n 3 third.0.log)"
