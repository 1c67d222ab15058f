#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A worker that gets a tenth of its time, of jobs with parameter servers in whose modes workers do not step together. Async, where the others
# do its share: the job's status, an event, cox why and cox top name it, and runPolicy.stragglerReplacement replaces its pod and no other.
# BoundedStaleness: it is named, too. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/training.sh"
. "$root/tests/integration/slow_worker.sh"
export KUBECONFIG=$work/state/kubeconfig
more='"parameterServers":{"replicas":2},'

finish_also() {
    end_slow
}

# others JOB: the names of the pods beside worker 1
others() {
    api GET "$pods_path" | tr -d '\n ' | grep -o '"name":"'"$1"'-[a-z]*-[0-9]*-[0-9]*"' | grep -v -- '-worker-1-' | sort -u
}

# begin JOB: three workers, whose shares take a tenth of a second, and of which none is named
begin() {
    delay "$1" 100 # it does not end before undelay
    crew "$1" 3 2000
    await_step "$1" 40
    ! is_straggling "$1" True
    verdict $? "$1: nobody is named while all are as fast" "$(log_of "$(member "$1" 0)" | tail -n 3)"
}

is_named() {
    until_true 60 is_straggling "$1" True && "$bin/cox" why "$1" | contains 'but its worker 1 takes [0-9]* times as long as expected'
    verdict $? "$1: the status and cox why name the worker that has a tenth of its time" "$(log_of "$(member "$1" 0)" | tail -n 3; "$bin/cox" why "$1")"
}

training_start
strategy='"type":"ParameterServer","mode":"Async"'
begin async
first=$(member async 1) before=$(others async)
slow async 1
is_named async
"$bin/cox" top --once | contains 'worker 1 takes [0-9]* times as long'
verdict $? "so does cox top" "$("$bin/cox" top --once)"
is_measured async 1
verdict $? "and the metrics of the chief" "$(log_of "$(member async 0)" | tail -n 3)"
has_event async StragglerFound
verdict $? "and an event" "$("$bin/cox" describe async)"

api PATCH "$jobs_path/async" '{"spec":{"runPolicy":{"stragglerReplacement":{"afterSeconds":10,"maxPerHour":1}}}}' >answer.json
until_true 60 is_other async 1 "$first"
verdict $? "with runPolicy.stragglerReplacement the pod is replaced" "$(tail -n 3 operator.log)"
has_event async StragglerReplaced
verdict $? "an event says why" "$("$bin/cox" describe async)"
until_true 60 is_straggling async False
verdict $? "the successor keeps up, and the status says so" "$(log_of "$(member async 0)" | tail -n 3)"
[[ -n $before && $(others async) == "$before" ]]
verdict $? "the chief, the servers and the other worker stay" "$before; $(others async)"
end_slow
undelay async
wait_for async state Succeeded 120 && [[ $(field async disruptions) == 1 ]]
verdict $? "the job succeeds, and the replacement counts as one disruption" "$("$bin/cox" describe async)"

strategy='"type":"ParameterServer","mode":"BoundedStaleness","staleness":4'
begin bounded
slow bounded 1
is_named bounded
end_slow
kill -CONT "$(process_of "$(member bounded 1)")"
until_true 60 is_straggling bounded False
verdict $? "and the status says when it keeps up again" "$(log_of "$(member bounded 0)" | tail -n 3)"
undelay bounded
wait_for bounded state Succeeded 120
verdict $? "the job succeeds"
