#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gang schedulers, as a scripted scheduler plays them against the embedded control plane: the PodGroup comes before its
# pods, is admitted, stays when a pod is replaced or preempted, goes on suspend and at the end; a scheduler that is missing
# is named, and found once it is there.
#   SCHEDULER_CRDS=DIRECTORY  serves these definitions (*.yaml) in place of the outlines in tests/integration/crds
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

if ! command -v curl >/dev/null; then
    echo "skip schedulers: curl is not installed"
    exit 0
fi
bin=${BUILD:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
finish() {
    plane_stop
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
. "$root/tests/integration/plane.sh"
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
    group "$1" "$2" | grep -q "$3"
}

group_gone() {
    group_has "$1" "$2" '"code":404'
}

group_uid() {
    group "$1" "$2" | grep -o '"uid":"[^"]*"' | tail -n 1
}

# admit JOB: what Volcano does when there is room
admit() {
    until_true $patience group_has Volcano "$1" '"minMember"' || return
    api PATCH "${groups[Volcano]}/$1" '{"status":{"phase":"Inqueue"}}' >/dev/null
}

has_reason() {
    api GET "$jobs_path/$1" | grep -q "\"$2\""
}

plane_start --crd "$work/crds"
operator_start

job gang '{"priorityClassName":"high","gang":{"scheduler":"Volcano","queue":"research"}}' 2 'sleep 600'
until_true $patience has_reason gang PodGroupPending && until_true $patience group_has Volcano gang '"minMember":2'
verdict $? "the PodGroup comes first" "$(api GET "$jobs_path/gang")"
group_has Volcano gang '"minTaskMember":{"worker":2}' && group_has Volcano gang '"queue":"research"' &&
    group_has Volcano gang '"priorityClassName":"high"' && group_has Volcano gang '"minResources":{'
verdict $? "nothing that the operator writes of it is unknown" "$(group Volcano gang)"
no_pods_of gang
verdict $? "no pod is there before the group leaves Pending"
admit gang
wait_for gang state Running $patience
verdict $? "an admitted group runs"
api GET "$pods_path/$(member gang 0)" | grep -q '"scheduling.k8s.io/group-name": *"gang"'
verdict $? "pods name their group"

uid=$(group_uid Volcano gang)
api POST "$pods_path/$(member gang 1)/eviction" '{"apiVersion":"policy/v1","kind":"Eviction"}' >/dev/null
wait_for gang disruptions 1 $patience && wait_for gang state Running $patience
verdict $? "a preempted pod is replaced"
[[ -n $uid && $(group_uid Volcano gang) == "$uid" ]]
verdict $? "its group stays"
api PATCH "$jobs_path/gang" '{"spec":{"runPolicy":{"suspend":true}}}' >/dev/null
wait_for gang state Suspended $patience && until_true $patience group_gone Volcano gang
verdict $? "the group goes on suspend"
api PATCH "$jobs_path/gang" '{"spec":{"runPolicy":{"suspend":false}}}' >/dev/null
until_true $patience has_reason gang PodGroupPending && admit gang && wait_for gang state Running $patience
verdict $? "it comes again and waits anew" "$(group Volcano gang)"
api DELETE "$jobs_path/gang" >/dev/null

job short '{"gang":{"scheduler":"Coscheduling","scheduleTimeoutSeconds":30}}' 2 'sleep 2'
until_true $patience group_has Coscheduling short '"scheduleTimeoutSeconds":30' && group_has Coscheduling short '"minMember":2'
verdict $? "the scheduler plugins are told members and patience" "$(group Coscheduling short)"
wait_for short state Succeeded $patience && until_true $patience group_gone Coscheduling short
verdict $? "the group goes at the end" "$(group Coscheduling short)"

job later '{"gang":{"scheduler":"Native"}}' 1 'sleep 600'
until_true $patience has_reason later GangSchedulerMissing && no_pods_of later
verdict $? "a scheduler that is missing is named, and nothing runs without it" "$(api GET "$jobs_path/later")"
curl -sS --cacert ca.pem -H "Authorization: Bearer $token" -H "Content-Type: application/yaml" \
    --data-binary @native.yaml "$server/apis/apiextensions.k8s.io/v1/customresourcedefinitions" >answer.json
wait_for later state Running $patience && group_has Native later '"minCount":1'
verdict $? "it is found once it is there" "$(cat answer.json; group Native later)"
