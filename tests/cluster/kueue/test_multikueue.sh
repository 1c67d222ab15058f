#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs that MultiKueue sends from the cluster of the queue to a worker cluster, with two control planes, the real Kueue manager and an
# operator on each: started, finished, suspended and resumed, evicted, with a class, and deleted. Only nodes and the lives of pods are
# played (KWOK). The script brings both control planes, one in the other, and calls itself in each.
#
#   make check-kueue                (builds the manager from its Go module the first time: minutes)
set -uo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
bin=${BUILD:-$root/build}

case ${1:-} in
'')
    # shellcheck source=tests/cluster/kueue/build.sh
    . "$root/tests/cluster/kueue/build.sh"
    exec "$root/tests/cluster/with" --nodes 0 "$0" queues "$kueue_program" "$kueue_module"
    ;;
queues) # of the cluster where jobs wait; the other one is where they run
    # shellcheck disable=SC2153 # from tests/cluster/with
    QUEUES=$CLUSTER QUEUES_KUBECONFIG=$KUBECONFIG exec "$root/tests/cluster/with" "$0" inside "$2" "$3"
    ;;
esac

work=$(mktemp -d)
mkdir "$work/queues"
# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"
# shellcheck source=tests/cluster/kueue/manager.sh
. "$root/tests/cluster/kueue/manager.sh"

finish() {
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

# queues COMMAND…: in the cluster where jobs wait
queues() {
    CLUSTER=$QUEUES KUBECONFIG=$QUEUES_KUBECONFIG work=$work/queues "$@"
}

readonly SENDS='multiKueue:
  gcInterval: 5s
  externalFrameworks: [{name: TrainingJob.v1beta1.coxswain.dev}]'
kueue_start "$2" "$3" '' >"$work/kueue.log" 2>&1 && queues kueue_start "$2" "$3" "$SENDS" >"$work/queues/kueue.log" 2>&1
status=$?
verdict $status "a Kueue manager in each cluster takes Workloads" \
    "$(cat "$work/kueue.log" "$work/queues/kueue.log"; tail -n 5 "$CLUSTER/logs/kueue" "$QUEUES/logs/kueue" 2>&1)"
((status == 0)) || exit 1
{ cluster_prepare && queues cluster_prepare; } || { echo "not ok preparation"; exit 1; }
cluster_operator_start
queues cluster_operator_start

# queue_made CHECK: a queue with 4 processors; with a check, if one is named
queue_made() {
    why=$(kubectl apply -f - 2>&1 <<YAML
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]
  ${1:+admissionChecksStrategy: {admissionChecks: [{name: $1\}]\}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: $space}
spec: {clusterQueue: research}
YAML
    )
}

other_clusters_made() {
    why=$(kubectl apply -f - 2>&1 <<YAML
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: far}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: far}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: far}
spec: {clusters: [far]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: far}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: far}
YAML
    )
}
kubectl config view --flatten --raw >"$work/far"
queues kubectl -n kueue-system create secret generic far --from-file=kubeconfig="$work/far" >/dev/null
until_true 60 queue_made '' && until_true 60 queues other_clusters_made && until_true 60 queues queue_made far
verdict $? "a queue that sends jobs to the other cluster" "$why"

# sent_job NAME [SECONDS [TTL]]: two workers of two processors each, that end well after that time, else not at all
sent_job() {
    local annotations='' ttl=${3:-}
    [[ -z ${2:-} ]] || annotations="test.coxswain.dev/exit-code: \"0\", test.coxswain.dev/runs-for: \"$2\""
    queues k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  managedBy: kueue.x-k8s.io/multikueue
  ${ttl:+runPolicy: {ttlSecondsAfterFinished: $ttl\}}
  ${class:+trainingClass: {kind: TrainingClass, name: $class\}}
  workers:
    replicas: 2
    template:
      metadata: {annotations: {$annotations}}
      spec: {containers: [{name: trainer, resources: {requests: {cpu: "2"}}}]}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100}
YAML
}

# told JOB: what both clusters say, for a failure
told() {
    queues k get tj,workloads,pods -o wide
    k get tj,workloads,pods -o wide
    queues workload "$1" .status
    workload "$1" .status
    status_of "$1" conditions
    tail -n 5 "$QUEUES/logs/kueue" "$work"/operator-*.log
}

gone() {
    ! k get tj "$1" >/dev/null 2>&1 && ! k get workloads "$1" >/dev/null 2>&1 && pods_are "$1" 0
}

sent_job first
until_true 90 status_is first readySummary 2/2
verdict $? "a job runs in the other cluster" "$(told first)"
owner=$(workload first '.metadata.ownerReferences[*].uid')
[[ -n $owner && $owner == "$(k get tj first -o 'jsonpath={.metadata.uid}')" ]]
verdict $? "and owns the Workload that MultiKueue has created there" "$owner"
until_true 60 queues status_is first readySummary 2/2
verdict $? "its status comes back" "$(told first)"
queues pods_are first 0 && [[ $(queues workload first .status.clusterName) == far ]]
verdict $? "the cluster of the queue has no pod of it" "$(told first)"
why=$(KUBECONFIG=$QUEUES_KUBECONFIG "$bin/cox" why first -n "$space" 2>&1)
[[ $why == *"is run by MultiKueue in another cluster"* ]]
verdict $? "cox why says where to look" "$why"

queues k patch tj first --type=merge -p '{"spec":{"suspend":true}}' >/dev/null
until_true 60 gone first && queues status_is first readySummary 0/2 && queues status_is first state Suspended
verdict $? "suspended, it is removed there" "$(told first)"
queues k patch tj first --type=merge -p '{"spec":{"suspend":false}}' >/dev/null
until_true 90 status_is first readySummary 2/2
verdict $? "resumed, it runs there again" "$(told first)"

active() {
    queues k patch workloads.v1beta2.kueue.x-k8s.io first --type=merge -p "{\"spec\":{\"active\":$1}}" >/dev/null
}
active false
until_true 60 gone first && until_true 60 queues workload_is first QuotaReserved False && queues status_is first state Suspended
verdict $? "evicted in the cluster of the queue, it is removed there and gives its quota back" "$(told first)"
active true
until_true 90 status_is first readySummary 2/2
verdict $? "activated, it runs there again" "$(told first)"

sent_job second 3
sleep 3
pods_are second 0 && queues workload_is second QuotaReserved False && why=$(KUBECONFIG=$QUEUES_KUBECONFIG "$bin/cox" why second -n "$space" 2>&1) &&
    [[ $why == *"waits for its queue"* ]]
verdict $? "a second job waits for quota" "$(told second)"
queues k delete tj first --wait=false >/dev/null
until_true 60 gone first
verdict $? "a deleted job is removed there" "$(told first)"
until_true 90 queues status_is second state Succeeded
verdict $? "the second job runs and succeeds, which the cluster of the queue knows" "$(told second)"
until_true 60 gone second && queues workload_is second Finished True
verdict $? "then its copy is removed" "$(told second)"

for cluster in queues ''; do
    $cluster k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingClass
metadata: {name: small}
spec: {template: {metadata: {labels: {from: class}}}}
YAML
done
class=small sent_job late 6 10
kill "${operators[0]}"
until_true 90 queues workload_is late Admitted True
verdict $? "a job is sent while the other cluster has no operator" "$(told late)"
cluster_operator_start
from_class() {
    [[ $(k get pod "$(current late 0)" -o 'jsonpath={.metadata.labels.from}' 2>/dev/null) == class ]]
}
until_true 60 from_class
verdict $? "it runs once there is one, with the class of that cluster" "$(told late)"
until_true 90 queues status_is late state Succeeded
verdict $? "and succeeds" "$(told late)"
deleted() {
    ! queues k get tj late >/dev/null 2>&1
}
until_true 60 deleted && gone late
verdict $? "it is deleted by its ttlSecondsAfterFinished" "$(told late)"

operators_judged
queues operators_judged
