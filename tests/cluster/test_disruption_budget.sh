#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# runPolicy.disruptionBudget with the real API server and disruption controller: evictions, as a drain sends them, are refused while the
# crew needs the pod. Pods are played by KWOK. Run by tests/cluster/check.
# shellcheck source=tests/cluster/cluster.sh
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

# evict POD: the API server's answer
evict() {
    kubectl create --raw "/api/v1/namespaces/$space/pods/$1/eviction" -f - 2>&1 <<<"{\"apiVersion\": \"policy/v1\",
        \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$1\", \"namespace\": \"$space\"}}"
}

# allowed JOB COUNT: how many of its pods may be evicted now
allowed() {
    [[ $(k get pdb -l "coxswain.dev/job-name=$1" -o 'jsonpath={.items[*].status.disruptionsAllowed}') == "$2" ]] &&
        [[ $(k get pdb -l "coxswain.dev/job-name=$1" -o 'jsonpath={.items[*].status.currentHealthy}') == 2 ]]
}

cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start
until_true 60 leader >/dev/null
played_job fixed 2 '{disruptionBudget: {}}' >/dev/null
bounds='minReplicas: 1, maxReplicas: 2, ' played_job elastic 2 '{disruptionBudget: {}}' >/dev/null
played_job without 2 '{}' >/dev/null
expect fixed state Running && expect elastic state Running && expect without state Running
until_true 60 allowed fixed 0
verdict $? "the budget counts the pods of the crew" "$(k get pdb -o wide 2>&1)"
pod=$(current fixed 1)
answer=$(evict "$pod")
[[ $answer == *"violate the pod's disruption budget"* && -n $(k get pod "$pod" -o name 2>/dev/null) ]]
verdict $? "an eviction that the crew cannot do without is refused" "$answer"
until_true 60 allowed elastic 1
old=$(current elastic 1)
answer=$(evict "$old")
until_true 90 replaced elastic 1 "$old"
verdict $? "an elastic crew may lose pods down to its minReplicas, and they are replaced" "$answer $(k get pods,pdb 2>&1)"
old=$(current without 1)
evict "$old" >/dev/null
until_true 90 replaced without 1 "$old"
verdict $? "a job without a budget is evicted as before" "$(k get pods,pdb 2>&1)"
k delete tj fixed elastic without >/dev/null
none_left() { [[ -z $(k get pdb -o name) ]]; }
until_true 90 none_left
verdict $? "no budget is left behind" "$(k get pdb 2>&1)"
operators_judged
