#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Other projects' APIs that the operator may not read, or that disappear: jobs that need them wait and say why, all
# others go on. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/faulty.sh"
patience=60

finish_also() {
    faulty_stop
}

mkdir crds
cp "$root"/tests/integration/crds/{coscheduling,kueue-*}.yaml crds
plane_start --crd "$work/crds"
echo '[{"path": "/workloads", "fault": "status", "status": 403}, {"path": "/podgroups", "fault": "status", "status": 403}]' >rules.json
faulty_serve 1
operator_start "$work/faulty"

job queued '{}' 1 'sleep 600' '{"kueue.x-k8s.io/queue-name":"research"}'
until_true "$patience" job_says queued 'the operator has no access to the Workloads of Kueue: made by faultproxy'
verdict $? "a job with a queue says what the operator may not see" "$(api GET "$jobs_path/queued")"
job gang '{"gang":{"scheduler":"Coscheduling"}}' 1 'sleep 600'
until_true "$patience" job_says gang 'the operator has no access to podgroups of scheduling.x-k8s.io: made by faultproxy'
verdict $? "a gang says what the operator may not see" "$(api GET "$jobs_path/gang")"
refused() { metric "coxswain_watch_refused{resource=\"$1\"}"; }
[[ $(refused workloads.kueue.x-k8s.io) == 1 && $(refused podgroups.scheduling.x-k8s.io) == 1 &&
    $(refused podgroups.scheduling.volcano.sh) == 0 ]]
verdict $? "both as a metric"
job plain '{}' 1 'sleep 600'
wait_for plain state Running "$patience"
verdict $? "a job that needs neither runs" "$(api GET "$jobs_path/plain")"
no_pods_of queued && no_pods_of gang
verdict $? "the others have no pods"

# ---- one that goes away and comes again

operator_kill
operator_start
wait_for gang state Running "$patience"
verdict $? "with the right to see it a gang runs" "$(api GET "$jobs_path/gang")"
api DELETE apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io >/dev/null
job later '{"gang":{"scheduler":"Coscheduling"}}' 1 'sleep 600'
until_true "$patience" job_says later GangSchedulerMissing && no_pods_of later
verdict $? "an API that is not served any more is missed" "$(api GET "$jobs_path/later")"
curl -sS --cacert ca.pem -H "Authorization: Bearer $token" -H "Content-Type: application/yaml" \
    --data-binary @crds/coscheduling.yaml "$server/apis/apiextensions.k8s.io/v1/customresourcedefinitions" >answer.json
wait_for later state Running "$patience"
verdict $? "and found when it is back" "$(cat answer.json; api GET "$jobs_path/later")"
field_is gang state Running && [[ $(field gang total) == "" ]]
verdict $? "a gang that runs goes on meanwhile" "$(api GET "$jobs_path/gang")"
