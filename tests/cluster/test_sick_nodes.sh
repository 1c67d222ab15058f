#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The taint of nodes on which pods of several jobs fail (--taint-sick-nodes), with the rights of deploy/components/sick-nodes and a real API
# server, scheduler and taint eviction controller: set, beside taints of others, and removed over a restart of the operator. Run by
# tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"
rights="$root/deploy/components/sick-nodes"

finish() {
    cluster_operators_end
    kubectl uncordon node-0 node-1 node-2 >/dev/null 2>&1
    kubectl taint nodes --all test.coxswain.dev/sick- >/dev/null 2>&1
    kubectl taint nodes --all test.coxswain.dev/theirs- >/dev/null 2>&1
    kubectl taint nodes --all coxswain.dev/sick- >/dev/null 2>&1
    kubectl annotate nodes --all coxswain.dev/sick-since- >/dev/null 2>&1
    kubectl delete -f "$rights/role.yaml" -f "$rights/role_binding.yaml" --ignore-not-found >/dev/null
    rm -rf "$work"
}
trap finish EXIT

# kubectl_describes NODE PATTERN
kubectl_describes() {
    kubectl describe node "$1" | contains -E "$2"
}

cluster_prepare || { echo "not ok preparation"; exit 1; }
kubectl apply -f "$rights/role.yaml" -f "$rights/role_binding.yaml" >/dev/null
cluster_operator_start --taint-sick-nodes 120
until_true 60 leader >/dev/null
# taints NODE: its taints, one a line
taints() {
    kubectl get node "$1" -o 'jsonpath={range .spec.taints[*]}{.key}:{.effect}{"\n"}{end}'
}
tainted() {
    taints "$1" | contains -x coxswain.dev/sick:NoSchedule
}
kubectl taint node node-0 test.coxswain.dev/theirs=x:PreferNoSchedule >/dev/null
kubectl cordon node-1 node-2 >/dev/null
# as many failures as make a node sick, but for its jobs
plain_job alone 'nodeAvoidance: {failures: 16}' ''
expect alone state Running
for _ in 1 2 3; do
    old=$(current alone 0)
    lose node-0
    until_true 60 replaced alone 0 "$old"
done
sleep 7
[[ $(status_of alone 'controllerState.nodeFailures[*].node') == "node-0 node-0 node-0" ]] && ! tainted node-0
verdict $? "a node on which one job alone fails gets no taint" "$(status_of alone controllerState; taints node-0)"
plain_job other '' ''
expect other state Running
lose node-0
until_true 30 tainted node-0
verdict $? "once a second job fails there, it gets the taint" "$(taints node-0; k get pods -o wide; tail -n 3 "$work/operator-0.log")"
taints node-0 | contains -x test.coxswain.dev/theirs:PreferNoSchedule
verdict $? "beside those of others" "$(taints node-0)"
kubectl uncordon node-1 node-2 >/dev/null
until_true 20 kubectl_describes node-0 'SickNodeTainted .*failures of 2 TrainingJobs within 120 s, the last: the node was lost'
verdict $? "an event of the node says why" "$(kubectl describe node node-0 | tail -n 5)"
plain_job third '' ''
expect third state Running && [[ $(node_of third 0) != node-0 ]]
verdict $? "pods of other jobs are placed elsewhere" "$(k get pods -o wide)"
kill -KILL "${operators[0]}"
cluster_operator_start --taint-sick-nodes 120
healed() {
    ! tainted node-0 && [[ -z $(kubectl get node node-0 -o 'jsonpath={.metadata.annotations.coxswain\.dev/sick-since}') ]]
}
sleep 20
tainted node-0 && until_true 180 healed && taints node-0 | contains -x test.coxswain.dev/theirs:PreferNoSchedule
verdict $? "the taint ends with its time, over a restart of the operator, and no other with it" "$(taints node-0; tail -n 3 "$work/operator-1.log")"
until_true 20 kubectl_describes node-0 'SickNodeTaintRemoved'
verdict $? "which an event says" "$(kubectl describe node node-0 | tail -n 5)"
sleep 7
! tainted node-0
verdict $? "and does not come back by itself" "$(taints node-0)"
k delete tj --all --wait=false >/dev/null
operators_judged
