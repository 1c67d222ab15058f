#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pods on a node of which nothing is heard: the embedded control plane runs none that name another node than its own, and
# waits for that one to end them. Their jobs are deleted; what they leave is taken out of the API after a minute, whether a job
# of the name follows or not, unless nothing would keep it from writing: it has no checkpoint, or had not begun yet. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"

plane_start
operator_start

away='"nodeName":"away","terminationGracePeriodSeconds":1,'

# at POD WORD: somewhere in its object
at() {
    api GET "$pods_path/$1" | contains "$2"
}

# end NAME: deletes the job, until its pod is asked to end
end() {
    until_true 30 at "$1-worker-0-1" '"uid"'
    api DELETE "$jobs_path/$1" >/dev/null
    until_true 30 at "$1-worker-0-1" '"deletionTimestamp"'
}

# begin NAME: what the silent node had said last of its pod
begin() {
    until_true 30 at "$1-worker-0-1" '"uid"'
    api PATCH "$pods_path/$1-worker-0-1/status" '{"status":{"phase":"Running","containerStatuses":[{"name":"trainer",
        "state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}' >/dev/null
    at "$1-worker-0-1" '"startedAt"'
}

saves='{},"storage":[{"name":"runs","persistentVolumeClaim":{"claimName":"runs"}}]'
checkpoint='{"storage":"runs"}'
job again "$saves" 1 'sleep 600' '{}' "$away"
job never "$saves" 1 'sleep 600' '{}' "$away"
job pulling "$saves" 1 'sleep 600' '{}' "$away"
checkpoint=
job unsaved '{}' 1 'sleep 600' '{}' "$away"
begin again && begin never && begin unsaved && end pulling && end unsaved && end again && end never
verdict $? "pods of deleted jobs on a silent node" "$(api GET "$pods_path")"
job again '{}' 1 'exit 0'
until_true 30 job_says again WaitingForPredecessor
verdict $? "a job of the same name waits" "$(api GET "$jobs_path/again")"
wait_for again state Succeeded 120
verdict $? "but not for ever" "$(tail -n 3 operator.log)"
api GET apis/events.k8s.io/v1/namespaces/default/events | contains 'pod again-worker-0-1 did not end'
verdict $? "an event says what became of it"
until_true 60 no_pods_of never
verdict $? "no pod stays if no job follows, either" "$(pods never)"
at pulling-worker-0-1 '"deletionTimestamp"' && at unsaved-worker-0-1 '"deletionTimestamp"'
verdict $? "one that may yet begin, and one without a checkpoint, stay until somebody says that the node is gone"
