#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews of parameter servers by hand of which several are asked to leave at once: what was trained is in a checkpoint then,
# although no save was due. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# job NAME OPTIONS: has too many steps to end during the test, and no save is due
job() {
    cat >"$1.yaml" <<YAML
name: $1
strategy: {type: ParameterServer$2}
workers: {replicas: 2}
model: {preset: mlp, width: 96}
data: {format: Synthetic, examples: 1000}
training: {steps: 10000000, batchSize: 20, seed: 3, optimizer: {type: SGD, learningRate: "0.001"}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 10000000}
YAML
}

# said_step NAME: the last step that its chief told of
said_step() {
    sed -n 's/^step  *\([1-9][0-9]*\)\/.*/\1/p' "$1.0.log" 2>/dev/null | tail -n 1
}

# Enough steps for all workers to have taken the first ones: a checkpoint's step is that of the slowest.
has_stepped() {
    (($(said_step "$1") + 0 >= 200))
}

# all_left PID…: each with 143
all_left() {
    local pid status
    for pid in "$@"; do
        status=0
        await "$pid" || status=$?
        [[ $status == 143 ]] || return 1
    done
}

# keeps NAME WHAT: there is a checkpoint of what was trained
keeps() {
    has_saved "$1" 1
    verdict $? "$2" "step $(saved_step "$1") is saved; $(tails "$1")"
}

# whole_crew NAME OPTIONS: everybody is asked at once
whole_crew() {
    job "$1" "$2"
    start_crew "$1" 2 2
    until_true 60 has_stepped "$1"
    verdict $? "$1: the crew trains" "$(tails "$1")"
    kill -TERM "${pids[@]}"
    all_left "${pids[@]}"
    verdict $? "$1: all leave with 143" "$(tails "$1")"
    keeps "$1" "$1: a crew that is asked to leave has saved"
}

whole_crew plain ''
whole_crew steps ', mode: Synchronous'

# ---- the servers alone: the chief sees to it, and their successors go on from there

both_servers() {
    job "$1" "$2"
    start_crew "$1" 2 2
    until_true 60 has_stepped "$1"
    kill -TERM "${pids[@]:100}"
    all_left "${pids[@]:100}"
    verdict $? "$1: both servers leave with 143" "$(tails "$1")"
    until_true 60 grep -q 'all servers were saved first' "$1.0.log"
    keeps "$1" "$1: servers that are asked to leave were saved"
    start_member "$1" ps 0 1
    start_member "$1" ps 1 1
    until_true 60 grep -q 'resumes from the checkpoint of step [1-9]' "$1.0.log"
    verdict $? "$1: their successors go on from there" "$(tails "$1")"
    ! grep -qE 'could not be saved|are lost' "$1.0.log"
    verdict $? "$1: and nothing is told as lost" "$(grep -E 'could not be saved|are lost' "$1.0.log")"
    end_crew KILL
}

both_servers servers ''
