#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gangs placed by the real schedulers of Volcano and of the scheduler plugins: all pods or none, one replaced, suspended, waiting for room.
# Only nodes and the lives of pods are played (KWOK). The script brings a control plane of its own, in which it calls itself.
#
#   make check-schedulers           (builds the schedulers from their Go modules the first time: minutes)
set -uo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
bin=${BUILD:-$root/build}

# scheduler_built NAME: prints the path of its program. Where it cannot be had the script says so and goes on without.
scheduler_built() {
    local folder why status
    why=$(mktemp)
    folder=$(timeout "${SCHEDULERS_SECONDS:-1200}" "$root/tests/cluster/get-tools" "$1" 2>"$why")
    status=$?
    case $status in
    0) echo "$folder/$1" ;;
    3) echo "skip gangs of $1: $(tail -n 1 "$why")" >&2 ;;
    124) echo "skip gangs of $1: building it took longer than ${SCHEDULERS_SECONDS:-1200} s (SCHEDULERS_SECONDS)" >&2 ;;
    *) echo "not ok $1 is built: $(tail -n 5 "$why" | tr '\n' ' ')" >&2 ;;
    esac
    rm -f "$why"
}

if [[ ${1:-} != inside ]]; then
    volcano=$(scheduler_built volcano) plugins=$(scheduler_built scheduler-plugins)
    [[ $volcano$plugins ]] || exit 0
    exec "$root/tests/cluster/with" "$0" inside "$volcano" "$plugins"
fi

work=$(mktemp -d)
# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"
# shellcheck source=tests/cluster/pki.sh
. "$root/tests/cluster/pki.sh"

finish() {
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

# ---------------------------------------------------------------- the schedulers
# scheduler_runs NAME PROGRAM [OPTION…]: until this script ends
scheduler_runs() {
    setpriv --pdeathsig KILL -- "$root/tests/cluster/keep" "$CLUSTER" "$@" &
}

volcano_start() {
    identity volcano /O=system:masters/CN=volcano
    scheduler_runs volcano "$1" --kubeconfig "$CLUSTER/volcano.kubeconfig" --leader-elect=false --cache-dumper=false \
        --listen-address 127.0.0.1:0 --schedule-period 300ms -v 3
}

# Its configuration is the module's own example, for another scheduler than the cluster's. A gang that has found no room is not tried again
# when there is a node more or a pod less, but after this time (Kubernetes' default is 5 minutes; it looks every 30 s).
plugins_start() {
    identity scheduler-plugins /O=system:masters/CN=scheduler-plugins
    cat >"$CLUSTER/scheduler-plugins.yaml" <<YAML
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: $CLUSTER/scheduler-plugins.kubeconfig}
profiles:
- schedulerName: scheduler-plugins-scheduler
  plugins:
    multiPoint: {enabled: [{name: Coscheduling}]}
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
  pluginConfig:
  - {name: Coscheduling, args: {permitWaitingTimeSeconds: 10}}
YAML
    scheduler_runs scheduler-plugins "$1" --config "$CLUSTER/scheduler-plugins.yaml" --secure-port 0 \
        --pod-max-in-unschedulable-pods-duration 10s
}

server=$(sed -n 's#^ *cluster: {server: "\([^"]*\)".*#\1#p' "$KUBECONFIG")
cluster_prepare || { echo "not ok preparation"; exit 1; }
why=$("$root/tests/cluster/scheduler-crds" "$work/crds" 2>&1 && kubectl create -f "$work/crds" 2>&1 && established -f "$work/crds" 2>&1)
verdict $? "the API server takes the schedulers' definitions" "$why"
[[ -z $2 ]] || volcano_start "$2"
[[ -z $3 ]] || plugins_start "$3"
cluster_operator_start
cluster_operator_start

# ---------------------------------------------------------------- jobs
# gang JOB WORKERS [MORE]: each takes more than half a node; MORE of runPolicy.gang, a comma in front
gang() {
    requests='cpu: "600"' played_job "$1" "$2" "{gang: {scheduler: $scheduler${3:-}}}" >/dev/null
}

# group JOB JSONPATH
group() {
    k get "$groups" "$1" -o "jsonpath={$2}" 2>/dev/null
}

group_gone() {
    [[ -z $(k get "$groups" "$1" --ignore-not-found -o name) ]]
}

# bound JOB: how many pods of it have a node
bound() {
    k get pods -l "coxswain.dev/job-name=$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .
}

# is_held JOB REASONS: what the job says of its scheduler
is_held() {
    [[ $(status_of "$1" 'conditions[?(@.type=="Scheduled")].reason') =~ ^($2)$ ]]
}

# waits JOB REASONS: and goes on to do so, with no pod placed
waits() {
    until_true 90 is_held "$@" && sleep 3 && is_held "$@" && (($(bound "$1") == 0))
}

# shown JOB: for a failure
shown() {
    {
        k get "$groups" "$1" -o 'jsonpath={.spec}{.status}'
        k get pods -o wide
        status_of "$1" conditions
        k get events | tail -n 5
        tail -n 5 "$CLUSTER/logs/$log"
    } 2>&1
}

all_gone() {
    [[ -z $(k get pods -o name) ]]
}

# whole_life SCHEDULER_NAME: with three nodes, in each of which one pod finds room
whole_life() {
    local old uid words
    gang whole 3
    expect whole readySummary 3/3
    verdict $? "$scheduler: a gang that fits runs" "$(shown whole)"
    [[ $(k get pods -l coxswain.dev/job-name=whole -o 'jsonpath={.items[*].spec.schedulerName}') == "$1 $1 $1" && $(group whole .spec.minMember) == 3 ]]
    verdict $? "$scheduler: placed by its scheduler" "$(shown whole)"
    until_true 30 status_is whole state Running
    uid=$(group whole .metadata.uid)
    old=$(current whole 1)
    k delete pod "$old" --wait=false >/dev/null
    until_true 90 replaced whole 1 "$old" && expect whole readySummary 3/3 && [[ $(group whole .metadata.uid) == "$uid" ]]
    verdict $? "$scheduler: a lost pod is replaced, in the same group" "$(shown whole)"
    [[ $(status_of whole restarts.failures) =~ ^0?$ ]]
    verdict $? "$scheduler: which is no failure" "$(status_of whole restarts)"
    k patch tj whole --type=merge -p '{"spec": {"suspend": true}}' >/dev/null
    expect whole state Suspended && until_true 90 group_gone whole && until_true 90 pods_are whole 0
    verdict $? "$scheduler: suspended it has neither pods nor a group" "$(shown whole)"

    # Three of four would fit.
    gang tight 4
    waits tight Unschedulable && pods_are tight 4
    verdict $? "$scheduler: of a gang that does not fit no pod is placed" "$(shown tight)"
    words=$("$bin/cox" why tight -n "$space" 2>&1)
    grep -Eq "tight waits for a node for pod tight-worker-[0-3]-1: .*($refusal)" <<<"$words"
    verdict $? "$scheduler: why says so" "$words"
    add_node "node-$1"
    expect tight readySummary 4/4
    verdict $? "$scheduler: with one node more all are" "$(shown tight)"
    k patch tj whole --type=merge -p '{"spec": {"suspend": false}}' >/dev/null
    waits whole 'Unschedulable|PodGroupPending' # Volcano lets pods be created only once its queue has room
    verdict $? "$scheduler: resumed, a gang waits for room as a whole" "$(shown whole)"
    k delete tj tight --wait=false >/dev/null
    expect whole readySummary 3/3
    verdict $? "$scheduler: and runs when another has gone" "$(shown whole)"
    k delete tj whole --wait=false >/dev/null
    until_true 90 group_gone whole && until_true 90 group_gone tight && until_true 90 all_gone
    verdict $? "$scheduler: the groups go with their jobs" "$(k get "$groups" 2>&1)"
    kubectl delete node "node-$1" >/dev/null
}

if [[ $2 ]]; then
    scheduler=Volcano groups=podgroups.scheduling.volcano.sh log=volcano refusal='3 Insufficient cpu'
    whole_life volcano
fi
if [[ $3 ]]; then
    scheduler=Coscheduling groups=podgroups.scheduling.x-k8s.io log=scheduler-plugins refusal='PodGroup|Insufficient cpu|rejection in PostFilter|rejection in Unreserve'
    whole_life scheduler-plugins-scheduler
fi

operators_judged
