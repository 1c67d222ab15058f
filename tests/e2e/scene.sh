# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # CLUSTER and E2E_GROUP are from tests/e2e/nodes
#
# What tests on real nodes share: the chart installed, volumes, jobs that train, questions about their processes and nodes.
# The caller sets `root` (the sources).

bin=${BUILD:-$root/build}
work=$CLUSTER/work-${0##*/}
mkdir -p "$work"
cd "$work" || exit

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

# With time for a busy machine.
k() {
    timeout 900 kubectl -n "$space" "$@"
}

# until_true SECONDS COMMAND…: as everywhere, but asks less often: each question is a kubectl. E2E_PATIENCE instead of 4 times
# that long
until_true() {
    local end=$((SECONDS + ${E2E_PATIENCE:-4} * $1 + 1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.3
    done
}

# ---------------------------------------------------------------- what a script leaves to the next one: nothing
in_background=()
scene_end() {
    ((${#in_background[@]} == 0)) || kill "${in_background[@]}" 2>/dev/null
    [[ -z ${E2E_LOGS:-} ]] || scene_record "$E2E_LOGS/${0##*/}"
    wait
}
trap scene_end EXIT

# scene_record FOLDER: copies all logs and objects
scene_record() {
    mkdir -p "$1"
    cp -r "$CLUSTER/logs" "$work" "$1"/ 2>/dev/null
    local node
    for node in "$CLUSTER"/nodes/*; do
        mkdir -p "$1/${node##*/}"
        cp -r "$node/logs" "$node/pod-logs" "$1/${node##*/}"/ 2>/dev/null
    done
    kubectl get all,events,tj,nodes,leases -A -o wide >"$1/objects" 2>&1
    kubectl get tj,pods -A -o yaml >"$1/objects.yaml" 2>&1
}

# install [OPTION…]: empty volumes, namespaces under the restricted level, the chart with two operators
install() {
    local name why
    rm -rf "${CLUSTER:?}/volumes/"*
    for name in coxswain-system $space; do
        kubectl create namespace "$name" >/dev/null
        kubectl label namespace "$name" pod-security.kubernetes.io/enforce=restricted >/dev/null
    done
    why=$(helm install coxswain "$root/charts/coxswain" -n coxswain-system --wait --timeout 400s --set replicas=2 \
        --set image.repository=localhost/coxswain-operator,image.tag=test \
        --set workerImage.repository=localhost/coxswain-worker-cpu,workerImage.tag=test "$@" 2>&1)
    verdict $? "helm install: two operators run under the restricted level" "$why"
}

# uninstall: jobs and the chart go, and no pod stays
uninstall() {
    local why
    kubectl delete tj --all -n $space --timeout=120s >/dev/null
    # shellcheck disable=SC2317 # called below
    no_pods() { [[ -z $(k get pods -l coxswain.dev/job-uid -o name) ]]; }
    until_true 90 no_pods
    verdict $? "no pod is left of deleted jobs" "$(k get pods)"
    why=$(helm uninstall coxswain -n coxswain-system --wait --timeout 240s 2>&1)
    verdict $? "helm uninstall" "$why"
    kubectl delete namespace $space coxswain-system --timeout=240s >/dev/null
    kubectl delete pv --all --timeout=60s >/dev/null
}

# ---------------------------------------------------------------- jobs
# claim NAME FOLDER: a volume that is this folder on every node, and a claim on it
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

# training NAME STEPS STORAGE [CPU [POD]]: a job with two workers, whose result does not depend on disruptions. A job that is to be
# disrupted gets little processor time, so that it runs until `hasten` on any machine. POD: further fields of the pods, "{tolerations: […]}"
# without braces.
training() {
    local limits=
    [[ -z ${4:-} ]] || limits="resources: {limits: {cpu: $4}}"
    k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers:
    replicas: 2
    template:
      spec: {containers: [{name: trainer, env: [{name: COXSWAIN_THREADS, value: "1"}], $limits}]${5:+, $5}}
  runPolicy: {backoffLimit: 3, forceDeleteAfterSeconds: 10}
  storage:
  - {name: runs, persistentVolumeClaim: {claimName: $3}}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: lenet}
    data: {format: Synthetic, examples: 10000}
    training: {steps: $2, batchSize: 64, seed: 3, optimizer: {type: SGD, learningRate: 0.01}}
    checkpoint: {storage: runs, path: $1, everySteps: 100, keep: 2}
    export: {storage: runs, path: $1/model.safetensors}
YAML
}

# Takes the limits of processors from all pods that run: what was to be disturbed has been.
hasten() {
    local limits file
    limits=$(find "/sys/fs/cgroup/cpu$E2E_GROUP" "/sys/fs/cgroup$E2E_GROUP" -path '*/kubepods/*' \
        \( -name cpu.cfs_quota_us -o -name cpu.max \) 2>/dev/null)
    # A pod's before its containers'.
    while read -r file; do
        case $file in
        *cpu.max) echo max ;;
        *) echo -1 ;;
        esac >"$file"
    done < <(awk -F / '{ print NF, $0 }' <<<"$limits" | sort -n | cut -d ' ' -f 2-) 2>/dev/null
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

# renewed JOB INDEX OLD NAME: another pod is that worker, and the crew is whole
renewed() {
    if until_true 180 replaced "$1" "$2" "$3"; then
        whole "$1" "$4"
    else
        verdict 1 "$4" "$3 was not replaced: $(k get pods -o wide | tr '\n' ';')"
    fi
}

# succeeds JOB NAME: as it is said by the API
succeeds() {
    k wait "tj/$1" --for=condition=Succeeded --timeout=880s >/dev/null
    verdict $? "$2" "$(status_of "$1" readySummary) at step $(step_of "$1"): $(status_of "$1" conditions) $(status_of "$1" restarts)"
}

# ---------------------------------------------------------------- witnesses
# witness JOB: records every status of the job and every change of its pods
witness() {
    "$root/tests/e2e/witness.py" "$space" "$1" >"witness-$1" 2>"witness-$1.errors" &
    witness=$!
    in_background+=($!)
}

# testify JOB NAME: what its witness says of its statuses
testify() {
    kill "$witness"
    wait "$witness"
    verdict $? "$2: $(tail -n 1 "witness-$1")" "$(head -n 5 "witness-$1" | tr '\n' ';') $(tail -n 1 "witness-$1.errors")"
}

# ---------------------------------------------------------------- processes
# told_step PROCESS: prints the step that this worker reports at its port, in its own network namespace
told_step() {
    local address
    address=$(environment_of "$1" | sed -n 's/^COXSWAIN_POD_IP=//p')
    nsenter --target "$1" --net -- curl -s --max-time 10 "http://$address:8080/status" | sed -n 's/.*"step":\([0-9]*\).*/\1/p'
}

# has_told PROCESS STEP: it has got as far as that
has_told() {
    local step
    step=$(told_step "$1") && [[ -n $step ]] && ((step >= $2))
}

# environment_of PROCESS
environment_of() {
    { tr '\0' '\n' <"/proc/$1/environ"; } 2>/dev/null # gone meanwhile, perhaps
}

# worker_processes JOB INDEX [INCARNATION]: the processes that are that worker, of that incarnation only
worker_processes() {
    local process environment
    for process in $(pgrep -x coxswain-worker); do
        environment=$(environment_of "$process")
        if grep -q "^HOSTNAME=$1-worker-$2$" <<<"$environment" && grep -q "^COXSWAIN_INCARNATION=${3:-[0-9]*}$" <<<"$environment"; then
            echo "$process"
        fi
    done
}

# worker_process JOB INDEX: the one that is the current container of that worker
worker_process() {
    local pod
    pod=$(current "$1" "$2")
    worker_processes "$1" "$2" "${pod##*-}" | grep .
}

# The process of the operator that holds the Lease: its identity begins with its pod's name.
leading_process() {
    local holder process
    holder=$(kubectl -n coxswain-system get lease coxswain -o 'jsonpath={.spec.holderIdentity}')
    for process in $(pgrep -x coxswain-operat); do
        environment_of "$process" | contains "^HOSTNAME=${holder%_*}$" && echo "$process" && return
    done
    return 1
}

# ---------------------------------------------------------------- nodes
nodes() {
    basename -a "$CLUSTER"/nodes/*
}

# node_of JOB INDEX: where that worker is
node_of() {
    k get pods -l "coxswain.dev/job-name=$1,coxswain.dev/index=$2,coxswain.dev/current=true" -o 'jsonpath={.items[*].spec.nodeName}'
}

is_on() {
    [[ $(node_of "$1" "$2") == "$3" ]]
}

apart() {
    local one other
    one=$(node_of "$1" 0) && other=$(node_of "$1" 1) && [[ -n $one && -n $other && $one != "$other" ]]
}

# other_node NODE
other_node() {
    nodes | grep -vx "$1"
}

# in_node NODE COMMAND…: with its processes as that node numbers them
in_node() {
    nsenter --target "$(<"$CLUSTER/nodes/$1/init")" --pid -- "${@:2}"
}

# node_program_stop NODE PROGRAM: until node_program_start
node_program_stop() {
    touch "$CLUSTER/nodes/$1/hold/$2"
    in_node "$1" kill -KILL "$(<"$CLUSTER/nodes/$1/pids/$2")"
}

node_program_start() {
    rm -f "$CLUSTER/nodes/$1/hold/$2"
}

# Cut off: everything on it lives on.
node_cut() {
    ip link set "$1" down
}

node_join() {
    ip link set "$1" up
}

# Every process of it stands still, containers too, as if it had hung; twice, for what was being forked.
node_freeze() {
    in_node "$1" bash -c 'kill -STOP -- -1; kill -STOP -- -1'
}

node_thaw() {
    in_node "$1" bash -c 'kill -CONT -- -1'
}

# node_is NODE True|False|Unknown
node_is() {
    [[ $(kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == "$2" ]]
}
