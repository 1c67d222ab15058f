#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker of a job with parameter servers that gets a tenth of its time: where all wait for it (Synchronous), the job's status, an event
# and cox why name it, runPolicy.stragglerReplacement replaces its pod and no other, and the job ends in the bits of an undisturbed run.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/training.sh"
. "$root/tests/integration/slow_worker.sh"
strategy='"type":"ParameterServer","mode":"Synchronous"'
more='"parameterServers":{"replicas":2},'

# servers JOB: the names of the pods of its parameter servers
servers() {
    api GET "$pods_path" | tr -d '\n ' | grep -o '"name":"'"$1"'-ps-[0-9]*-[0-9]*"' | sort -u
}

training_start
crew undisturbed 3 300
wait_for undisturbed state Succeeded 90
verdict $? "an undisturbed run succeeds" "$("$bin/cox" describe undisturbed)"

delay slow 30 # it does not end before undelay
crew slow 3 300
await_step slow 20
first=$(member slow 1) chief=$(member slow 0)
before=$(servers slow)
slow slow 1
until_true 60 is_straggling slow True
verdict $? "the status names the worker that has a tenth of its time" "$(log_of "$chief" | tail -n 3)"
"$bin/cox" why slow | contains 'but its worker 1 takes [0-9]* times as long as expected'
verdict $? "so does cox why" "$("$bin/cox" why slow)"
is_measured slow 1
verdict $? "and the metrics of the chief" "$(log_of "$(member slow 0)" | tail -n 3)"
has_event slow StragglerFound
verdict $? "and an event" "$("$bin/cox" describe slow)"

api PATCH "$jobs_path/slow" '{"spec":{"runPolicy":{"stragglerReplacement":{"afterSeconds":10,"maxPerHour":1}}}}' >answer.json
until_true 60 is_other slow 1 "$first"
verdict $? "with runPolicy.stragglerReplacement the pod is replaced" "$(tail -n 3 operator.log)"
api GET "$pods_path/$(member slow 1)" | tr -d '\n ' | contains '"key":"kubernetes.io/hostname","operator":"NotIn"'
verdict $? "the successor avoids the node" "$(api GET "$pods_path/$(member slow 1)" | tr -d '\n' | cut -c 1-1500)"
has_event slow StragglerReplaced
verdict $? "an event says why" "$("$bin/cox" describe slow)"
until_true 60 is_straggling slow False
verdict $? "the successor keeps up, and the status says so" "$(log_of "$chief" | tail -n 3)"
[[ -n $before && $(member slow 0) == "$chief" && $(servers slow) == "$before" ]]
verdict $? "the chief and the servers stay" "$before; $(servers slow)"
end_slow
undelay slow
wait_for slow state Succeeded 120 && same_weights undisturbed slow
verdict $? "the job ends in the bits of the undisturbed run" "$("$bin/cox" describe slow)"
[[ $(field slow disruptions) == 1 ]]
verdict $? "the replacement counts as one disruption" "$(field slow disruptions)"
