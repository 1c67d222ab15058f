#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gang schedulers and Kueue, as a script plays them against the embedded control plane. The PodGroup comes before its pods,
# is admitted, stays when a pod is replaced or preempted, goes on suspend and at the end; a scheduler that is missing is
# named, and found once it is there. A Workload is admitted with a flavor, evicted, requeued, admitted again and finished.
#   SCHEDULER_CRDS=DIRECTORY  serves these definitions (*.yaml) in place of the outlines in tests/integration/crds
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
patience=60

mkdir crds
cp "$root"/tests/integration/crds/*.yaml crds
mv crds/native.yaml .
if [[ -n ${SCHEDULER_CRDS:-} ]]; then
    rm crds/*.yaml
    cp "$SCHEDULER_CRDS"/*.yaml crds
fi

declare -A groups=(
    [Volcano]=apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups
    [Coscheduling]=apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups
    [Native]=apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups
)

# group SCHEDULER JOB: the PodGroup on one line without spaces
group() {
    api GET "${groups[$1]}/$2" | tr -d ' \n'
}

group_has() {
    group "$1" "$2" | contains "$3"
}

group_gone() {
    group_has "$1" "$2" '"code":404'
}

group_uid() {
    group "$1" "$2" | grep -o '"uid":"[^"]*"' | tail -n 1
}

# admit JOB: what Volcano does when there is room
admit() {
    until_true "$patience" group_has Volcano "$1" '"minMember"' || return
    api PATCH "${groups[Volcano]}/$1" '{"status":{"phase":"Inqueue"}}' >/dev/null
}

has_reason() {
    api GET "$jobs_path/$1" | contains "\"$2\""
}

plane_start --crd "$work/crds"
operator_start

job gang '{"priorityClassName":"high","gang":{"scheduler":"Volcano","queue":"research"}}' 2 'sleep 600'
until_true "$patience" has_reason gang PodGroupPending && until_true "$patience" group_has Volcano gang '"minMember":2'
verdict $? "the PodGroup comes first" "$(api GET "$jobs_path/gang")"
group_has Volcano gang '"minTaskMember":{"worker":2}' && group_has Volcano gang '"queue":"research"' &&
    group_has Volcano gang '"priorityClassName":"high"' && group_has Volcano gang '"minResources":{'
verdict $? "nothing that the operator writes of it is unknown" "$(group Volcano gang)"
no_pods_of gang
verdict $? "no pod is there before the group leaves Pending"
admit gang
wait_for gang state Running "$patience"
verdict $? "an admitted group runs"
api GET "$pods_path/$(member gang 0)" | contains '"scheduling.k8s.io/group-name": *"gang"'
verdict $? "pods name their group"

uid=$(group_uid Volcano gang)
api POST "$pods_path/$(member gang 1)/eviction" '{"apiVersion":"policy/v1","kind":"Eviction"}' >/dev/null
wait_for gang disruptions 1 "$patience" && wait_for gang state Running "$patience"
verdict $? "a preempted pod is replaced"
[[ -n $uid && $(group_uid Volcano gang) == "$uid" ]]
verdict $? "its group stays"
api PATCH "$jobs_path/gang" '{"spec":{"suspend": true}}' >/dev/null
wait_for gang state Suspended "$patience" && until_true "$patience" group_gone Volcano gang
verdict $? "the group goes on suspend"
api PATCH "$jobs_path/gang" '{"spec":{"suspend": false}}' >/dev/null
until_true "$patience" has_reason gang PodGroupPending && admit gang && wait_for gang state Running "$patience"
verdict $? "it comes again and waits anew" "$(group Volcano gang)"
api DELETE "$jobs_path/gang" >/dev/null

job short '{"gang":{"scheduler":"Coscheduling","scheduleTimeoutSeconds":30}}' 2 'sleep 2'
until_true "$patience" group_has Coscheduling short '"scheduleTimeoutSeconds":30' && group_has Coscheduling short '"minMember":2'
verdict $? "the scheduler plugins are told members and patience" "$(group Coscheduling short)"
wait_for short state Succeeded "$patience" && until_true "$patience" group_gone Coscheduling short
verdict $? "the group goes at the end" "$(group Coscheduling short)"

job later '{"gang":{"scheduler":"Native"}}' 1 'sleep 600'
until_true "$patience" has_reason later GangSchedulerMissing && no_pods_of later
verdict $? "a scheduler that is missing is named, and nothing runs without it" "$(api GET "$jobs_path/later")"
curl -sS --cacert ca.pem -H "Authorization: Bearer $token" -H "Content-Type: application/yaml" \
    --data-binary @native.yaml "$server/apis/apiextensions.k8s.io/v1/customresourcedefinitions" >answer.json
wait_for later state Running "$patience" && group_has Native later '"minCount":1'
verdict $? "it is found once it is there" "$(cat answer.json; group Native later)"

# ---- Kueue

workload=apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/queued

workload() {
    api GET "$workload" | tr -d ' \n'
}

workload_has() {
    workload | contains "$1"
}

# says TYPE STATUS REASON: a condition as Kueue applies it
says() {
    echo "{\"type\":\"$1\",\"status\":\"$2\",\"reason\":\"$3\",\"message\":\"$3\",\"lastTransitionTime\":\"2026-11-20T14:00:00Z\"}"
}

# kueue CONDITION,… [ADMISSION]: Kueue's own apply of the Workload's status
kueue() {
    curl -sS --cacert ca.pem -H "Authorization: Bearer $token" -H "Content-Type: application/apply-patch+yaml" -X PATCH \
        --data-binary "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"queued\"},
        \"status\":{\"conditions\":[$1]${2:+,\"admission\":$2}}}" "$server/$workload/status?fieldManager=kueue-admission&force=true"
}

admission='{"clusterQueue":"research","podSetAssignments":[{"name":"worker","flavors":{"cpu":"spot"},"count":2}]}'
job queued '{}' 2 'sleep 600' '{"kueue.x-k8s.io/queue-name":"research"}'
until_true "$patience" workload_has '"queueName":"research"' && workload_has '"count":2' && workload_has '"containers"'
verdict $? "a labelled job has a Workload" "$(cat answer.json; workload)"
wait_for queued state Suspended "$patience" && no_pods_of queued
verdict $? "no pod is there before it is admitted"
kueue "$(says QuotaReserved True QuotaReserved),$(says Admitted True Admitted)" "$admission" >answer.json
until_true "$patience" has_reason queued FlavorMissing && no_pods_of queued
verdict $? "a flavor that is missing is waited for" "$(cat answer.json; api GET "$jobs_path/queued")"
api POST apis/kueue.x-k8s.io/v1beta2/resourceflavors '{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ResourceFlavor",
    "metadata":{"name":"spot"},"spec":{"nodeLabels":{"pool":"spot"},"tolerations":[{"key":"spot","operator":"Exists"}]}}' >answer.json
wait_for queued state Running "$patience"
verdict $? "an admitted job runs" "$(cat answer.json)"
api GET "$pods_path/$(member queued 0)" | tr -d ' \n' >pod.json
grep -q '"nodeSelector":{"pool":"spot"}' pod.json && grep -q '"key":"spot"' pod.json
verdict $? "its pods go where the flavor says" "$(cat pod.json)"
ready() { workload | grep -o '{[^{}]*"type":"PodsReady"[^{}]*}' | contains "\"status\":\"$1\""; }
until_true "$patience" ready True
verdict $? "Kueue is told that the pods are ready" "$(workload)"

kueue "$(says QuotaReserved True QuotaReserved),$(says Admitted True Admitted),$(says Evicted True Preempted)" "$admission" >answer.json
wait_for queued state Suspended "$patience" && until_true "$patience" no_pods_of queued # they have ended; their objects may go later
verdict $? "an evicted job has no pods" "$(cat answer.json)"
released() { workload_has '"reason":"Pending"' && ! workload_has '"clusterQueue"' && workload_has '"type":"Requeued"'; }
until_true "$patience" released
verdict $? "its quota is given back and it is requeued" "$(workload)"
[[ $(field queued total) == "" && $(field queued disruptions) != 1 ]] &&
    api GET "$jobs_path/queued" | contains '"suspend": *false'
verdict $? "an eviction is no failure, and spec.suspend is not touched" "$(api GET "$jobs_path/queued")"
kueue "$(says QuotaReserved True QuotaReserved),$(says Admitted True Admitted),$(says Evicted False Admitted)" "$admission" >answer.json
wait_for queued state Running "$patience" && [[ $(field queued attempt) == 2 ]]
verdict $? "admitted again it starts over" "$(workload)"
api PATCH "$jobs_path/queued" '{"spec":{"runPolicy":{"activeDeadlineSeconds":1}}}' >/dev/null
wait_for queued state Failed "$patience" && until_true "$patience" workload_has '"type":"Finished"'
verdict $? "Kueue is told of the end" "$(workload)"
