#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The operator on a real control plane, with the rights of deploy/rbac and no more, two of them with leader election,
# pods played by KWOK. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start
cluster_operator_start
until_true 60 leader >/dev/null
verdict $? "one of two operators leads"

# ---------------------------------------------------------------- a job's life
played_job runs 3 '{backoffLimit: 2}' >/dev/null
k wait tj/runs --for=condition=Running --timeout=90s >/dev/null
verdict $? "a job runs" "$(status_of runs conditions)"
expect runs readySummary 3/3
verdict $? "and reports how many pods are ready" "$(status_of runs readySummary)"

old=$(current runs 1)
k delete pod "$old" --wait=false >/dev/null
until_true 90 replaced runs 1 "$old"
verdict $? "a deleted pod is replaced"
expect runs restarts.disruptions 1
verdict $? "as a disruption" "$(status_of runs restarts)"
expect runs readySummary 3/3

# ---------------------------------------------------------------- the leader dies
lead=$(leader)
kill -KILL "$lead"
wait "$lead" 2>/dev/null
old=$(current runs 0)
k delete pod "$old" --wait=false >/dev/null
until_true 90 replaced runs 0 "$old"
verdict $? "the second operator takes over from a killed one"
cluster_operator_start

# ---------------------------------------------------------------- the API server goes away
refused() {
    grep -hi 'forbidden' "$work"/operator-*.log
}
expect runs readySummary 3/3
! refused >/dev/null
verdict $? "nothing was refused" "$(refused | head -n 3 | tr '\n' ' ')"
old=$(current runs 2)
k delete pod "$old" --wait=false >/dev/null
program_stop kube-apiserver
sleep 45 # its Lease is lost by then, and every wait for the next try has grown
program_start kube-apiserver
until_true 120 api_server_answers
verdict $? "the API server is back"
back=$(date +%s) # by the API server's clock too, which is this machine's
k get tj runs >/dev/null
asked=$(($(date +%s) - back)) # what one question costs on this machine, now
until_true 120 replaced runs 2 "$old"
verdict $? "what happened meanwhile is seen" "$(k get pods)"
made=$(stamp pod "$(current runs 2)" .metadata.creationTimestamp)
[[ -n $made ]] && ((made - back <= 30 + 5 * asked))
verdict $? "within 30 s: after $((made - back)) s, where a question takes $asked s" "made '$made'"
cluster_operator_start # instead of the one that led, which has ended with its Lease
expect runs readySummary 3/3
expect runs restarts.disruptions 3
verdict $? "each counted once" "$(status_of runs restarts)"
[[ $(k get pods -l coxswain.dev/job-name=runs -o name | wc -l) == 3 ]]
verdict $? "with three pods" "$(k get pods)"
excused=$(refused | wc -l) # a kube-apiserver that has just started refuses until it has read the roles

# ---------------------------------------------------------------- what users may store
# raw PATH OBJECT: kubectl would read it, and write it in other bytes
raw() {
    kubectl create --raw "$1" -f <(python3 -c "import json; print(json.dumps($2))") >/dev/null
}
job='{"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingJob", "metadata": {"name": "%s"}, "spec": {
    "workers": {"template": {"spec": {"x": %s}}}, "coxswain": {"strategy": {"type": "OneDevice"},
    "model": {"preset": "mlp"}, "data": {"format": "Synthetic", "examples": 1000},
    "training": {"steps": 10, "batchSize": 100, "optimizer": {"type": "SGD", "learningRate": 0.1}}}}}'
pod='{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large", "labels": {"coxswain.dev/job-uid": "x", "coxswain.dev/job-name": "y"}},
    "spec": {"schedulerName": "none", "containers": [{"name": "a", "image": "b", "env": [{"name": "A", "value": "<" * 1200000}]}]}}'
kubectl create namespace odd >/dev/null
until_true 60 kubectl -n odd get serviceaccount default >/dev/null 2>&1 # no pod is taken before
# shellcheck disable=SC2059 # they are formats
raw /apis/coxswain.dev/v1beta1/namespaces/odd/trainingjobs "$(printf "$job" deep 'json.loads("[" * 300 + "]" * 300)')" &&
    raw /apis/coxswain.dev/v1beta1/namespaces/odd/trainingjobs "$(printf "$job" nul '"a\0b"')" && raw /api/v1/namespaces/odd/pods "$pod"
verdict $? "objects that nest deep, hold NUL characters, or are large are stored"
played_job beside 1 '{}' >/dev/null
k wait tj/beside --for=condition=Running --timeout=90s >/dev/null
verdict $? "and stop nobody else's job" "$(grep -h 'watching failed' "$work"/operator-*.log | tail -n 2)"
kubectl delete namespace odd --wait=false >/dev/null

# ---------------------------------------------------------------- ends
played_job succeeds 2 '{}' 0 2s >/dev/null
k wait tj/succeeds --for=condition=Succeeded --timeout=90s >/dev/null
verdict $? "a job succeeds" "$(status_of succeeds conditions)"
k delete pods -l coxswain.dev/job-name=succeeds >/dev/null
sleep 2
[[ -z $(k get pods -l coxswain.dev/job-name=succeeds -o name) ]]
verdict $? "terminal is terminal" "$(k get pods)"

played_job fails 1 '{backoffLimit: 1}' 137 1s >/dev/null
k wait tj/fails --for=condition=Failed --timeout=90s >/dev/null
verdict $? "a failing job fails" "$(status_of fails conditions)"
[[ $(k get tj fails -o 'jsonpath={.status.conditions[?(@.type=="Failed")].reason}') == BackoffLimitExceeded ]]
verdict $? "at its limit" "$(status_of fails conditions)"
status_is fails restarts.failures 2
verdict $? "counted exactly" "$(status_of fails restarts)"

# The finalizer keeps the sweep to be read until its deletion is proven, and keeps its trials as long.
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: brief, finalizers: [test.coxswain.dev/look]}
spec:
  algorithm: {type: Grid}
  ttlSecondsAfterFinished: 5
  parameters: [{path: coxswain.training.seed, values: [1, 2]}]
  template:
    workers: {template: {metadata: {annotations: {test.coxswain.dev/exit-code: "0", test.coxswain.dev/runs-for: 1s}}}}
    coxswain:
      strategy: {type: OneDevice}
      model: {preset: mlp}
      data: {format: Synthetic, examples: 1000}
      training: {steps: 10, batchSize: 100}
YAML
until_true 60 k get tj brief-0 brief-1 >/dev/null 2>&1
k wait tj/brief-0 tj/brief-1 --for=condition=Succeeded --timeout=90s >/dev/null
verdict $? "the trials of a sweep end" "$(k get tj; k get trainingsweep brief -o yaml)"
sweep_is_deleted() { [[ -n $(k get trainingsweep brief -o 'jsonpath={.metadata.deletionTimestamp}') ]]; }
until_true 60 sweep_is_deleted
verdict $? "a sweep with ttlSecondsAfterFinished is deleted" "$(k get trainingsweep brief -o yaml)"
lived=$(($(stamp trainingsweep brief .metadata.deletionTimestamp) - $(stamp trainingsweep brief .status.completionTime)))
((lived >= 4)) # both times are whole seconds
verdict $? "and not before: $lived s after its end"
k patch trainingsweep brief --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
sweep_has_gone() { ! k get trainingsweep,tj -o name | grep -q /brief; }
until_true 60 sweep_has_gone
verdict $? "with its trials" "$(k get trainingsweep,tj)"

k create service clusterip taken --tcp=80:80 >/dev/null
played_job taken 2 '{}' >/dev/null
k wait tj/taken '--for=jsonpath={.status.conditions[?(@.type=="Scheduled")].reason}=NameTaken' --timeout=90s >/dev/null
verdict $? "a Service of somebody else keeps a job waiting" "$(status_of taken conditions)"
placed() { k get events -o 'jsonpath={.items[*].involvedObject.name}' | tr ' ' '\n' | grep '^taken-worker'; }
[[ -z $(k get pods -l coxswain.dev/job-name=taken -o name)$(placed) ]]
verdict $? "no pod of which has ever been" "$(k get pods -l coxswain.dev/job-name=taken -o name) $(placed)"
k delete service taken >/dev/null
k wait tj/taken --for=condition=Running --timeout=120s >/dev/null
verdict $? "until it has gone" "$(status_of taken conditions)"
k delete tj taken --timeout=90s >/dev/null

suspend=true played_job suspended 2 '{}' >/dev/null
k wait tj/suspended --for=condition=Suspended --timeout=90s >/dev/null
verdict $? "a suspended job waits"
[[ -z $(k get pods -l coxswain.dev/job-name=suspended -o name) ]]
verdict $? "without pods"
k patch tj suspended --type=merge -p '{"spec":{"suspend": false}}' >/dev/null
k wait tj/suspended --for=condition=Running --timeout=90s >/dev/null
verdict $? "and goes on"

k delete tj runs --timeout=90s >/dev/null
no_children() { [[ -z $(k get pods,services -l coxswain.dev/job-name=runs -o name) ]]; }
until_true 90 no_children
verdict $? "the children of a deleted job are collected" "$(k get pods,services -l coxswain.dev/job-name=runs -o name | tr '\n' ' ')"

# ---------------------------------------------------------------- rights
[[ $(refused | wc -l) == "$excused" ]]
verdict $? "its rights are enough" "$(refused | tail -n 3 | tr '\n' ' ')"
can() { kubectl auth can-i "$@" --as=system:serviceaccount:coxswain-system:coxswain-operator 2>/dev/null; }
excess=
for right in "get secrets" "list secrets" "watch secrets" "update secrets" "patch secrets" "deletecollection secrets" \
    "update trainingjobs" "deletecollection trainingjobs" "create trainingsweeps" "update trainingsweeps" \
    "patch trainingsweeps" \
    "update trainingjobs --subresource=status" "update pods" "deletecollection pods" "create pods --subresource=exec" \
    "create pods --subresource=attach" "create pods --subresource=portforward" \
    "patch pods --subresource=ephemeralcontainers" "create pods --subresource=eviction" "create pods --subresource=binding" \
    "update services" "patch services" "delete services" "get configmaps" "create configmaps" "create jobs.batch" \
    "create deployments.apps" "get serviceaccounts" "create serviceaccounts --subresource=token" "get leases" "create leases" \
    "update nodes" "patch nodes" "delete nodes" "get nodes --subresource=proxy" "delete namespaces" "create persistentvolumes" \
    "create roles" "create rolebindings" "create clusterrolebindings" "escalate clusterroles" "bind clusterroles" \
    "impersonate users" "patch customresourcedefinitions" "create validatingwebhookconfigurations"; do
    # shellcheck disable=SC2086 # a verb and a resource
    [[ $(can $right -n "$space") == no ]] || excess+="$right; "
done
for right in "list leases" "update leases/another" "get leases/another" "delete leases/coxswain-operator" "get secrets"; do
    # shellcheck disable=SC2086 # a verb and a resource
    [[ $(can $right -n coxswain-system) == no ]] || excess+="$right beside it; "
done
[[ -z $excess ]]
verdict $? "and no more" "$excess"
