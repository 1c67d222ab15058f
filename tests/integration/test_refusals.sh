#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs with pods or Services that the API server, or a proxy in front of it, refuses to create. Prints ok/not ok lines
# (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/faulty.sh"
patience=60

finish_also() {
    faulty_stop
}

mkdir crds
cp "$root"/tests/integration/crds/kueue-*.yaml crds
cat >crds/priority.yaml <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: priorityclasses.scheduling.k8s.io}
spec:
  group: scheduling.k8s.io
  names: {kind: PriorityClass, listKind: PriorityClassList, plural: priorityclasses, singular: priorityclass}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {value: {type: integer}}}}}
YAML
plane_start --crd "$work/crds"
echo '[{"method": "POST", "path": "/pods", "fault": "status", "status": 408, "times": 1}]' >rules.json
faulty_serve 1
operator_start "$work/faulty"

# ---- a create that times out

job lost '{}' 1 'sleep 600'
wait_for lost state Running "$patience"
verdict $? "a create that timed out on its way is tried again" "$(api GET "$jobs_path/lost")"

# ---- a Service that is not found

api PATCH api/v1/namespaces/default/services/lost '{"metadata":{"labels":{"coxswain.dev/job-uid":null}}}' >answer.json
until_true "$patience" job_says lost 'services lost is this job.s, but has lost the label'
verdict $? "a Service that lost its label is named" "$(cat answer.json; api GET "$jobs_path/lost")"
asked='coxswain_kube_requests_total{verb="create",resource="services",code="409"}'
before=$(metric "$asked") begun=$SECONDS
asked_again() { (($(metric "$asked") > before)); }
until_true "$patience" asked_again
sleep 5
now=$(metric "$asked")
((before > 0 && now > before && now - before < 2 * (SECONDS - begun)))
verdict $? "and asked for now and then" "$before, then $now"
uid=$(api GET api/v1/namespaces/default/services/lost | sed -n 's/.*"coxswain.dev\/job-uid": *"\([^"]*\)".*/\1/p')
api PATCH api/v1/namespaces/default/services/lost "{\"metadata\":{\"labels\":{\"coxswain.dev/job-uid\":\"$uid\"}}}" >answer.json
until_true "$patience" job_says lost '"AllScheduled"'
verdict $? "with its label all is well" "$(cat answer.json; api GET "$jobs_path/lost")"

# ---- a Service of somebody else, which no label shows

pods_asked_for() {
    metric 'coxswain_kube_requests_total{verb="create",resource="pods",code="[^"]*"}' | awk '{ sum += $1 } END { print sum + 0 }'
}
api POST api/v1/namespaces/default/services \
    '{"apiVersion":"v1","kind":"Service","metadata":{"name":"squatted"},"spec":{"ports":[{"port":80}]}}' >answer.json
pods_before=$(pods_asked_for)
job squatted '{}' 2 'sleep 600'
until_true "$patience" job_says squatted 'services squatted exists and belongs to nobody: remove it'
verdict $? "a Service of somebody else is named" "$(cat answer.json; api GET "$jobs_path/squatted")"
before=$(metric "$asked")
until_true "$patience" asked_again
[[ $(pods_asked_for) == "$pods_before" ]]
verdict $? "and holds the pods back, also when it is asked again" "$pods_before pods, then $(pods_asked_for)"
api DELETE api/v1/namespaces/default/services/squatted >answer.json
wait_for squatted state Running "$patience"
verdict $? "which come when it has gone" "$(cat answer.json; api GET "$jobs_path/squatted")"

# ---- a PriorityClass that is not there

job important '{"priorityClassName":"high"}' 1 'sleep 600' '{"kueue.x-k8s.io/queue-name":"research"}'
until_true "$patience" job_says important 'waiting in queue research: .*high.* create the PriorityClass of runPolicy'
verdict $? "a PriorityClass that is missing is named" "$(api GET "$jobs_path/important")"
api POST apis/scheduling.k8s.io/v1/priorityclasses \
    '{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":7}' >answer.json
has_workload() { api GET apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/important | contains '"priority": *7'; }
until_true "$patience" has_workload
verdict $? "and read once it is there" "$(cat answer.json; api GET "$jobs_path/important")"
