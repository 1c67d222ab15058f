#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# runPolicy.gang.scheduler Native with Kubernetes' own gang scheduler: nothing is played but nodes and the lives of pods. It is
# off by default (beta in 1.37, alpha in 1.36), so this script brings a control plane of its own with the gates open, in which it calls
# itself. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}

if [[ ${1:-} != inside ]]; then
    knows() { grep -q "$1=true|false" < <(kube-scheduler --help 2>&1); }
    if knows GangScheduling; then # Kubernetes 1.36
        gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true
        version=scheduling.k8s.io/v1alpha2
    elif knows GenericWorkload; then
        gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true version=scheduling.k8s.io/v1beta1
    else
        echo "skip native gangs: $(kube-scheduler --version) has no gang scheduler"
        exit 0
    fi
    exec "$root/tests/cluster/with" --feature-gates "$gates" --runtime-config "$version=true" "$0" inside "$version"
fi
version=$2

work=$(mktemp -d)
# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

if ! grep -qx "$version" < <(kubectl api-versions); then
    echo "skip native gangs: $(kube-apiserver --version) does not serve $version"
    exit 0
fi
cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start
cluster_operator_start

# gang JOB WORKERS [MORE [POLICY]]: each takes more than half a node; MORE of runPolicy.gang, POLICY of runPolicy, a comma in front
gang() {
    k apply -f - <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: $2, template: {spec: {containers: [{name: trainer, resources: {requests: {cpu: '600'}}}]}}}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: "0.1"}}
  runPolicy: {gang: {scheduler: Native${3:-}}${4:-}}
YAML
}

group() {
    k get podgroups.scheduling.k8s.io "$1" -o "jsonpath={$2}" 2>/dev/null
}

group_gone() {
    [[ -z $(k get podgroups.scheduling.k8s.io "$1" --ignore-not-found -o name) ]]
}

# bound JOB: how many pods of it have a node
bound() {
    k get pods -l "coxswain.dev/job-name=$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .
}

pods_are() {
    [[ $(k get pods -l "coxswain.dev/job-name=$1" -o name | wc -l) == "$2" ]]
}

# Its condition: PodGroupInitiallyScheduled, or PodGroupScheduled with Kubernetes 1.36.
scheduled() {
    [[ $(group "$1" '.status.conditions[*].type}={.status.conditions[*].status') =~ Scheduled=True$ ]]
}

unschedulable() {
    [[ $(group "$1" '.status.conditions[*].type}={.status.conditions[*].status') =~ Scheduled=False$ ]]
}

gang whole 3 >/dev/null
expect whole readySummary 3/3
verdict $? "a gang that fits runs" "$(status_of whole conditions) $(k get pods -o wide)"
[[ $(group whole '.spec.schedulingPolicy.gang.minCount}{.metadata.ownerReferences[0].name') == 3whole ]]
verdict $? "its PodGroup says how many belong together" "$(group whole .spec)"
mode='{"all":{}}'
[[ $version != */v1alpha2 ]] || mode=PodGroup
[[ $(group whole .spec.disruptionMode) == "$mode" ]]
verdict $? "and that they are preempted together" "$(group whole .spec)"
[[ $(k get pod "$(current whole 0)" -o 'jsonpath={.spec.schedulingGroup.podGroupName} {.spec.schedulerName}') == "whole default-scheduler" ]]
verdict $? "and its pods that they do" "$(k get pod "$(current whole 0)" -o 'jsonpath={.spec}')"
until_true 90 scheduled whole
verdict $? "the scheduler has taken it for a gang" "$(group whole .status)"

uid=$(group whole .metadata.uid)
old=$(current whole 1)
k delete pod "$old" --wait=false >/dev/null
until_true 90 replaced whole 1 "$old" && expect whole readySummary 3/3
verdict $? "a pod that was lost is replaced" "$(status_of whole conditions) $(k get pods -o wide)"
[[ $(group whole .metadata.uid) == "$uid" ]]
verdict $? "in the same group"

k patch tj whole --type=merge -p '{"spec": {"suspend": true}}' >/dev/null
expect whole state Suspended && until_true 90 group_gone whole
verdict $? "the group goes on suspend" "$(status_of whole conditions) $(group whole .metadata)"

# Three of four would fit.
gang tight 4 >/dev/null
until_true 90 pods_are tight 4 && until_true 90 unschedulable tight
verdict $? "a gang that does not fit is found so" "$(group tight .status) $(k get pods)"
(($(bound tight) == 0))
verdict $? "and none of it is placed" "$(k get pods -o wide)"
words=$("$bin/cox" why tight -n "$space" 2>&1)
grep -Eq 'tight waits .*(nodes|gang|minCount|PodGroup)' <<<"$words"
verdict $? "why says so" "$words"
add_node node-more
expect tight readySummary 4/4
verdict $? "with one node more all of it is" "$(group tight .status) $(k get pods -o wide)"

k patch tj whole --type=merge -p '{"spec": {"suspend": false}}' >/dev/null
until_true 90 pods_are whole 3 && until_true 90 unschedulable whole && (($(bound whole) == 0))
verdict $? "resumed, a gang waits for room as a whole" "$(group whole .status) $(k get pods -o wide)"
k delete tj tight --wait=false >/dev/null
expect whole readySummary 3/3
verdict $? "and runs when another has gone" "$(group whole .status) $(k get pods -o wide)"
until_true 90 group_gone tight
verdict $? "the other gang's group is deleted, too" "$(group tight .metadata)"

# ---------------------------------------------------------------- priority: group and pods have the same, or the pods are refused
kubectl create -f - >/dev/null <<'YAML'
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent-gang}
value: 1000
YAML
gang urgent 2 '' ', priorityClassName: urgent-gang' >/dev/null
expect urgent readySummary 2/2
verdict $? "a gang with a PriorityClass runs" "$(status_of urgent conditions) $(k get events | tail -n 5)"
[[ $(k get pod "$(current urgent 0)" -o 'jsonpath={.spec.priority} {.spec.priorityClassName}') == "1000 urgent-gang" ]]
verdict $? "its pods have the class's priority" "$(k get pod "$(current urgent 0)" -o 'jsonpath={.spec}')"
[[ $(group urgent '.spec.priority} {.spec.priorityClassName') == "1000 urgent-gang" ]]
verdict $? "and so has its PodGroup" "$(group urgent .spec)"
# Three of the four nodes are left to the urgent gang if the other one goes.
k delete tj urgent --wait=false >/dev/null
until_true 90 pods_are urgent 0
gang urgent 3 '' ', priorityClassName: urgent-gang' >/dev/null
expect urgent readySummary 3/3
verdict $? "it preempts a gang without" "$(status_of urgent conditions) $(group urgent .status) $(k get pods -o wide)"
none_bound() { (($(bound whole) == 0)); }
until_true 90 none_bound
verdict $? "as a whole" "$(k get pods -o wide)"
[[ $(status_of whole restarts.failures) =~ ^0?$ ]]
verdict $? "which is no failure" "$(status_of whole restarts)"
k delete tj urgent whole --wait=false >/dev/null
all_gone() { [[ -z $(k get pods -o name) ]]; }
until_true 90 all_gone

# ---------------------------------------------------------------- one rack
i=0
for node in $(kubectl get nodes -o 'jsonpath={.items[*].metadata.name}'); do
    kubectl label node "$node" "example.com/rack=$((i++ % 2))" >/dev/null
done
# racks_of JOB: of its pods that have a node
racks_of() {
    local node
    for node in $(k get pods -l "coxswain.dev/job-name=$1" -o 'jsonpath={.items[*].spec.nodeName}'); do
        kubectl get node "$node" -o 'jsonpath={.metadata.labels.example\.com/rack}{"\n"}'
    done | sort | uniq -c | awk '{ print $1 "x" }' | tr '\n' ' '
}
for job in near near-too; do
    gang $job 2 ', topologyKey: example.com/rack' >/dev/null
    expect $job readySummary 2/2
    verdict $? "a gang that wants one rack runs ($job)" "$(status_of $job conditions) $(group $job .) $(k get events | tail -n 5)"
    [[ $(racks_of $job) == "2x " ]]
    verdict $? "its pods are in one rack ($job)" "$(k get pods -o wide)"
done
[[ $(group near '.spec.schedulingConstraints.topology[*].key') == example.com/rack ]]
verdict $? "because its PodGroup asks for it" "$(group near .spec)"
k delete tj near near-too --wait=false >/dev/null
until_true 90 all_gone
gang wide 3 ', topologyKey: example.com/rack' >/dev/null
until_true 90 pods_are wide 3 && until_true 90 unschedulable wide && (($(bound wide) == 0))
verdict $? "a gang that fits into no rack waits as a whole" "$(group wide .status) $(k get pods -o wide)"
words=$("$bin/cox" why wide -n "$space" 2>&1)
grep -Eq 'wide waits .*(nodes|placement|topology|PodGroup)' <<<"$words"
verdict $? "why says so" "$words"

operators_judged
