#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker is asked to leave while the one that it exchanges something with is frozen, in every kind of exchange: it ends with 143
# within the grace period, and the newest checkpoint is whole. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

export COXSWAIN_GRACE_SECONDS=60

# job NAME STRATEGY: which nobody sees the end of
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: Synthetic, examples: 1024}
training: {steps: 10000000, batchSize: 64, logicalShards: 2, seed: 7, optimizer: {type: AdamW, learningRate: "2e-3"}}
strategy: {type: $2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 50, keep: 2}
YAML
}

# leaves_in_time NAME INDEX: with 143, before it would be killed
leaves_in_time() {
    local status=0 begun=$SECONDS
    kill -TERM "${pids[$2]}"
    await "${pids[$2]}" || status=$?
    ((status == 143 && SECONDS - begun < COXSWAIN_GRACE_SECONDS))
}

# goes_on NAME SERVERS: a later start finds a whole checkpoint
goes_on() {
    rm -f "$1".*log
    start_crew "$1" 2 "$2"
    until_true 60 grep -q 'resumes from the checkpoint of step [1-9]' "$1.0.log"
    verdict $? "$1: a later start goes on from the newest checkpoint" "$(tails "$1") $(ls -A "$1")"
    end_crew KILL
}

# beside_frozen NAME STRATEGY FROZEN ASKED [SERVERS]: indices in `pids`
beside_frozen() {
    job "$1" "$2"
    start_crew "$1" 2 "${5:-0}"
    until_true 60 has_saved "$1" 50
    verdict $? "$1: trains" "$(tails "$1")"
    kill -STOP "${pids[$3]}"
    leaves_in_time "$1" "$4"
    verdict $? "$1: a worker that is asked to leave beside a frozen one leaves in time" "$(tails "$1")"
    end_crew KILL
    goes_on "$1" "${5:-0}"
}

beside_frozen reduced MultiWorkerMirrored 1 0
beside_frozen reduced-by-chief MultiWorkerMirrored 0 1
beside_frozen staged Pipeline 1 0
beside_frozen staged-by-chief Pipeline 0 1
beside_frozen exchanged PeerToPeer 1 0
beside_frozen exchanged-by-chief PeerToPeer 0 1
beside_frozen pushed "ParameterServer, mode: Async" 100 1 1
beside_frozen pushed-by-chief "ParameterServer, mode: Async" 100 0 1
