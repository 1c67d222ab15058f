#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Sick nodes, with a real API server, scheduler and taint eviction controller on KWOK's nodes: pods that are lost with their node, avoided
# nodes, no node that is left, nodes that are about to be removed, have a condition or flap, pods of a dead node, and an operator that may not
# watch nodes. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

# The notices of AWS, GKE and AKS that a node is about to be removed.
notices="aws-node-termination-handler/spot-itn cloud.google.com/impending-node-termination remediator.kubernetes.azure.com/unschedulable"

finish() {
    cluster_operators_end
    kubectl uncordon node-0 node-1 node-2 >/dev/null 2>&1
    kubectl taint nodes --all test.coxswain.dev/sick- >/dev/null 2>&1
    kubectl taint nodes --all node.kubernetes.io/out-of-service- >/dev/null 2>&1
    for taint in $notices; do kubectl taint nodes --all "$taint-" >/dev/null 2>&1; done
    for i in 0 1 2; do condition "node-$i" False; done
    kubectl delete node slow-0 --wait=false >/dev/null 2>&1
    kubectl apply -k "$root/deploy/rbac" >/dev/null
    rm -rf "$work"
}
trap finish EXIT

# avoided POD: the hostnames that its affinity excludes
avoided() {
    local term="requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
    k get pod "$1" -o "jsonpath={.spec.affinity.nodeAffinity.$term.matchExpressions[?(@.operator==\"NotIn\")].values[*]}" 2>/dev/null
}

# condition NODE STATUS: its condition GpuUnhealthy
condition() {
    kubectl patch node "$1" --subresource=status -p "{\"status\":{\"conditions\":[{\"type\":\"GpuUnhealthy\",\"status\":\"$2\",
        \"reason\":\"Test\",\"message\":\"\"}]}}" >/dev/null 2>&1
}

# told JOB REASON: an event of the job
told() {
    k get events -o 'jsonpath={range .items[*]}{.involvedObject.name} {.reason}{"\n"}{end}' | contains -x "$1 $2"
}

avoiding() {
    [[ $(status_of "$1" "conditions[?(@.type==\"AvoidingNodes\")].status") == "$2" ]]
}

cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start
until_true 60 leader >/dev/null

# ---------------------------------------------------------------- a node that fails pods is avoided
node="node-0"
kubectl cordon node-1 node-2 >/dev/null
played_job sick 1 '{nodeAvoidance: {failures: 2, windowSeconds: 90}}' >/dev/null
expect sick state Running
old=$(current sick 0)
lose "$node"
until_true 90 replaced sick 0 "$old"
[[ -z $(avoided "$(current sick 0)") && $(status_of sick 'controllerState.nodeFailures[0].node') == "$node" ]]
verdict $? "a pod that is lost with its node is counted, by node" "$(status_of sick controllerState)"
expect sick state Running
kubectl uncordon node-1 node-2 >/dev/null
old=$(current sick 0)
kill -KILL "${operators[0]}"
cluster_operator_start
until_true 60 leader >/dev/null
lose "$node"
until_true 120 replaced sick 0 "$old"
[[ $(avoided "$(current sick 0)") == "$node" && $(node_of sick 0) != "$node" ]]
verdict $? "the second failure counts with the first over a restart of the operator: the successor avoids the node" \
    "avoids '$(avoided "$(current sick 0)")', on '$(node_of sick 0)'; $(status_of sick controllerState)"
avoiding sick True && [[ $(status_of sick 'conditions[?(@.type=="AvoidingNodes")].message') == *"node $node until "*"2 failures within 90 s, the last: the node was lost"* ]]
verdict $? "a condition says which node, why and until when" "$(status_of sick conditions)"
"$bin/cox" why sick -n "$space" | grep "new pods avoid node $node until" >/dev/null
verdict $? "cox why says it" "$("$bin/cox" why sick -n "$space" 2>&1)"
kubectl describe node "$node" | grep "AvoidedByTrainingJob.*$space/sick avoid node $node" >/dev/null
verdict $? "kubectl describe node shows the event" "$(kubectl describe node "$node" | tail -n 5)"
until_true 60 avoiding sick False
verdict $? "the time passes" "$(status_of sick conditions)"
old=$(current sick 0)
k delete pod "$old" --wait=false >/dev/null
until_true 90 replaced sick 0 "$old"
[[ -z $(avoided "$(current sick 0)") ]]
verdict $? "and the next pod may be placed on every node" "$(avoided "$(current sick 0)")"

# ---------------------------------------------------------------- no other node is left
plain_job only 'nodeAvoidance: {failures: 1, unschedulableSeconds: 8}' 'nodeSelector: {kubernetes.io/hostname: node-1}'
expect only state Running
old=$(current only 0)
lose node-1
until_true 60 avoiding only True
verdict $? "the only node that the job can use is avoided" "$(status_of only conditions)"
until_true 120 replaced only 0 "$old"
[[ $(node_of only 0) == node-1 && -z $(avoided "$(current only 0)") ]]
verdict $? "until its pod has found no other node: it runs there again" "$(k get pods -o wide; status_of only conditions)"
until_true 20 told only NodeAvoidanceEnded
verdict $? "which an event says" "$(k get events | tail -n 5)"
[[ $(status_of only restarts.total) == 1 ]]
verdict $? "and which costs no restart" "$(status_of only restarts)"

# ---------------------------------------------------------------- a node whose pods take long to become ready
kubectl get node node-1 -o json | python3 -c 'import json, sys
node = json.load(sys.stdin)
labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": "slow-0"}
node["metadata"] = {"name": "slow-0", "labels": labels, "annotations": node["metadata"].get("annotations", {})}
node["spec"] = {}
json.dump(node, sys.stdout)' | kubectl create -f - >/dev/null
plain_job slow 'nodeAvoidance: {failures: 1}' 'nodeSelector: {kubernetes.io/hostname: slow-0}'
starts() {
    [[ $(k get pod "$(current slow 0)" -o 'jsonpath={.status.phase}' 2>/dev/null) == Running ]]
}
until_true 60 starts && until_true 10 status_is slow readySummary 0/1 && ! status_is slow state Running
verdict $? "a crew on a slow node waits until its pod is ready" "$(status_of slow readySummary; status_of slow conditions)"
expect slow state Running
verdict $? "and then runs" "$(k get pods -o wide; status_of slow conditions)"
old=$(current slow 0)
k delete pod "$old" --wait=false >/dev/null
until_true 60 replaced slow 0 "$old" && until_true 60 starts && status_is slow 'conditions[?(@.type=="Restarting")].status' True
verdict $? "while a successor starts there, the job restarts" "$(status_of slow conditions)"
expect slow state Running && [[ $(status_of slow restarts.total) == 1 && -z $(status_of slow controllerState.nodeFailures) ]]
verdict $? "that is one restart, and the node is not blamed for being slow" "$(status_of slow restarts; status_of slow controllerState)"
k delete tj slow --wait=false >/dev/null
kubectl delete node slow-0 --wait=false >/dev/null

# ---------------------------------------------------------------- a node that is about to be removed
played_job spot 3 '{}' >/dev/null
plain_job stays '' ''
expect spot readySummary 3/3 && expect stays state Running
moved() {
    local i
    for i in 0 1 2; do [[ -n $(current spot $i) && $(node_of spot $i) != "$node" ]] || return; done
    status_is spot readySummary 3/3
}
disruptions=0
for taint in $notices; do
    node=$(node_of spot 1)
    kubectl taint node "$node" "$taint=notice:NoSchedule" >/dev/null
    until_true 90 moved
    verdict $? "pods leave a node that is about to be removed ($taint)" "$(k get pods -o wide)"
    until_true 20 told spot NodeLeft && [[ $(status_of spot restarts.failures) != [1-9]* ]] && (($(status_of spot restarts.disruptions) > disruptions))
    verdict $? "as a disruption, which an event explains ($taint)" "$(status_of spot restarts; k get events | grep NodeLeft)"
    disruptions=$(status_of spot restarts.disruptions)
    [[ $(avoided "$(current spot 1)") == "$node" ]]
    verdict $? "their successors exclude it ($taint)" "$(avoided "$(current spot 1)")"
    kubectl taint node "$node" "$taint-" >/dev/null
done
k delete tj spot stays --wait=false >/dev/null

# ---------------------------------------------------------------- conditions of nodes
plain_job picky 'avoidNodeConditions: [GpuUnhealthy]' ''
plain_job any '' ''
expect picky state Running && expect any state Running
kept=$(current any 0)
old=$(current picky 0)
for i in 0 1 2; do condition "node-$i" True; done
waits() {
    [[ $(current picky 0) != "$old" && $(status_of picky 'conditions[?(@.type=="Scheduled")].reason') == Unschedulable ]]
}
until_true 90 waits
verdict $? "a job that avoids a condition leaves its node, and waits for one without" "$(k get pods -o wide; status_of picky conditions)"
[[ $(current any 0) == "$kept" ]]
verdict $? "another job stays" "$(k get pods)"
condition node-2 False
on_the_well_one() {
    [[ $(node_of picky 0) == node-2 ]]
}
until_true 90 on_the_well_one
verdict $? "once a node is well again the pod is created anew and runs there" "$(k get pods -o wide)"
for i in 0 1; do condition "node-$i" False; done

# ---------------------------------------------------------------- a node that flaps
# ready STATUS: of the node, as its kubelet says; KWOK is held meanwhile, which would set it right at once
ready() {
    kubectl patch node "$node" --subresource=status -p "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"$1\"}]}}" >/dev/null
}
# taken_for_lost: the node lifecycle controller has seen that the node is not ready
taken_for_lost() {
    kubectl get node "$node" -o 'jsonpath={.spec.taints[*].key}{.spec.taints[*].effect}' | contains 'node.kubernetes.io/not-ready.*NoExecute'
}
taken_for_well() {
    ! taken_for_lost
}
plain_job steady '' ''
expect steady state Running
kept=$(current steady 0)
node=$(node_of steady 0)
flaps=0
program_stop kwok
for _ in 1 2 3; do
    ready False
    until_true 60 taken_for_lost && ready True && until_true 60 taken_for_well && flaps=$((flaps + 1))
done
program_start kwok
((flaps == 3))
verdict $? "a node flaps, which Kubernetes' controllers see" "$flaps of 3; $(kubectl describe node "$node" | tail -n 5)"
expect steady readySummary 1/1 && [[ $(current steady 0) == "$kept" && $(status_of steady restarts.total) =~ ^0?$ ]]
verdict $? "that costs its pod nothing" "$(k get pods -o wide; status_of steady restarts; k get pod "$kept" -o 'jsonpath={.spec.tolerations}{.status.conditions}'
    k get events --field-selector reason=TaintManagerEviction)"
[[ -z $(status_of steady controllerState.nodeFailures) ]]
verdict $? "and the node is not blamed" "$(status_of steady controllerState)"
k delete tj steady --wait=false >/dev/null

# ---------------------------------------------------------------- a node that does not end its pods
plain_job hangs '' 'terminationGracePeriodSeconds: 1' 'test.coxswain.dev/hangs: "true"'
expect hangs state Running
old=$(current hangs 0)
node=$(node_of hangs 0)
k delete pod "$old" --wait=false >/dev/null
sleep 75
k get pod "$old" >/dev/null && ! told hangs PodForceDeleted
verdict $? "a pod that does not end stays while its node is ready" "$(k get pods -o wide)"
kubectl taint node "$node" node.kubernetes.io/out-of-service=:NoSchedule >/dev/null
gone() {
    ! k get pod "$old" >/dev/null 2>&1
}
until_true 60 gone && until_true 30 told hangs PodForceDeleted
verdict $? "and is removed by force once the node is out of service" "$(k get pods -o wide; k get events | tail -n 5)"
k delete tj --all --wait=false >/dev/null
k delete pods --all --force --grace-period=0 >/dev/null 2>&1
operators_judged

# ---------------------------------------------------------------- without the right to watch nodes
cluster_operators_end
kubectl get clusterrole coxswain-operator -o json | python3 -c 'import json, sys
role = json.load(sys.stdin)
role["rules"] = [rule for rule in role["rules"] if rule.get("resources") != ["nodes"]]
json.dump(role, sys.stdout)' | kubectl replace -f - >/dev/null
operators=()
mv "$work/operator-0.log" "$work/first.log"
cluster_operator_start
played_job blind 1 '{}' >/dev/null
expect blind state Running && sleep 25
verdict $? "an operator that may not watch nodes runs jobs" "$(tail -n 5 "$work/operator-0.log")"
[[ $(grep -c 'nodes cannot be watched' "$work/operator-0.log") == 1 ]]
verdict $? "and says so once" "$(grep nodes "$work/operator-0.log" | head -n 5)"
k delete tj --all --wait=false >/dev/null
