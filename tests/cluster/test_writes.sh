#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How many writes the operator makes in a job's life, by kind, from the API server's audit log: jobs of four pods that nothing
# befalls, of each sort that has objects of its own. Pods are played by KWOK, schedulers by this script. Prints a table and
# ok/not ok lines. Run by tests/cluster/check.
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

audit=$CLUSTER/audit.log
cluster_prepare || { echo "not ok preparation"; exit 1; }
schedulers=yes
if ! why=$("$root/tests/cluster/scheduler-crds" "$work/crds" 2>&1 && kubectl create -f "$work/crds" 2>&1 && established -f "$work/crds" 2>&1); then
    schedulers=
fi
cluster_operator_start
if ! until_true 60 leader >/dev/null || [[ ! -s $audit ]]; then
    echo "not ok an operator leads, and the API server keeps an audit log (tests/cluster/with --audit)"
    exit 1
fi

# four NAME [MORE [LABELS]]: a job of four workers that ends well; MORE of its spec, in lines
four() {
    k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1alpha1
kind: TrainingJob
metadata: {name: $1, labels: {${3:-}}}
spec:
  strategy: {type: MultiWorkerMirrored}
  workers: 4
  model: {preset: mlp}
  data: {format: synthetic, examples: 1000}
  training: {steps: 10, batchSize: 100, optimizer: {type: sgd, learningRate: "0.1"}}
  roles: [{name: worker, template: {metadata: {annotations: {test.coxswain.dev/exit-code: "0", test.coxswain.dev/runs-for: 5s}}}}]
  ${2:-}
YAML
}

# What the scheduler of a gang does.
bind() {
    local pod
    for pod in $(k get pods -l "coxswain.dev/job-name=$1" --field-selector spec.nodeName= -o 'jsonpath={.items[*].metadata.name}'); do
        kubectl create --raw "/api/v1/namespaces/$space/pods/$pod/binding" -f - >/dev/null 2>&1 <<<"{\"apiVersion\":\"v1\",
            \"kind\":\"Binding\",\"metadata\":{\"name\":\"$pod\"},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"node-0\"}}"
    done
}

bound() {
    bind "$1"
    status_is "$1" state Succeeded
}

# What Kueue does.
admit() {
    local now
    now=$(date -u +%FT%TZ)
    kubectl -n "$space" apply --server-side --force-conflicts --subresource=status --field-manager=kueue-admission -f - >/dev/null 2>&1 <<YAML
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: $1}
status:
  conditions:
  - {type: QuotaReserved, status: "True", reason: QuotaReserved, message: "", lastTransitionTime: $now}
  - {type: Admitted, status: "True", reason: Admitted, message: "", lastTransitionTime: $now}
  admission:
    clusterQueue: research
    podSetAssignments: [{name: worker, flavors: {}, resourceUsage: {}, count: 4}]
YAML
}

# judged NAME BESIDES SORT: no more than so many writes besides the pods, and one more for each two seconds that its crew took to
# run, while numbers are told
judged() {
    local begun ran
    sleep 8 # what is gathered is written within five seconds
    begun=$(stamp tj "$1" .metadata.creationTimestamp)
    ran=$(stamp tj "$1" .status.completionTime)
    "$root/tests/cluster/writes.py" "$audit" "$offset" "$3" 4 $(($2 + (ran - begun - 5) / 2)) | tee -a "$work/verdicts" | sed -n 's/^row //p' >>"$work/table"
    k delete tj "$1" --timeout=90s >/dev/null
}

# begin: what is counted comes after this
begin() {
    offset=$(stat -c %s "$audit")
}

begin
four plain
expect plain state Succeeded
judged plain 7 "plain"
begin
four elastic 'elastic: {minWorkers: 2, maxWorkers: 4}'
expect elastic state Succeeded
judged elastic 8 "elastic"
begin
four encrypted 'encryption: TLS'
expect encrypted state Succeeded
judged encrypted 12 "\`encryption: TLS\`"
if [[ -n $schedulers ]]; then
    begin
    four gang 'runPolicy: {gang: {scheduler: Coscheduling}}'
    until_true 90 bound gang
    judged gang 10 "gang (Coscheduling)"
    begin
    four queued '' 'kueue.x-k8s.io/queue-name: research'
    until_true 60 admit queued
    expect queued state Succeeded
    judged queued 14 "queue (Kueue)"
else
    echo "skip writes of gangs and queues: $(tail -n 1 <<<"$why")"
fi
echo "| job of four workers | writes | besides the pods | by kind |"
echo "|---|---|---|---|"
cat "$work/table"
grep -E '^(not )?ok ' "$work/verdicts"
