#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs in the queues of the real Kueue manager: admitted and placed by its flavor, waiting for quota, a lost pod while Kueue
# limits recovery, preempted by a WorkloadPriorityClass, deactivated, finished, admitted with fewer workers, placed in one rack
# by its topology, with the queue of a training class; the trials of a sweep that pause. Only nodes and the lives of pods are played
# (KWOK). The script brings a control plane of its own, in which it calls itself.
#
#   make check-kueue                (builds the manager from its Go module the first time: minutes)
set -uo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
bin=${BUILD:-$root/build}

if [[ ${1:-} != inside ]]; then
    # shellcheck source=tests/cluster/kueue/build.sh
    . "$root/tests/cluster/kueue/build.sh"
    exec "$root/tests/cluster/with" "$0" inside "$kueue_program" "$kueue_module"
fi

work=$(mktemp -d)
# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"
# shellcheck source=tests/cluster/kueue/manager.sh
. "$root/tests/cluster/kueue/manager.sh"

finish() {
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

readonly START=10 RECOVERY=40 # seconds until Kueue evicts a job that has not started, or that does not recover
gates=', ElasticJobsViaWorkloadSlices: true'
kueue_start "$2" "$3" "waitForPodsReady:
  timeout: ${START}s
  recoveryTimeout: ${RECOVERY}s
  requeuingStrategy: {backoffBaseSeconds: 1}" >"$work/kueue.log" 2>&1 # in this shell: the manager ends with it
status=$?
verdict $status "the Kueue manager takes Workloads" "$(cat "$work/kueue.log"; tail -n 5 "$CLUSTER/logs/kueue" 2>&1)"
((status == 0)) || exit 1
cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start
cluster_operator_start

queues_made() {
    why=$(kubectl apply -f - 2>&1 <<YAML
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {type: kwok}, tolerations: [{key: spot, operator: Exists}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: $space}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
YAML
    )
}
until_true 60 queues_made
verdict $? "a queue with 4 processors" "$why"
answer=$(kubectl apply --dry-run=server -f "$root/deploy/examples/kueue/queue.yaml" 2>&1) && answer=$(k apply --dry-run=server -f "$root/deploy/examples/kueue/queued.yaml" 2>&1)
verdict $? "the example of a queue is admitted" "$answer"

# queued_job NAME [LABELS [SECONDS]]: two workers of two processors each, that end well after that time, else not at all
queued_job() {
    requests='cpu: "2"' played_job "$1" 2 '{}' "${3:+0}" "${3:-}" "kueue.x-k8s.io/queue-name: research${2:+, $2}" >/dev/null
}

# runs JOB: with both pods, which Kueue knows
runs() {
    status_is "$1" readySummary 2/2 && workload_is "$1" PodsReady True
}

# why_is JOB PATTERN
why_is() {
    why=$("$bin/cox" why "$1" -n "$space" 2>&1)
    # shellcheck disable=SC2053 # a pattern
    [[ $why == $2 ]]
}

no_failure() {
    [[ $(status_of "$1" restarts.failures) =~ ^0?$ && $(status_of "$1" attempt) =~ ^1?$ ]]
}

# cordon TRUE_OR_FALSE: whether new pods find a node
cordon() {
    local node
    for node in $(kubectl get nodes -o 'jsonpath={.items[*].metadata.name}'); do
        kubectl patch node "$node" --type=merge -p "{\"spec\": {\"unschedulable\": $1}}" >/dev/null
    done
}

# ---------------------------------------------------------------- quota
queued_job first
until_true 60 runs first
verdict $? "a job is admitted and runs" "$(workload first .status) $(status_of first conditions)"
[[ $(k get pod "$(current first 0)" -o 'jsonpath={.spec.nodeSelector.type} {.spec.tolerations[?(@.key=="spot")].operator}') == "kwok Exists" ]]
verdict $? "its pods go where the flavor says" "$(k get pod "$(current first 0)" -o 'jsonpath={.spec}')"
queued_job second
until_true 60 why_is second "second waits for its queue to admit it: *insufficient unused quota*"
verdict $? "cox why has Kueue's words about a job without room" "$why"
pods_are second 0
verdict $? "which has no pods" "$(k get pods)"
until_true 60 why_is second "*; it is number 1 in its LocalQueue and number 1 in the ClusterQueue*"
verdict $? "and its place in the queue" "$why; $(kubectl get apiservice v1beta2.visibility.kueue.x-k8s.io -o 'jsonpath={.status}')"

# ---------------------------------------------------------------- a lost pod
lost=$(current first 1)
cordon true
k delete pod "$lost" --wait=false >/dev/null
until_true 30 workload_is first PodsReady False
[[ $(workload_condition first PodsReady reason) == WaitForRecovery ]]
verdict $? "a lost pod is a recovery for Kueue, not a start" "$(workload_condition first PodsReady reason)"
sleep $((START + 5))
[[ $(workload_condition first Evicted) != True ]] && workload_is first Admitted True
verdict $? "the job is not evicted when the time for a start is over" "$(workload first .status.conditions)"
cordon false
until_true 30 runs first && [[ $(workload_condition first PodsReady reason) == Recovered ]]
verdict $? "it recovers" "$(workload first .status.conditions)"

cordon true
k delete pod "$(current first 1)" --wait=false >/dev/null
until_true $((RECOVERY + 30)) workload_is first Evicted True
verdict $? "when the time for a recovery is over Kueue evicts it" "$(workload first .status.conditions)"
until_true 60 pods_are first 0
verdict $? "its pods go" "$(k get pods)"
no_failure first
verdict $? "which is no failure" "$(status_of first restarts) $(status_of first attempt)"
cordon false
one_runs() { runs first || runs second; }
until_true 90 one_runs
verdict $? "with nodes again, one of the two is admitted and runs" "$(workload first .status) $(workload second .status)"
running=first waiting=second
runs first || running=second waiting=first

# ---------------------------------------------------------------- priority
queued_job urgent "kueue.x-k8s.io/priority-class: urgent"
until_true 60 runs urgent
verdict $? "a job with a WorkloadPriorityClass runs at once" "$(workload urgent .spec) $(workload urgent .status)"
[[ $(workload urgent '.spec.priority}{.spec.priorityClassRef.kind}{.spec.priorityClassRef.name') == 1000WorkloadPriorityClassurgent ]]
verdict $? "its Workload has the class and its value" "$(workload urgent .spec)"
[[ $(workload_condition "$running" Preempted) == True ]] && pods_are "$running" 0
verdict $? "the other one is preempted" "$(workload "$running" .status.conditions)"
no_failure "$running"
verdict $? "which is no failure" "$(status_of "$running" restarts)"
k delete tj urgent >/dev/null
until_true 90 one_runs
verdict $? "after it another is admitted" "$(workload first .status) $(workload second .status)"
running=first waiting=second
runs first || running=second waiting=first

# ---------------------------------------------------------------- by hand
k patch workloads.v1beta2.kueue.x-k8s.io "$running" --type=merge -p '{"spec": {"active": false}}' >/dev/null
until_true 60 pods_are "$running" 0
verdict $? "a job that is deactivated has no pods" "$(workload "$running" .status.conditions)"
until_true 90 runs "$waiting"
verdict $? "its quota goes to the next one" "$(workload "$waiting" .status)"
why_is "$running" "*deactivated*"
verdict $? "cox why says that it was deactivated" "$why"
k delete tj "$waiting" >/dev/null
k patch workloads.v1beta2.kueue.x-k8s.io "$running" --type=merge -p '{"spec": {"active": true}}' >/dev/null
until_true 90 runs "$running"
verdict $? "activated again it runs" "$(workload "$running" .status.conditions)"

# ---------------------------------------------------------------- the end
queued_job short "" 3s
k delete tj "$running" >/dev/null
until_true 90 workload_is short Finished True
verdict $? "the end of a job is told to Kueue" "$(workload short .status.conditions)"
[[ $(workload_condition short Finished reason) == Succeeded ]]
verdict $? "with its outcome" "$(workload short .status.conditions)"
queued_job last
until_true 60 runs last
verdict $? "and its quota is free" "$(workload last .status.conditions)"
k delete tj last >/dev/null

# ---------------------------------------------------------------- fewer workers than an elastic job asks for
requests='cpu: "2"' bounds='minReplicas: 1, maxReplicas: 4, ' played_job partial 3 '{}' '' '' "kueue.x-k8s.io/queue-name: research" >/dev/null
until_true 60 status_is partial readySummary 2/2
verdict $? "an elastic job is admitted with the workers that there is quota for" "$(workload partial .status) $(status_of partial conditions)"
[[ $(workload partial '.spec.podSets[0].count}{.spec.podSets[0].minCount}{.status.admission.podSetAssignments[0].count') == 312 ]]
verdict $? "it has asked for all and would take one" "$(workload partial .spec)"
k get events --field-selector reason=AdmittedInPart -o 'jsonpath={.items[*].note}{.items[*].message}' | contains 'queue research admits 2 of 3 workers'
verdict $? "an event says so" "$(k get events)"
k scale tj partial --replicas 4 >/dev/null
sleep 5
pods_are partial 2
verdict $? "scaled up it keeps to what was admitted" "$(k get pods)"
requests='cpu: "2"' bounds='minReplicas: 3, maxReplicas: 4, ' played_job resized 3 '{}' '' '' "kueue.x-k8s.io/queue-name: research" >/dev/null
asks_for() {
    [[ $(workload resized '.spec.podSets[0].count}{.spec.podSets[0].minCount') == "$1" ]]
}
until_true 60 asks_for 3
was=$(workload resized .metadata.uid)
k scale tj resized --replicas 4 >/dev/null
until_true 60 asks_for 43 && [[ -n $was && $(workload resized .metadata.uid) == "$was" ]]
verdict $? "scaled while it waits, a job asks for the new number with the same Workload" "$(workload resized .spec) $(workload resized .metadata)"
workload resized '.status.conditions[?(@.type=="QuotaReserved")].message' | contains 'insufficient'
verdict $? "for which Kueue then looks for quota" "$(workload resized .status)"
k delete tj resized >/dev/null
k patch clusterqueues.kueue.x-k8s.io research --type=json -p '[{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": 8}]' >/dev/null
k patch tj partial --type=merge -p '{"spec": {"suspend": true}}' >/dev/null
until_true 60 pods_are partial 0
k patch tj partial --type=merge -p '{"spec": {"suspend": false}}' >/dev/null
until_true 60 status_is partial readySummary 4/4
verdict $? "resumed it asks again, and gets what is free by then" "$(workload partial .status) $(status_of partial conditions)"
k scale tj partial --replicas 1 >/dev/null
until_true 60 pods_are partial 1
verdict $? "scaled down it is smaller at once" "$(k get pods)"
k delete tj partial >/dev/null

# ---------------------------------------------------------------- quota that follows an elastic job's size
# elastic_job NAME WORKERS: of two processors each, whose quota follows their number
elastic_job() {
    requests='cpu: "2"' bounds='minReplicas: 1, maxReplicas: 6, ' notes='kueue.x-k8s.io/elastic-job: "true"' \
        played_job "$1" "$2" '{}' '' '' "kueue.x-k8s.io/queue-name: research" >/dev/null
}
# quota_used: processors of the queue, as Kueue counts them
quota_used() {
    kubectl get clusterqueues.v1beta2.kueue.x-k8s.io research -o 'jsonpath={.status.flavorsReservation[0].resources[0].total}'
}
quota_is() {
    [[ $(quota_used) == "$1" ]]
}
k delete tj --all >/dev/null
elastic_job flexible 4
until_true 60 status_is flexible readySummary 4/4
verdict $? "an elastic job uses the queue whole" "$(workload flexible .status) $(status_of flexible conditions)"
queued_job next
until_true 60 why_is next "next waits for its queue to admit it: *insufficient unused quota*"
verdict $? "so that another job waits" "$why"
was=$(workload flexible .metadata.uid) first_pod=$(current flexible 0)
k scale tj flexible --replicas 2 >/dev/null
until_true 60 runs next
verdict $? "scaled down it gives quota back, with which the other one runs" "$(workload flexible .) $(workload next .status)"
[[ $(workload flexible .metadata.uid) == "$was" && $(workload flexible '.spec.podSets[0].count') == 2 && $(current flexible 0) == "$first_pod" ]] &&
    workload_is flexible Admitted True && quota_is 8
verdict $? "its Workload and its pods are the same, and no quota is counted twice" "$(workload flexible .) $(quota_used)"
[[ $(status_of flexible controllerState.admittedWorkers) == 2 ]] && no_failure flexible
verdict $? "its status has the number" "$(status_of flexible controllerState)"

# ---- and grows again: another Workload asks for that, and replaces the first when it is admitted
slice_of() {
    workload flexible.slice "$1"
}
k scale tj flexible --replicas 3 >/dev/null
until_true 60 why_is flexible "flexible waits for nothing: it runs; 1 more worker waits in queue research: *insufficient unused quota*"
verdict $? "scaled up it waits for quota while it runs, and cox why says so" "$why $(slice_of .)"
[[ $(slice_of '.spec.podSets[0].count') == 3 && $(slice_of '.metadata.annotations.kueue\.x-k8s\.io/workload-slice-replacement-for') == "$space/flexible" ]] &&
    pods_are flexible 2 && quota_is 8
verdict $? "by another Workload" "$(slice_of .) $(quota_used)"
cluster_operators_end
cluster_operator_start
cluster_operator_start
k delete tj next >/dev/null
until_true 60 status_is flexible readySummary 3/3
verdict $? "once there is quota it grows, also with another operator than the one that asked" "$(slice_of .) $(status_of flexible conditions) $(k get workloads.v1beta2.kueue.x-k8s.io)"
only_slice() {
    [[ $(k get workloads.v1beta2.kueue.x-k8s.io -o 'jsonpath={.items[*].metadata.name}') == flexible.slice ]] && quota_is 6
}
until_true 60 only_slice && [[ $(current flexible 0) == "$first_pod" ]] && no_failure flexible
verdict $? "the first Workload is gone, its quota counts once, and no pod was replaced" "$(k get workloads.v1beta2.kueue.x-k8s.io) $(quota_used) $(k get pods)"
status_is flexible readySummary 3/3 && workload_is flexible.slice PodsReady True
verdict $? "Kueue knows of its pods" "$(slice_of .status.conditions)"

# ---- what waits for more never starts, where the job wants less, is preempted, suspended or deleted
k scale tj flexible --replicas 6 >/dev/null
until_true 60 why_is flexible "*3 more workers wait in queue research*"
verdict $? "the next growth waits, too" "$why"
k scale tj flexible --replicas 2 >/dev/null
shrunk_to_two() {
    pods_are flexible 2 && quota_is 4 && [[ $(status_of flexible controllerState.admittedWorkers) == 2 ]]
}
until_true 90 shrunk_to_two
verdict $? "scaled down meanwhile it gives quota back" "$(k get workloads.v1beta2.kueue.x-k8s.io -o yaml | grep -A3 count) $(quota_used)"
k scale tj flexible --replicas 6 >/dev/null
until_true 60 why_is flexible "*4 more workers wait in queue research*"
verdict $? "and asks again" "$why $(k get workloads.v1beta2.kueue.x-k8s.io)"
requests='cpu: "2"' played_job urgent 3 '{}' '' '' "kueue.x-k8s.io/queue-name: research, kueue.x-k8s.io/priority-class: urgent" >/dev/null
until_true 60 status_is urgent readySummary 3/3
verdict $? "an urgent job preempts it" "$(workload urgent .status)"
until_true 90 status_is flexible readySummary 1/1 && until_true 60 why_is flexible "*5 more workers wait in queue research*" && quota_is 8
verdict $? "which trains with what is left, and asks for more again" "$why $(k get workloads.v1beta2.kueue.x-k8s.io) $(quota_used)"
no_failure urgent && [[ $(status_of flexible restarts.failures) =~ ^0?$ ]]
verdict $? "which is no failure" "$(status_of flexible restarts)"
k scale tj flexible --replicas 4 >/dev/null
until_true 60 why_is flexible "*3 more workers wait in queue research*"
k delete tj urgent >/dev/null
until_true 60 status_is flexible readySummary 4/4
verdict $? "what waits asks for the newest number" "$(k get workloads.v1beta2.kueue.x-k8s.io -o yaml | grep -A3 count)"
k scale tj flexible --replicas 6 >/dev/null
until_true 60 why_is flexible "*2 more workers wait in queue research*"
verdict $? "the third growth waits" "$why"
k patch tj flexible --type=merge -p '{"spec": {"suspend": true}}' >/dev/null
nothing_left() {
    [[ -z $(k get workloads.v1beta2.kueue.x-k8s.io -o name 2>/dev/null) ]] && quota_is 0
}
until_true 60 nothing_left
verdict $? "suspended it leaves neither Workload nor quota" "$(k get workloads.v1beta2.kueue.x-k8s.io) $(quota_used)"
k delete tj flexible >/dev/null
elastic_job flexible 4
until_true 60 status_is flexible readySummary 4/4
k scale tj flexible --replicas 5 >/dev/null
until_true 60 why_is flexible "*1 more worker waits in queue research*"
k delete tj flexible >/dev/null
until_true 60 nothing_left
verdict $? "deleted neither" "$(k get workloads.v1beta2.kueue.x-k8s.io) $(quota_used)"
elastic_job flexible 2
queued_job next
until_true 60 status_is flexible readySummary 2/2 && until_true 60 runs next

# As without Kueue's feature gate: its webhook refuses the change.
refusal_made() {
    why=$(kubectl apply -f - 2>&1 <<YAML
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: fixed-quota}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [kueue.x-k8s.io], apiVersions: ["*"], operations: [UPDATE], resources: [workloads]}]}
  validations: [{expression: "object.spec.podSets[0].count == oldObject.spec.podSets[0].count", message: "the number is fixed"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: fixed-quota}
spec: {policyName: fixed-quota, validationActions: [Deny]}
YAML
    )
}
number_is_fixed() {
    ! answer=$(k patch workloads.v1beta2.kueue.x-k8s.io next --type=json -p '[{"op": "replace", "path": "/spec/podSets/0/count", "value": 1}]' --dry-run=server 2>&1) &&
        [[ $answer == *"the number is fixed"* ]]
}
refusal_made && until_true 60 number_is_fixed
verdict $? "the number of a Workload is fixed" "$why $answer"
k scale tj flexible --replicas 1 >/dev/null
kept_is_told() {
    k get events --field-selector reason=QuotaKept -o 'jsonpath={.items[*].note}{.items[*].message}' | contains 'the number is fixed'
}
until_true 60 kept_is_told
verdict $? "where the change is refused an event says why" "$(k get events)"
pods_are flexible 1 && status_is flexible readySummary 1/1 && [[ $(workload flexible '.spec.podSets[0].count') == 2 ]]
verdict $? "and the job goes on" "$(status_of flexible .)"
kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy fixed-quota >/dev/null
k delete tj flexible next >/dev/null
until_true 60 quota_is 0
verdict $? "without the jobs no quota is used" "$(quota_used)"

# ---------------------------------------------------------------- the queue of a class
kubectl apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: ClusterTrainingClass
metadata: {name: queued}
spec: {queueName: research}
YAML
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: classy}
spec:
  trainingClass: {name: queued}
  workers: {replicas: 2, template: {spec: {containers: [{name: trainer, resources: {requests: {cpu: "2"}}}]}}}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100}
YAML
until_true 60 runs classy && [[ $(workload classy .spec.queueName) == research ]] && workload_is classy Admitted True
verdict $? "a job of a class waits in the class's queue" "$(workload classy .) $(status_of classy conditions)"
k delete tj classy >/dev/null

# ---------------------------------------------------------------- the trials of a sweep
# The queue has room for two of the trials. No pod runs a trainer, so that the script writes what trials report into their jobs' status.
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: rates, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  algorithm: {type: Grid}
  parallelism: 3
  objective: {metric: loss}
  earlyStopping: {type: ASHA, minSteps: 10, reductionFactor: 2, action: Pause}
  parameters: [{env: LR, values: [0.1, 0.2, 0.3, 0.4]}]
  template:
    image: torch
    pytorch: {}
    workers: {replicas: 1, template: {spec: {containers: [{name: trainer, resources: {requests: {cpu: "4"}}}]}}}
YAML

trial_runs() {
    status_is "$1" readySummary 1/1 && workload_is "$1" Admitted True
}

# reports TRIAL LOSS: after 12 steps, past the rung
reports() {
    k patch tj "$1" --subresource=status --type=merge -p "{\"status\": {\"progress\": {\"step\": 12, \"metrics\": [{\"name\": \"loss\", \"value\": \"$2\", \"step\": 12}]}}}" >/dev/null
}

# is_seen TRIAL LOSS: by the sweep
is_seen() {
    [[ $(k get trainingsweep rates -o "jsonpath={.status.results[${1##*-}].rungs}") == "$2" ]]
}

# sorted: the trials that run, in `running`, and those that wait for the queue, in `waiting`
sorted() {
    local trial
    running=() waiting=()
    for trial in $(k get tj -l coxswain.dev/sweep-name=rates -o 'jsonpath={.items[*].metadata.name}'); do
        if trial_runs "$trial"; then running+=("$trial"); elif [[ $(workload_condition "$trial" QuotaReserved) == False ]]; then waiting+=("$trial"); fi
    done
}
# runs_and_waits COUNT COUNT
runs_and_waits() {
    sorted
    ((${#running[@]} == $1 && ${#waiting[@]} == $2))
}
# A paused trial has no pods, no quota, and asks for none.
gives_back() {
    [[ $(status_of "$1" 'conditions[?(@.type=="Suspended")].status') == True && $(workload_condition "$1" Admitted) != True ]] && pods_are "$1" 0
}
what_is() {
    echo "$(k get tj,workloads.v1beta2.kueue.x-k8s.io 2>&1) $(k get trainingsweep rates -o 'jsonpath={.status}')"
}

until_true 90 runs_and_waits 2 1
verdict $? "two trials of a sweep are admitted, and the third waits" "$(what_is)"
last=${waiting[0]:-rates-2}
until_true 60 why_is "$last" "$last waits for its queue to admit it: waiting in queue research: *insufficient unused quota*" && pods_are "$last" 0
verdict $? "cox why names the trial's queue" "$why"
worst=${running[0]:-rates-0} middle=${running[1]:-rates-1}
reports "$worst" 0.9
until_true 60 gives_back "$worst"
verdict $? "a trial that pauses gives its quota back" "$worst: $(what_is)"
until_true 60 runs_and_waits 2 1
verdict $? "another is admitted, and the fourth is in the queue, too" "$(what_is)"
best=${running[0]:-rates-2} last=${waiting[0]:-rates-3}
[[ $best != "$middle" ]] || best=${running[1]:-rates-2}
reports "$best" 0.5
until_true 60 is_seen "$best" 0.5
reports "$middle" 0.6
until_true 60 gives_back "$middle" && until_true 60 trial_runs "$last" && trial_runs "$best"
verdict $? "of two values the better one's trial goes on, and the other's quota is the last trial's" "$(what_is)"
reports "$last" 0.95
until_true 60 gives_back "$last" && until_true 60 trial_runs "$middle"
verdict $? "a paused trial that is among the best after all is admitted again" "$(what_is)"
reports "$middle" 0.55 # its next pods begin without figures
for trial in "$best" "$middle"; do
    k annotate pod "$(current "$trial" 0)" test.coxswain.dev/runs-for=1s test.coxswain.dev/exit-code=0 >/dev/null
done
is_complete() {
    [[ $(k get trainingsweep rates -o 'jsonpath={.status.conditions[?(@.type=="Complete")].status} {.status.trials.total} {.status.trials.succeeded} {.status.trials.paused} {.status.best.trial}') == "True 4 2 2 $best" ]]
}
until_true 90 is_complete
verdict $? "the sweep ends with all of its trials" "$(what_is)"
workload_is "$best" Finished True && workload_is "$middle" Finished True && gives_back "$worst" && gives_back "$last"
verdict $? "and holds no quota" "$(what_is)"
k delete trainingsweep rates >/dev/null

# ---------------------------------------------------------------- racks
mapfile -t nodes < <(kubectl get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
for i in "${!nodes[@]}"; do kubectl label node "${nodes[i]}" "example.com/rack=$((i < 2 ? 1 : 2))" >/dev/null; done
racks_made() {
    why=$(kubectl apply -f - 2>&1 <<YAML
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: example.com/rack}, {nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: racks}
spec: {nodeLabels: {type: kwok}, topologyName: racks}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: racks}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: racks, resources: [{name: cpu, nominalQuota: 10000}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: racks, namespace: $space}
spec: {clusterQueue: racks}
YAML
    )
}
until_true 60 racks_made
verdict $? "a queue with a topology" "$why"
# near_job NAME WORKERS: all of them in one rack, each with more than half a node
near_job() {
    k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1, labels: {kueue.x-k8s.io/queue-name: racks}}
spec:
  workers:
    replicas: $2
    template:
      metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: example.com/rack}}
      spec: {containers: [{name: trainer, resources: {requests: {cpu: "600"}}}]}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100}
YAML
}
# racks_of JOB: of its pods that have a node
racks_of() {
    local node
    for node in $(k get pods -l "coxswain.dev/job-name=$1" -o 'jsonpath={.items[*].spec.nodeName}'); do
        kubectl get node "$node" -o 'jsonpath={.metadata.labels.example\.com/rack}{"\n"}'
    done | sort | tr '\n' ' '
}
near_job near 2
until_true 60 runs near
verdict $? "a job that wants one rack runs" "$(workload near .status) $(k get pods -o yaml | grep -A5 -i gate) $(tail -n 20 "$CLUSTER/logs/kueue")"
[[ $(racks_of near) == "1 1 " ]]
verdict $? "its pods are in one rack" "$(racks_of near) $(k get pods -o wide)"
k delete pod "$(current near 1)" --wait=false >/dev/null
until_true 60 workload_is near PodsReady False
until_true 60 runs near && [[ $(racks_of near) == "1 1 " ]]
verdict $? "and so is the successor of a lost one" "$(racks_of near) $(k get pods -o wide)"
near_job far 3
until_true 60 why_is far "far waits for its queue to admit it: *topology*"
verdict $? "a job that fits into no rack waits, and why says so" "$why"

operators_judged
