#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews of real processes that share out the optimizer's slots: the bits of one device, whoever is killed or frozen; two
# neighbours lost at once cost the steps since the checkpoint, and checkpoints go from and to any other strategy.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

worker=${BUILD:?}/coxswain-worker
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/digits.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG
sharded='type: MultiWorkerMirrored, shardedOptimizer: true'

# verdict $? NAME [WHY]: reports that status. Given as a word, since $(…) in WHY sets $? anew.
verdict() {
    if (($1 == 0)); then echo "ok $2"; else echo "not ok $2${3:+: $3}"; fi
}

# job NAME STRATEGY STEPS [DEVICES]: a job document; the caller may set folder (of checkpoints), clip and every
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 64}
data: {format: idx, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training:
  steps: $3
  stepsPerEpoch: 1000
  batchSize: 50
  logicalShards: 12${clip:+
  gradientClipNorm: \"$clip\"}
  optimizer: {type: adamw, learningRate: "1e-3"}
  seed: 7
strategy: {$2}
devices: {count: ${4:-1}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${folder:-$1}, everySteps: ${every:-10}, keep: 2}
export: {to: $1.safetensors, storage: runs}
YAML
}

# member NAME ROLE INDEX [EPOCH]: one process of the crew in $cluster, told by TF_CONFIG
member() {
    TF_CONFIG="{\"cluster\":{$cluster},\"task\":{\"type\":\"$2\",\"index\":$3}}" COXSWAIN_EPOCH=${4:-0} \
        "$worker" --job "$1.yaml" --storage runs="$work" --threads 1 >>"$1.$2.$3.log" 2>&1 &
    if [[ $2 == ps ]]; then pids[10 + $3]=$!; else pids[$3]=$!; fi
}

# hosts FIRST COUNT
hosts() {
    local i list=
    for ((i = $1; i < $1 + $2; i++)); do list+="${list:+,}\"127.79.$network.$i:2222\""; done
    echo "[$list]"
}

# start NAME WORKERS [SERVERS]
start() {
    local i
    network=$((RANDOM % 250)) pids=()
    cluster="\"worker\":$(hosts 1 "$2")${3:+,\"ps\":$(hosts 10 "$3")}"
    for ((i = 0; i < ${3:-0}; i++)); do member "$1" ps "$i"; done
    for ((i = 0; i < $2; i++)); do member "$1" worker "$i"; done
}

# finish: the status of the last that failed, 0 when none did
finish() {
    local pid status=0
    for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
    return "$status"
}

crew() {
    start "$@" && finish
}

lone() {
    "$worker" --job "$1.yaml" --storage runs="$work" --threads 1 >"$1.log" 2>&1
}

words() {
    tail -qn 2 "$1".*log | tr '\n' ' '
}

until_true() {
    local i
    for ((i = 0; i < $1 * 50; i++)); do
        "${@:2}" && return 0
        sleep 0.02
    done
    return 1
}

has_checkpoint() {
    compgen -G "$1/step-*" >/dev/null
}

# tells NAME INDEX WORDS
tells() {
    grep -q -- "$3" "$1.worker.$2.log"
}

make_digits
clip=0.5 job reference 'type: OneDevice' 60
lone reference
verdict $? "one device trains" "$(words reference)"

# ---- the same bits

for size in 2 3 4; do
    clip=0.5 job "crew$size" "$sharded" 60
    crew "crew$size" "$size" && cmp -s "crew$size.safetensors" reference.safetensors
    verdict $? "a crew of $size gives the bits of one device" "$(words "crew$size")"
done
clip=0.5 job wide "$sharded" 60 2
crew wide 2 && cmp -s wide.safetensors reference.safetensors
verdict $? "so do two workers of two devices each" "$(words wide)"
tells crew4 0 'optimizer.*of .* MB, shared out'
verdict $? "the plan tells what slots each worker keeps" "$(head -n 8 crew4.worker.0.log | tr '\n' ' ')"

# ---- one run, handed on. The logical shards stay, so the bits do

job whole 'type: OneDevice' 160
lone whole
verdict $? "a run to compare with" "$(words whole)"
folder=relay steps=0
while read -r strategy; do
    steps=$((steps + 20))
    name=relay$steps
    case $strategy in
    sharded*) job "$name" "$sharded" "$steps" && crew "$name" "${strategy#sharded }" ;;
    servers) job "$name" 'type: ParameterServer, mode: Synchronous' "$steps" && crew "$name" 2 2 ;;
    *) job "$name" "$strategy" "$steps" 2 && lone "$name" ;;
    esac
    verdict $? "goes on from step $((steps - 20)): $strategy" "$(words "$name")"
done <<'END'
sharded 3
type: Mirrored
sharded 2
type: Pipeline, stages: 2
sharded 4
servers
sharded 3
type: CentralStorage
END
folder=
cmp -s relay160.safetensors whole.safetensors
verdict $? "and ends in the bits of one device that did it all" "$(ls)"

# ---- losses

every=100
job undisturbed 'type: OneDevice' 2000
lone undisturbed
verdict $? "a longer run to compare with" "$(words undisturbed)"

# ends_as_undisturbed NAME WHAT
ends_as_undisturbed() {
    finish && cmp -s "$1.safetensors" undisturbed.safetensors
    verdict $? "$2" "$(words "$1")"
}

# recoveries NAME INDEX: how often that worker has seen the crew whole again
recoveries() {
    grep -c 'whole again' "$1.worker.$2.log"
}

has_recovered_more_than() {
    (($(recoveries "$1" "$2") > $3))
}

job killed "$sharded" 2000
start killed 3
until_true 60 has_checkpoint killed
for victim in 0 1 2; do
    witness=$(((victim + 1) % 3))
    before=$(recoveries killed "$witness")
    kill -KILL "${pids[victim]}" && { wait "${pids[victim]}" 2>/dev/null; member killed worker "$victim" "$((victim + 1))"; }
    until_true 60 has_recovered_more_than killed "$witness" "$before"
    verdict $? "worker $victim of 3 is killed, and replaced" "$(words killed)"
done
ends_as_undisturbed killed "they end in the same bits"
! grep -h 'back to step\|steps were repeated' killed.*.log
verdict $? "since their neighbours had what was lost" "$(grep -h 'back to\|repeated' killed.*.log)"

job frozen "$sharded" 2000
start frozen 3
until_true 60 has_checkpoint frozen
kill -STOP "${pids[1]}"
until_true 60 tells frozen 0 'declared dead' # its address is not free before it has gone
kill -CONT "${pids[1]}"
wait "${pids[1]}"
[[ $? == 163 ]]
verdict $? "one of 3 that was frozen is superseded when it returns" "$(words frozen)"
member frozen worker 1 1
ends_as_undisturbed frozen "and its successor goes on to the same bits"

job neighbours "$sharded" 2000
start neighbours 3
until_true 60 has_checkpoint neighbours
kill -KILL "${pids[1]}" "${pids[2]}"
wait "${pids[1]}" "${pids[2]}" 2>/dev/null
member neighbours worker 1 1
member neighbours worker 2 1
ends_as_undisturbed neighbours "two neighbours are killed at once: the same bits"
tells neighbours 0 'a shard of the optimizer was lost .* back to step [0-9]*00'
verdict $? "the log says what that cost" "$(words neighbours)"

job lone "$sharded" 20
lone lone
[[ $? == 64 ]] && grep -q 'shardedOptimizer.*lone worker' lone.log
verdict $? "a lone worker is refused" "$(words lone)"
