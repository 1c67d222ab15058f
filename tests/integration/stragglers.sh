# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $bin is the caller's
#
# Crews of processes on this machine, one of which is slowed down, for scripts that source this file. Everything that was
# started ends with crew_stop.

unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG
crew_network=127.86.$(($$ % 250))
crew_processes=()
slowed=

# crew_document NAME STRATEGY [LINE…]: an mlp on drawn images, a share of which takes some ten milliseconds; more lines last
crew_document() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 512}
data: {format: synthetic, examples: 4096}
training: {steps: 1000000, batchSize: 768, optimizer: {type: sgd, learningRate: "0.01"}, seed: 7}
strategy: {$2}
YAML
    printf '%s\n' "${@:3}" >>"$1.yaml"
}

# crew_start NAME WORKERS SERVERS: the crew of NAME.yaml; worker 0 writes NAME.log, crew_processes are the workers first
crew_start() {
    local i workers=() servers=() cluster
    for ((i = 0; i < $2; i++)); do workers+=("\"$crew_network.$((i + 1)):2222\""); done
    for ((i = 0; i < $3; i++)); do servers+=("\"$crew_network.$((i + 101)):2222\""); done
    cluster=$(IFS=,; echo "\"worker\":[${workers[*]}]${servers:+,\"ps\":[${servers[*]}]}")
    crew_processes=()
    for ((i = 0; i < $2 + $3; i++)); do
        local role=worker index=$i
        ((i < $2)) || role=ps index=$((i - $2))
        TF_CONFIG="{\"cluster\":{$cluster},\"task\":{\"type\":\"$role\",\"index\":$index}}" \
            "$bin/coxswain-worker" --job "$1.yaml" --threads 1 --log-format json >"$1.log.$role$index" 2>&1 &
        crew_processes+=($!)
    done
    ln -sf "$1.log.worker0" "$1.log"
}

crew_stop() {
    crew_end_slow
    ((${#crew_processes[@]})) || return
    kill -KILL "${crew_processes[@]}" 2>/dev/null
    wait "${crew_processes[@]}" 2>/dev/null
    crew_processes=()
}

crew_end_slow() {
    if [[ -n $slowed ]]; then
        kill "$slowed" 2>/dev/null
        wait "$slowed" 2>/dev/null
    fi
    slowed=
}

# crew_let INDEX: that worker has all of its time again
crew_let() {
    crew_end_slow
    kill -CONT "${crew_processes[$1]}"
}

# crew_step NAME: the last that the chief has told
crew_step() {
    local step
    step=$(tail -n 5 "$1.log" 2>/dev/null | sed -n 's/.*{"step":\([0-9]*\).*/\1/p' | tail -n 1)
    echo "${step:-0}"
}

# crew_await SECONDS NAME STEP
crew_await() {
    local end=$((SECONDS + $1))
    until (($(crew_step "$2") >= $3)); do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

# crew_slow INDEX: that worker has a tenth of the time from now on, half a second at a time
crew_slow() {
    local process=${crew_processes[$1]}
    kill -STOP "$process"
    while kill -0 "$process"; do
        kill -STOP "$process"
        sleep 0.45
        kill -CONT "$process"
        sleep 0.05
    done 2>/dev/null &
    slowed=$!
}
