#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An elastic job under the HorizontalPodAutoscaler of kube-controller-manager, which reads and writes its scale subresource
# and counts ready pods by the selector in it. The metric is scripted (metrics.py, behind an APIService). Run by
# tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

metrics=
finish() {
    kubectl delete apiservice v1beta1.external.metrics.k8s.io --ignore-not-found >/dev/null 2>&1
    [[ -z $metrics ]] || kill "$metrics" 2>/dev/null
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start

# ---------------------------------------------------------------- the metric
# load VALUE: what the metric is from now on
load() {
    echo "$1" >"$work/value.new" && mv "$work/value.new" "$work/value"
}

# Registers the adapter as in a cluster: by a Service with a name that leads to the script here.
register() {
    kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: Service
metadata: {name: scripted-metrics, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: scripted-metrics, namespace: kube-system, port: $(cat "$work/port")}
YAML
}

load 10
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$work/key" -out "$work/certificate" 2>/dev/null
"$root/tests/cluster/metrics.py" "$work/certificate" "$work/key" "$work/value" "$work/port" &
metrics=$!
until_true 20 test -s "$work/port"
register
kubectl wait --for=condition=Available apiservice/v1beta1.external.metrics.k8s.io --timeout=60s >/dev/null
verdict $? "the metric is served" "$(kubectl get apiservice v1beta1.external.metrics.k8s.io -o 'jsonpath={.status.conditions}')"

# ---------------------------------------------------------------- the job and its autoscaler
k apply -f - <<'YAML' >/dev/null
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: grows}
spec:
  workers: {replicas: 2, minReplicas: 1, maxReplicas: 6}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 120, optimizer: {type: SGD, learningRate: "0.1"}}
YAML
expect grows readySummary 2/2
verdict $? "an elastic job runs" "$(status_of grows conditions)"
chief=$(current grows 0)
scale() { kubectl get --raw "/apis/coxswain.dev/v1beta1/namespaces/$space/trainingjobs/grows/scale" | grep -o "\"$1\":[^,}]*" | tr -d '"' | tr '\n' ' '; }
selector=$(status_of grows selector)
[[ $(scale replicas) == 'replicas:2 replicas:2 ' && -n $selector && $(k get pods -l "$selector" -o name | wc -l) == 2 ]]
verdict $? "its scale has both numbers, and a selector of its workers" "$(scale replicas) '$selector'"

# autoscale TARGET
autoscale() {
    k apply -f - <<YAML >/dev/null
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: grows}
spec:
  scaleTargetRef: {apiVersion: coxswain.dev/v1beta1, kind: TrainingJob, name: grows}
  minReplicas: 1
  maxReplicas: 6
  metrics:
  - {type: External, external: {metric: {name: queued-samples}, target: {$1}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
YAML
}
autoscale 'type: AverageValue, averageValue: "5"'
condition() { k get hpa grows -o "jsonpath={.status.conditions[?(@.type==\"$1\")].status}"; }
is_active() { [[ $(condition AbleToScale) == True && $(condition ScalingActive) == True ]]; }
until_true 90 is_active
verdict $? "the autoscaler can work with it" "$(k get hpa grows -o 'jsonpath={.status.conditions}')"

# sized WORKERS: the spec, the crew and the autoscaler agree on it
sized() {
    [[ $(k get tj grows -o 'jsonpath={.spec.workers.replicas} {.status.readySummary}') == "$1 $1/$1" &&
        $(k get hpa grows -o 'jsonpath={.status.currentReplicas} {.status.desiredReplicas}') == "$1 $1" ]]
}
sizes() { k get tj,hpa -o wide | tr '\n' ' '; }
until_true 90 sized 2
verdict $? "which leaves it alone while the metric is what it should be" "$(sizes)"
load 20
until_true 90 sized 4
verdict $? "twice the load makes twice the crew" "$(sizes)"
load 10
until_true 90 sized 2
verdict $? "half of it takes half of them away" "$(sizes)"
load 200
until_true 90 sized 6
verdict $? "and never more than both allow" "$(sizes)"
# With such a target, the autoscaler calculates the number of ready pods from the number that the selector finds: 6, 3, 2,
# 1.
load 5
autoscale 'type: Value, value: "10"'
until_true 90 sized 1
verdict $? "ready pods are counted by the selector" "$(sizes)"
[[ $(current grows 0) == "$chief" && $(status_of grows restarts.disruptions) == '' && $(status_of grows controllerState.attempt) == 1 ]]
verdict $? "with the same chief all along, and no restart" "$(current grows 0), not $chief; $(status_of grows restarts)"
! grep -i 'refused\|forbidden' "$work"/operator-*.log
verdict $? "nothing was refused"
