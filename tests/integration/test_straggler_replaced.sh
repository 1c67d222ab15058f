#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker of a job that gets a tenth of its time: the job's status, an event, cox why and cox top name it. With
# runPolicy.stragglerReplacement its pod is replaced away from its node, once, and the job ends in the bits of an undisturbed
# run. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/training.sh"
. "$root/tests/integration/slow_worker.sh"
training_start
crew undisturbed 3 300
wait_for undisturbed state Succeeded 90
verdict $? "an undisturbed run succeeds"

delay slow 30 # it does not end before undelay
crew slow 3 300
await_step slow 20
first=$(member slow 1)
slow slow 1
until_true 60 is_straggling slow True
verdict $? "the status names the worker that has a tenth of its time" "$(log_of "$(member slow 0)" | tail -n 3)"
"$bin/cox" why slow | contains 'but its worker 1 takes [0-9]* times as long as expected'
verdict $? "so does cox why" "$("$bin/cox" why slow)"
"$bin/cox" top --once | contains 'worker 1 takes [0-9]* times as long'
verdict $? "and cox top" "$("$bin/cox" top --once)"
has_event slow StragglerFound
verdict $? "and an event" "$("$bin/cox" describe slow)"

sleep 12 # longer than the field asks for below
[[ $(member slow 1) == "$first" ]] && ! job_says slow '"pod"'
verdict $? "it stays without runPolicy.stragglerReplacement"

api PATCH "$jobs_path/slow" '{"spec":{"runPolicy":{"stragglerReplacement":{"afterSeconds":10,"maxPerHour":1}}}}' >answer.json
until_true 60 is_other slow 1 "$first"
verdict $? "with it the pod is replaced" "$(tail -n 3 operator.log)"
job_says slow "\"pod\": *\"$first\""
verdict $? "the status has that it was decided"
api GET "$pods_path/$(member slow 1)" | tr -d '\n ' | contains '"key":"kubernetes.io/hostname","operator":"NotIn"'
verdict $? "the successor avoids the node" "$(api GET "$pods_path/$(member slow 1)" | tr -d '\n' | cut -c 1-1500)"
has_event slow StragglerReplaced
verdict $? "an event says why" "$("$bin/cox" describe slow)"
until_true 60 is_straggling slow False
verdict $? "the successor keeps up, and the status says so" "$(log_of "$(member slow 0)" | tail -n 3)"

second=$(member slow 1)
end_slow
slow slow 1
until_true 60 is_straggling slow True && sleep 15 && [[ $(member slow 1) == "$second" ]]
verdict $? "a second one within the hour stays, as maxPerHour says"
end_slow
kill -CONT "$(process_of "$second")"
undelay slow
wait_for slow state Succeeded 120 && same_weights undisturbed slow
verdict $? "the job ends in the bits of the undisturbed run"
[[ $(field slow disruptions) == 1 && $(field slow total) == 1 ]]
verdict $? "the replacement counts as one disruption" "$(field slow disruptions) of $(field slow total)"
