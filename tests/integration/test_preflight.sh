#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The pre-flight check (training.preflight): a crew whose workers are well passes and trains; a worker that computes wrong values, or copies
# much more slowly than the others, is named and ends with 161 before the first step, and its successor is checked. Prints ok/not ok
# lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
fault=

set_up() {
    [[ $2 != 1 || -z $fault ]] || export COXSWAIN_PREFLIGHT_FAULT=$fault
}

# crew_job NAME STRATEGY [LINE]
crew_job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 16}
data: {format: Synthetic, examples: 4096}
training: {steps: 20, batchSize: 60, optimizer: {type: SGD, learningRate: "0.01"}, seed: 7, preflight: true}
strategy: {$2}
${3:-}
YAML
}

# said NAME WORDS: in the log of any of its processes
said() {
    cat "$1".*log | contains "$2"
}

# ends NAME INDEX CODE
ends() {
    local status
    await "${pids[$2]}"
    status=$?
    unset "pids[$2]"
    ((status == $3))
}

# fails NAME FAULT WORDS: worker 1 of 3 is named with these words and ends; its successor is well, and the crew trains
fails() {
    local result=0
    crew_job "$1" 'type: MultiWorkerMirrored'
    fault=$2
    start_crew "$1" 3
    fault=
    ends "$1" 1 161 || result=1
    grep -q "worker 1 has failed the pre-flight check: it $3" "$1.0.log" || result=1
    tail -n 1 "$1.1.log" | grep -q "this worker has failed the pre-flight check: it $3.*look at its node" || result=1
    ! said "$1" 'step 1/' || result=1
    start_member "$1" worker 1 1
    ends "$1" 0 0 && ends "$1" 1 0 && ends "$1" 2 0 || result=1
    grep -q 'all workers of 3 have passed it' "$1.0.log" || result=1
    end_crew KILL
    return "$result"
}

fails product product 'computes wrong values'
verdict $? "a worker that computes wrong values is named and ends with 161 before the first step" "$(tails product)"
fails memory memory 'has faulty memory'
verdict $? "so does one whose memory changes bytes" "$(tails memory)"
fails copies copies 'copies memory at [0-9]* MB/s, less than a quarter of'
verdict $? "and one whose memory is much slower than the others'" "$(tails copies)"

crew_job pipeline 'type: Pipeline, microBatches: 2'
start_crew pipeline 2
ends pipeline 0 0 && ends pipeline 1 0 && said pipeline 'all workers of 2 have passed it'
verdict $? "a Pipeline passes it" "$(tails pipeline)"
end_crew KILL

crew_job alone 'type: OneDevice'
lone alone && contains 'all workers of 1 have passed it' <alone.log
verdict $? "so does a process alone" "$(tail -n 3 alone.log)"
