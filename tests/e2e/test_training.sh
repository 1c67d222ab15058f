#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Training on a real node, and everything that ends pods there: each time the job completes, with the weights of a run that
# nothing disturbed, and its status never says what is not so. Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$CLUSTER/e2e
mkdir -p "$work"
cd "$work" || exit

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

# With time for a busy machine.
k() {
    timeout 900 kubectl -n "$space" "$@"
}

watcher=
finish() {
    [[ -z $watcher ]] || kill "$watcher" 2>/dev/null
    if [[ -n ${E2E_KEEP_LOGS:-} ]]; then
        cp -r "$CLUSTER/logs" "$CLUSTER/node/logs" "$work" "$E2E_KEEP_LOGS"/ 2>/dev/null
        kubectl get all,events,tj -A -o wide >"$E2E_KEEP_LOGS/objects" 2>&1
    fi
}
trap finish EXIT

# claim NAME FOLDER: a volume that is this folder, and a claim on it
claim() {
    mkdir -p "$2"
    chmod 777 "$2"
    kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  claimRef: {namespace: $space, name: $1}
  hostPath: {path: $2}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1, namespace: $space}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: $1
  resources: {requests: {storage: 1Gi}}
YAML
}

# training NAME STEPS STORAGE [CPU]: two workers; the same numbers, whatever happens to them. What is to be disturbed gets
# little of a processor, so that it lasts on any machine.
training() {
    local limits=
    [[ -z ${4:-} ]] || limits="resources: {limits: {cpu: $4}}"
    k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1alpha1
kind: TrainingJob
metadata: {name: $1}
spec:
  strategy: {type: MultiWorkerMirrored}
  workers: 2
  model: {preset: lenet}
  data: {format: synthetic, examples: 10000}
  training: {steps: $2, batchSize: 64, seed: 3, optimizer: {type: sgd, learningRate: "0.01"}}
  runPolicy: {backoffLimit: 3}
  storage:
  - {name: runs, persistentVolumeClaim: {claimName: $3}}
  checkpoint: {storage: runs, path: $1, everySteps: 100, keep: 2}
  export: {storage: runs, to: $1/model.safetensors}
  roles: [{name: worker, template: {spec: {containers: [{name: trainer, env: [{name: COXSWAIN_THREADS, value: "1"}], $limits}]}}}]
YAML
}

step_of() {
    local step
    step=$(status_of "$1" progress.step 2>/dev/null)
    echo "${step:-0}"
}

stepped() { (($(step_of "$1") >= $2)); }

# advances JOB: it makes another fifty steps from here
advances() {
    until_true 180 stepped "$1" $(($(step_of "$1") + 50))
}

# whole JOB NAME: after what was done to it, the crew is complete and trains on
whole() {
    until_true 180 status_is "$1" readySummary 2/2 && advances "$1"
    verdict $? "$2" "$(status_of "$1" readySummary) at step $(step_of "$1"): $(k get pods -o wide | tr '\n' ';')"
}

# environment_of PROCESS
environment_of() {
    tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null
}

# worker_process JOB INDEX: the process that is the current container of that worker
worker_process() {
    local pod process
    pod=$(current "$1" "$2")
    for process in $(pgrep -x coxswain-worker) $(pgrep -x coxswain-worke); do
        environment_of "$process" | grep -q "^COXSWAIN_INDEX=$2$" && environment_of "$process" | grep -q "^HOSTNAME=$1-worker-$2$" &&
            echo "$process" && return
    done
    echo "# no process of $pod" >&2
    return 1
}

# The process of the operator that holds the Lease: its identity begins with its pod's name.
leading_process() {
    local holder process
    holder=$(kubectl -n coxswain-system get lease coxswain-operator -o 'jsonpath={.spec.holderIdentity}')
    for process in $(pgrep -x coxswain-operat); do
        environment_of "$process" | grep -q "^HOSTNAME=${holder%_*}$" && echo "$process" && return
    done
    return 1
}

# ---------------------------------------------------------------- installed
kubectl create namespace coxswain-system >/dev/null
kubectl create namespace $space >/dev/null
kubectl label namespace coxswain-system $space pod-security.kubernetes.io/enforce=restricted >/dev/null
why=$(helm install coxswain "$root/charts/coxswain" -n coxswain-system --wait --timeout 180s --set replicas=2 \
    --set image.repository=localhost/coxswain-operator,image.tag=test \
    --set workerImage.repository=localhost/coxswain-worker-cpu,workerImage.tag=test 2>&1)
verdict $? "helm install: two operators run under the restricted level" "$why"
why=$(helm test coxswain -n coxswain-system --timeout 180s 2>&1)
verdict $? "helm test: a job learns" "$why"

claim runs "$CLUSTER/node/volumes/runs"
if [[ -d ${COXSWAIN_DATA:-/none}/mnist ]]; then
    claim digits "$CLUSTER/node/volumes/digits"
    cp -r "$COXSWAIN_DATA/mnist" "$CLUSTER/node/volumes/digits/"
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    k wait tj/digits --for=condition=Succeeded --timeout=600s >/dev/null
    verdict $? "the example digits learns" "$(k get tj digits -o 'jsonpath={.status.conditions}')"
    [[ -s $CLUSTER/node/volumes/runs/digits/model.safetensors ]]
    verdict $? "and leaves its weights"
    grep -q accuracy < <(k logs digits-worker-0-1)
    verdict $? "and says how well"
else
    echo "skip the example digits: COXSWAIN_DATA has no mnist"
fi

# ---------------------------------------------------------------- undisturbed
steps=${E2E_STEPS:-3000}
training calm "$steps" runs
k wait tj/calm --for=condition=Succeeded --timeout=800s >/dev/null
verdict $? "an undisturbed run" "$(status_of calm conditions)"

# ---------------------------------------------------------------- disturbed
# Every status that the job ever had.
watch_status() {
    while :; do
        k get tj rough --watch --request-timeout=0 -o \
            'jsonpath={.status.state} {.status.epoch} {.status.restarts.failures} {.status.restarts.disruptions}{"\n"}' 2>/dev/null
        sleep 0.5
    done
}
training rough "$steps" runs 200m
watch_status >seen &
watcher=$!
until_true 180 stepped rough 100
verdict $? "the job to be disturbed trains" "$(k get pods)"

k delete pod "$(current rough 1)" --wait=false >/dev/null
whole rough "a worker's pod deleted"
k delete pod "$(current rough 0)" --wait=false >/dev/null
whole rough "the chief's pod deleted"

process=$(worker_process rough 1) && kill -KILL "$process"
verdict $? "a container killed"
until_true 60 status_is rough restarts.failures 1
verdict $? "counts as a failure" "$(status_of rough restarts)"
whole rough "and is made good"

process=$(leading_process) && kill -KILL "$process"
verdict $? "the leading operator killed"
k delete pod "$(current rough 1)" --wait=false >/dev/null
whole rough "the other one acts"

kubectl create --raw "/api/v1/namespaces/$space/pods/$(current rough 0)/eviction" -f - >/dev/null \
    <<<"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"$(current rough 0)\"}}"
whole rough "the chief evicted"

program_stop kubelet
advances rough
verdict $? "training goes on without the kubelet" "step $(step_of rough)"
program_start kubelet
whole rough "and with it again"

before=$(step_of rough)
program_stop kube-apiserver
sleep "${E2E_AWAY:-20}"
program_start kube-apiserver
until_true 120 api_server_answers
until_true 120 stepped rough $((before + 1))
verdict $? "training goes on without the API server" "step $(step_of rough)"
whole rough "and with it again"

kubectl drain node --ignore-daemonsets --delete-emptydir-data --force --pod-selector=coxswain.dev/job-name=rough --timeout=90s >drain.log 2>&1
verdict $? "a drain" "$(tail -n 3 drain.log | tr '\n' ' ')"
kubectl uncordon node >/dev/null
k wait tj/rough --for=condition=Succeeded --timeout=800s >/dev/null
verdict $? "the disturbed job succeeds" "$(status_of rough conditions) $(status_of rough restarts)"
kill "$watcher" && watcher=

status_is rough restarts.failures 1
verdict $? "one failure among so many disruptions" "$(status_of rough restarts)"
cmp "$CLUSTER/node/volumes/runs/"{calm,rough}/model.safetensors
verdict $? "with the weights of the undisturbed run"
why=$(awk '/Failed/ { print "Failed was said" }
    NF == 4 { if ($2 < e || $3 < f || $4 < d) print "went back: " $0; e = $2; f = $3; d = $4 }' seen | sort | uniq | head -n 3)
[[ -z $why && -s seen ]]
verdict $? "and a status that never went back" "$why"

# ---------------------------------------------------------------- a full volume
mkdir -p "$CLUSTER/node/volumes/small"
mount -t tmpfs -o size=6m tmpfs "$CLUSTER/node/volumes/small"
claim small "$CLUSTER/node/volumes/small"
training full 900 small 400m
until_true 180 stepped full 150
dd if=/dev/zero of="$CLUSTER/node/volumes/small/ballast" bs=64k 2>/dev/null
last=$(status_of full progress.lastCheckpointStep)
advances full && advances full && advances full
verdict $? "training goes on with a full volume" "$(k logs -l coxswain.dev/job-name=full --tail=3)"
grep -qi "space left" < <(k logs -l coxswain.dev/job-name=full --tail=-1)
verdict $? "whose worker says so" "$(k logs -l coxswain.dev/job-name=full --tail=5)"
failing() { status_is full 'conditions[?(@.type=="CheckpointsFailing")].reason' "$1"; }
until_true 60 failing VolumeFull
verdict $? "the status says it" "$(status_of full conditions)"
(($(status_of full progress.lastCheckpointStep) <= last + 100))
verdict $? "and the status does not claim a checkpoint" "$(status_of full progress)"
rm "$CLUSTER/node/volumes/small/ballast"
until_true 120 failing Saved
verdict $? "and takes it back once there is room" "$(status_of full conditions)"
k wait tj/full --for=condition=Succeeded --timeout=800s >/dev/null
verdict $? "and ends well once there is room" "$(status_of full conditions)"

why=$(helm uninstall coxswain -n coxswain-system --wait --timeout 120s 2>&1)
verdict $? "helm uninstall" "$why"
kubectl delete tj --all -n $space --timeout=60s >/dev/null
no_pods() { [[ -z $(k get pods -o name) ]]; }
until_true 90 no_pods
verdict $? "no pod is left" "$(k get pods)"
umount "$CLUSTER/node/volumes/small"
