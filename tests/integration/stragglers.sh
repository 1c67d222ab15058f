# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # worker_options is by_hand.sh's; $root is the caller's
#
# Crews started by hand, one worker of which is slowed down, for scripts that source this file with `root` set to the sources:
# by what it waits for (`delay` of by_hand.sh), or by the time that it gets (crew_slow), as long as the script wants: their steps have
# no end. The chief's log is NAME.0.log, the crew's record NAME.record: lines of the log are too far apart to count steps by.

. "$root/tests/integration/by_hand.sh"
worker_options=(--threads 1 --log-format json)
slowed=
width=512 batch=768 # a share of three takes some ten milliseconds; the caller may set others

# crew_document NAME STRATEGY [LINE…]: an mlp on drawn images; more lines last
crew_document() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: $width}
data: {format: Synthetic, examples: 4096}
training: {steps: 1000000000, batchSize: $batch, optimizer: {type: SGD, learningRate: "0.01"}, seed: 7}
strategy: {$2}
YAML
    printf '%s\n' "${@:3}" >>"$1.yaml"
    export COXSWAIN_RECORD=$work/$1.record
}

crew_stop() {
    crew_end_slow
    end_crew KILL
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
    kill -CONT "${pids[$1]}"
}

# crew_step NAME: the last that the chief has applied
crew_step() {
    tac "$1.record" 2>/dev/null | awk '$1 == "applied" && $3 ~ /^worker-0-/ { step = $5; exit } END { print step + 0 }'
}

# crew_is_at NAME STEP: the chief has applied that step, or a later one
crew_is_at() {
    (($(crew_step "$1") >= $2))
}

# crew_slow INDEX: that worker has a tenth of the time from now on, half a second at a time
crew_slow() {
    local process=${pids[$1]}
    kill -STOP "$process"
    while kill -0 "$process"; do
        kill -STOP "$process"
        sleep 0.45
        kill -CONT "$process"
        sleep 0.05
    done 2>/dev/null &
    slowed=$!
}
