#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two operators on one cluster, told apart by --controller-name: each handles the jobs and sweeps whose spec.managedBy is its name, and the one
# without the option those without a managedBy, too. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    kubectl -n coxswain-system delete rolebinding/team-lease role/team-lease --ignore-not-found >/dev/null
    rm -rf "$work"
}
trap finish EXIT

cluster_prepare || { echo "not ok preparation"; exit 1; }
kubectl -n coxswain-system create role team-lease --verb=get,update,patch --resource=leases.coordination.k8s.io --resource-name=team >/dev/null &&
    kubectl -n coxswain-system create rolebinding team-lease --role=team-lease --serviceaccount=coxswain-system:coxswain-operator >/dev/null
verdict $? "the second operator may hold a Lease of its own"

# managed NAME [MANAGER]: applies a job of two workers
managed() {
    k apply -f - <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  ${2:+managedBy: $2}
  workers: {replicas: 2}
  coxswain: $section
YAML
}
section='{strategy: {type: MultiWorkerMirrored}, model: {preset: mlp}, data: {format: Synthetic, examples: 1000},
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: 0.1}}}'

# managed_sweep NAME [MANAGER]
managed_sweep() {
    k apply -f - <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: $1}
spec:
  objective: {metric: loss, goal: Minimize}
  maxTrials: 1
  algorithm: {type: Grid}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1]}]
  template:
    ${2:+managedBy: $2}
    workers: {replicas: 1}
    coxswain: $section
YAML
}

# image_of JOB: that of its pods, by which the operators can be told apart
image_of() {
    k get pods -l "coxswain.dev/job-name=$1" -o 'jsonpath={.items[*].spec.containers[0].image}' | tr ' ' '\n' | sort -u
}

# untouched JOB: no operator has written its status or made anything for it
untouched() {
    [[ -z $(k get tj "$1" -o 'jsonpath={.status}') ]] && pods_are "$1" 0 && ! k get service "$1" >/dev/null 2>&1
}

# jobs_counted LOG: how many jobs the operator with this log counts as its own
jobs_counted() {
    local port
    port=$(sed -n 's/.*serving metrics.*port=\([0-9]*\).*/\1/p' "$1" | head -n 1)
    curl -s "http://127.0.0.1:$port/metrics" | awk '/^coxswain_jobs\{/ { sum += $2 } END { print sum + 0 }'
}

# ---- the second operator alone

cluster_operator_start --controller-name example.com/team --lease-name team --worker-image team-worker
managed mine example.com/team >/dev/null && managed theirs coxswain.dev/operator >/dev/null && managed plain >/dev/null && managed strange example.com/strange >/dev/null &&
    managed_sweep tried example.com/team >/dev/null && managed_sweep swept >/dev/null
verdict $? "jobs and sweeps with and without managedBy are accepted"
expect mine readySummary 2/2 && [[ $(image_of mine) == team-worker ]]
verdict $? "an operator with a name runs the jobs that give it" "$(status_of mine conditions); $(tail -n 3 "$work/operator-0.log")"
until_true 60 pods_are tried-0 1 && [[ $(k get tj tried-0 -o 'jsonpath={.spec.managedBy}') == example.com/team ]]
verdict $? "and the sweeps whose template gives it" "$(k get ts,tj)"
sleep 5
untouched theirs && untouched plain && untouched strange && ! k get tj swept-0 >/dev/null 2>&1 && [[ -z $(k get ts swept -o 'jsonpath={.status}') ]]
verdict $? "it leaves alone those of other names, and those without one" "$(k get tj,ts,pods)"
[[ $(jobs_counted "$work/operator-0.log") == 2 ]]
verdict $? "it counts its own jobs only" "$(jobs_counted "$work/operator-0.log")"
"$bin/cox" why strange -n "$space" | contains 'waits for the controller example.com/strange (spec.managedBy)'
verdict $? "cox why names the controller that a job waits for" "$("$bin/cox" why strange -n "$space")"

# ---- both

cluster_operator_start --worker-image main-worker
expect theirs readySummary 2/2 && expect plain readySummary 2/2 && [[ $(image_of theirs) == main-worker && $(image_of plain) == main-worker ]]
verdict $? "an operator without a name runs the jobs without managedBy, and those that give its default" "$(status_of plain conditions); $(tail -n 3 "$work/operator-1.log")"
until_true 60 pods_are swept-0 1
verdict $? "and the sweeps without" "$(k get ts,tj)"
old=$(current mine 1) other=$(current plain 1)
k delete pod "$old" "$other" --wait=false >/dev/null
until_true 90 replaced mine 1 "$old" && until_true 90 replaced plain 1 "$other" && [[ $(image_of mine) == team-worker && $(image_of plain) == main-worker ]]
verdict $? "each replaces the lost pods of its jobs" "$(k get pods)"
[[ $(status_of mine restarts.disruptions) == 1 && $(status_of plain restarts.disruptions) == 1 ]] && untouched strange
verdict $? "and each loss is counted once" "$(status_of mine restarts) $(status_of plain restarts)"
[[ $(jobs_counted "$work/operator-0.log") == 2 && $(jobs_counted "$work/operator-1.log") == 3 ]]
verdict $? "each counts its own jobs only" "$(jobs_counted "$work/operator-0.log") $(jobs_counted "$work/operator-1.log")"
! "$bin/cox" why mine -n "$space" | contains 'spec.managedBy'
verdict $? "cox why tells of a job with a name what it tells of any other" "$("$bin/cox" why mine -n "$space")"
answer=$(k patch tj mine --type=merge -p '{"spec": {"managedBy": "coxswain.dev/operator"}}' 2>&1)
grep -q 'spec.managedBy' <<<"$answer"
verdict $? "a job cannot be passed on to another operator" "$answer"
operators_judged
