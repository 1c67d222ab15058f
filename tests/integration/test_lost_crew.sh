#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Members of a crew, started by hand, that has lost its chief for good: each ends with 160 once its patience is over, and names
# the chief. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# job NAME STRATEGY: has too many steps to end during the test
job() {
    cat >"$1.yaml" <<YAML
name: $1
strategy: {$2}
workers: {replicas: 2}
model: {preset: mlp, width: 96}
data: {format: Synthetic, examples: 1000}
training: {steps: 10000000, batchSize: 20, seed: 3, optimizer: {type: SGD, learningRate: "0.001"}}
YAML
}

# ends_lost NAME LOG PID
ends_lost() {
    local status=0
    await "$3" || status=$?
    [[ $status == 160 ]] && grep -qE "the crew is lost: .*chief" "$2"
    verdict $? "$1" "exit $status, $(tail -n 1 "$2")"
}

has_stepped() {
    grep -q '^step' "$1"
}

export COXSWAIN_CHIEF_TIMEOUT=2
job mirrored 'type: MultiWorkerMirrored'
job peers 'type: PeerToPeer'
job servers 'type: ParameterServer'

# ---- the chief has ended before they come

cluster="{\"worker\":$(hosts 1 2),\"ps\":$(hosts 101 1)}" pids=()
start_member servers worker 1
start_member servers ps 0
late=("${pids[1]}" "${pids[100]}")
cluster="{\"worker\":$(hosts 3 2)}"
start_member mirrored worker 1
late+=("${pids[1]}")
cluster="{\"worker\":$(hosts 5 2)}"
start_member peers worker 1
late+=("${pids[1]}")
ends_lost "a worker of parameter servers that comes too late" servers.1.log "${late[0]}"
ends_lost "a parameter server that comes too late" servers.ps0.log "${late[1]}"
ends_lost "a mirrored worker that comes too late" mirrored.1.log "${late[2]}"
ends_lost "a peer that comes too late" peers.1.log "${late[3]}"

# ---- it ends while they train: nobody hands out tickets, and no server acknowledges

rm -f servers.*log
cluster="{\"worker\":$(hosts 11 2),\"ps\":$(hosts 111 1)}" pids=()
export COXSWAIN_RECORD=$work/record
COXSWAIN_CHIEF_TIMEOUT=600
start_member servers ps 0
start_member servers worker 0
until_true 60 has_stepped servers.0.log
verdict $? "a crew with a parameter server trains" "$(tails servers)"
COXSWAIN_CHIEF_TIMEOUT=2
start_member servers worker 1
until_true 60 grep -q '^ticket .* take 1 ' record
verdict $? "a worker joins it" "$(tails servers)"
kill -KILL "${pids[100]}"
wait "${pids[100]}" 2>/dev/null
sleep 1 # it waits for the server
lose 0
ends_lost "a worker whose server and chief have gone" servers.1.log "${pids[1]}"
