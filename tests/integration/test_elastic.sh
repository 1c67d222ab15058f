#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An elastic crew under the operator and the embedded control plane: workers join and leave while it trains, by request and
# by force, and the weights are those of a fixed crew, bit for bit. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
steps=5000
. "$root/tests/integration/training.sh"

training_start

# scale JOB WORKERS, as kubectl scale does it
scale() {
    api PATCH "$jobs_path/$1/scale" "{\"spec\":{\"replicas\":$2}}" >/dev/null
}

crew fixed 2 "$steps"
wait_for fixed state Succeeded 120
verdict $? "a fixed crew trains"

more='"elastic":{"minWorkers":1,"maxWorkers":4},'
crew scaled 2 "$steps"
await_step scaled 50 && until_true 60 sizes_end_in scaled 0 2 && scale scaled 4 && until_true 60 sizes_end_in scaled 0 4
verdict $? "newcomers are taken in while the crew trains" "$(sizes scaled)"
scale scaled 2 && until_true 60 sizes_end_in scaled 0 2
verdict $? "those that are scaled down leave it" "$(sizes scaled)"
victim=$(process_of "$(member scaled 1)")
[[ -n $victim ]] && kill -KILL "$victim" && until_true 60 sizes_end_in scaled 0 "1 2"
verdict $? "a killed worker is missed, and its successor taken in" "$(sizes scaled)"
wait_for scaled state Succeeded 120 && same_weights fixed scaled
verdict $? "the elastic crew ends in the same bits as the fixed one" "$(log_of "$(member scaled 0)" | tail -n 5)"
! log_of "$(member scaled 0)" | grep 'steps were repeated'
verdict $? "no loss cost more than one step"

# ---- ParameterServer

# says JOB PATTERN TIMES: worker 0 does, so often at least
says() {
    (($(log_of "$(member "$1" 0)" | grep -c "$2") >= $3))
}

shards=4 more=
crew whole 2 4000
strategy='"type":"ParameterServer","mode":"Synchronous"'
more='"elastic":{"minWorkers":1,"maxWorkers":4},"roles":[{"name":"ps","count":1}],'
crew served 2 4000
await_step served 50 && scale served 4 && until_true 60 says served 'worker [23] has joined' 2
verdict $? "ParameterServer: newcomers are taken in while the crew trains" "$(log_of "$(member served 0)" | tail -n 3)"
scale served 2 && until_true 60 says served 'worker [23] leaves on request' 2
verdict $? "ParameterServer: those that are scaled down leave it" "$(log_of "$(member served 0)" | tail -n 3)"
victim=$(process_of "$(member served 1)")
[[ -n $victim ]] && kill -KILL "$victim"
wait_for served state Succeeded 120 && wait_for whole state Succeeded 120 && same_weights whole served
verdict $? "ParameterServer: and the bits are a fixed crew's" "$(log_of "$(member served 0)" | tail -n 3)"
strategy='' shards=12

[[ -n ${PEERS_FAULTS:-} ]] || exit 0
more=
crew long 3 40000
wait_for long state Succeeded 600
more='"elastic":{"minWorkers":1,"maxWorkers":4},'
crew held 3 40000
await_step held 200 && freeze held 2 1
wait_for held state Succeeded 600 && same_weights long held
verdict $? "a crew that a frozen worker has left and joined again ends in the same bits"
