#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# PodGroups and Workloads against the real definitions of Volcano, the scheduler plugins and Kueue, their rules evaluated by a
# real API server; this script plays the schedulers: admits, binds, preempts, evicts, requeues. Two operators with the rights of
# deploy/rbac, pods played by KWOK. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    [[ ! -d $work/crds ]] || kubectl delete -f "$work/crds" --timeout=60s >/dev/null 2>&1
    rm -rf "$work"
}
trap finish EXIT

why=$("$root/tests/cluster/scheduler-crds" "$work/crds" 2>&1)
status=$?
if ((status == 3)); then
    echo "skip schedulers: $(tail -n 1 <<<"$why")"
    exit 0
fi
verdict $status "the definitions are found in their modules" "$why"
cluster_prepare || { echo "not ok preparation"; exit 1; }
why=$(kubectl create -f "$work/crds" 2>&1 && established -f "$work/crds" 2>&1)
verdict $? "the API server takes them" "$why"
cluster_operator_start
cluster_operator_start

# gang_job NAME SCHEDULER [MORE [LABELS]]: two workers; MORE of runPolicy.gang
gang_job() {
    requests='cpu: "2"' played_job "$1" 2 "{gang: {scheduler: $2${3:+, $3}}}" "" "" "${4:-}"
}

has_condition() {
    status_of "$1" conditions | contains "\"$2\""
}

# runs JOB: binds its pods and waits until they run
runs() {
    bind "$1"
    status_is "$1" readySummary 2/2
}

# preempt POD: as a scheduler does: it says so, then the pod is deleted
preempt() {
    kubectl -n "$space" patch pod "$1" --subresource=status --type=strategic -p '{"status": {"conditions": [{"type": "DisruptionTarget",
        "status": "True", "reason": "PreemptionByScheduler", "lastTransitionTime": "2026-11-20T14:00:00Z"}]}}' >/dev/null &&
        k delete pod "$1" --wait=false >/dev/null
}

# ---------------------------------------------------------------- PodGroups
# group KIND JOB JSONPATH
group() {
    k get "$1" "$2" -o "jsonpath={$3}"
}

# life JOB KIND: it runs, a pod is preempted, it is suspended and resumed
life() {
    local job=$1 kind=$2 uid old
    until_true 60 runs "$job"
    verdict $? "$job: pods that are bound run" "$(k get pods -o wide)"
    uid=$(group "$kind" "$job" .metadata.uid)
    old=$(current "$job" 1)
    preempt "$old"
    until_true 60 replaced_and_bound "$job" 1 "$old"
    verdict $? "$job: a preempted pod is replaced" "$(k get pods -o wide)"
    expect "$job" restarts.disruptions 1
    verdict $? "$job: as a disruption" "$(status_of "$job" restarts)"
    [[ $(group "$kind" "$job" .metadata.uid) == "$uid" ]]
    verdict $? "$job: its group stays"
}

replaced_and_bound() {
    bind "$1"
    replaced "$@"
}

group_gone() {
    ! k get "$1" "$2" >/dev/null 2>&1
}

volcano=podgroups.scheduling.volcano.sh
gang_job gang Volcano "queue: research" >/dev/null
until_true 60 has_condition gang PodGroupPending && until_true 60 k get $volcano gang >/dev/null 2>&1
verdict $? "Volcano: the PodGroup comes first" "$(status_of gang conditions)"
[[ $(group $volcano gang '.spec.minMember}{.spec.minTaskMember.worker}{.spec.queue}{.spec.minResources.cpu') == 22research4 ]]
verdict $? "Volcano: the PodGroup has all the job's settings" "$(group $volcano gang .spec)"
pods_are gang 0
verdict $? "Volcano: no pod is there before the group leaves Pending"
k patch $volcano gang --type=merge -p '{"status": {"phase": "Inqueue"}}' >/dev/null
until_true 60 pods_are gang 2
verdict $? "Volcano: pods are there when it has" "$(k get pods; status_of gang conditions)"
[[ $(k get pods -l coxswain.dev/job-name=gang -o 'jsonpath={.items[*].spec.schedulerName}') == "volcano volcano" ]]
verdict $? "Volcano: for its scheduler"
life gang $volcano
k patch tj gang --type=merge -p '{"spec": {"suspend": true}}' >/dev/null
expect gang state Suspended && until_true 60 group_gone $volcano gang
verdict $? "Volcano: the group goes on suspend" "$(status_of gang state)"
k patch tj gang --type=merge -p '{"spec": {"suspend": false}}' >/dev/null
until_true 60 k patch $volcano gang --type=merge -p '{"status": {"phase": "Inqueue"}}' >/dev/null 2>&1
until_true 60 runs gang
verdict $? "Volcano: requeued, admitted again, it runs" "$(k get pods -o wide; status_of gang conditions)"
k delete tj gang >/dev/null
until_true 60 group_gone $volcano gang
verdict $? "Volcano: the group goes with its job"

plugins=podgroups.scheduling.x-k8s.io
gang_job plugged Coscheduling "scheduleTimeoutSeconds: 30" >/dev/null
until_true 60 pods_are plugged 2
verdict $? "scheduler plugins: pods are there" "$(status_of plugged conditions)"
[[ $(group $plugins plugged '.spec.minMember}{.spec.scheduleTimeoutSeconds}{.spec.minResources.cpu') == 2304 ]]
verdict $? "scheduler plugins: the group has all the job's settings" "$(group $plugins plugged .spec)"
life plugged $plugins
k delete tj plugged >/dev/null

# ---------------------------------------------------------------- Kueue
admission='{"clusterQueue":"research","podSetAssignments":[{"name":"worker","flavors":{"cpu":"spot"},"resourceUsage":{"cpu":"4"},"count":2}]}'
admitted="$(says QuotaReserved True QuotaReserved),$(says Admitted True Admitted)"
kubectl create -f - >/dev/null <<'YAML'
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
YAML
gang_job queued None "" "kueue.x-k8s.io/queue-name: research, kueue.x-k8s.io/priority-class: urgent" >/dev/null
until_true 60 workload queued .metadata.name >/dev/null
verdict $? "Kueue: a labelled job has a Workload" "$(status_of queued conditions)"
[[ $(workload queued '.spec.queueName}{.spec.podSets[*].name}{.spec.podSets[*].count}{.spec.priority}{.spec.podSets[0].template.spec.containers[0].resources.requests.cpu') == researchworker210002 ]]
verdict $? "Kueue: the Workload has all the job's settings" "$(workload queued .spec)"
expect queued state Suspended && pods_are queued 0
verdict $? "Kueue: no pod is there before it is admitted" "$(status_of queued state)"
queue_is_named() {
    why=$("$bin/cox" why queued -n "$space") && [[ $why == "queued waits for its queue to admit it: waiting in queue research"* ]]
}
until_true 60 queue_is_named
verdict $? "Kueue: cox why says that it waits for its queue" "$why"
kubectl create -f - >/dev/null <<'YAML'
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {type: kwok}, tolerations: [{key: spot, operator: Exists}]}
YAML
why=$(kueue "$admitted" "$admission")
verdict $? "Kueue: it is admitted" "$why"
expect queued readySummary 2/2
verdict $? "Kueue: and runs" "$(status_of queued conditions)"
[[ $(k get pod "$(current queued 0)" -o 'jsonpath={.spec.nodeSelector.type} {.spec.tolerations[?(@.key=="spot")].operator}') == "kwok Exists" ]]
verdict $? "Kueue: where the flavor says" "$(k get pod "$(current queued 0)" -o 'jsonpath={.spec}')"
until_true 60 workload_is queued PodsReady True
verdict $? "Kueue: is told that the pods are ready" "$(workload queued .status)"
why=$(kueue "$admitted,$(says Evicted True Preempted)" "$admission")
verdict $? "Kueue: it is evicted" "$why"
expect queued state Suspended && until_true 60 pods_are queued 0
verdict $? "Kueue: and has no pods" "$(k get pods)"
released() { workload_is queued QuotaReserved False && [[ -z $(workload queued .status.admission) ]] && workload_is queued Requeued True; }
until_true 60 released
verdict $? "Kueue: its quota is given back and it is requeued" "$(workload queued .status)"
[[ $(status_of queued restarts.failures) =~ ^0?$ && $(status_of queued restarts.disruptions) =~ ^0?$ ]]
verdict $? "Kueue: which is no failure" "$(status_of queued restarts)"
why=$(kueue "$admitted,$(says Evicted False Admitted)" "$admission")
verdict $? "Kueue: it is admitted again" "$why"
expect queued readySummary 2/2
verdict $? "Kueue: and starts over" "$(status_of queued conditions)"
k patch tj queued --type=merge -p '{"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}}' >/dev/null
expect queued state Failed && until_true 60 workload_is queued Finished True
verdict $? "Kueue: is told of the end" "$(workload queued .status)"

operators_judged
