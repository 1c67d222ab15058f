# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $root and $bin are the caller's, CLUSTER is from tests/cluster/with
#
# Functions for tests on a cluster: the operator with its real rights, jobs with KWOK's pods, and questions about them. The
# caller sets `root` (the sources), `bin` (the build directory) and `work` (a directory of its own).

# shellcheck source=tests/integration/plane.sh
. "$root/tests/integration/plane.sh"

space=train
operators=()

# k ARGUMENT…: kubectl in the namespace of the jobs
k() {
    timeout 120 kubectl -n "$space" "$@"
}

# add_node NAME: as those that KWOK plays
add_node() {
    kubectl create -f - >/dev/null <<YAML
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {kubernetes.io/hostname: $1, kubernetes.io/os: linux, kubernetes.io/arch: amd64, type: kwok}}
status: {allocatable: {cpu: "1000", memory: 4Ti, pods: "20000"}, capacity: {cpu: "1000", memory: 4Ti, pods: "20000"}}
YAML
}

# established WHAT…: definitions that are made are served. kubectl gives up on one that has no conditions at all yet.
established() {
    until_true 60 kubectl wait --for=condition=Established --timeout=60s "$@"
}

# person_kubeconfig NAME ROLE: that of a person who has the cluster's role ("edit", "view") in the namespace, with a context that names it
person_kubeconfig() {
    local token
    k create serviceaccount "$1" >/dev/null && k create rolebinding "$1" --clusterrole="$2" --serviceaccount="$space:$1" >/dev/null &&
        token=$(k create token "$1" --duration=4h) || return
    sed "/^users:/,\$d" "$KUBECONFIG"
    cat <<YAML
users:
- name: $1
  user: {token: $token}
contexts:
- name: mine
  context: {cluster: test, user: $1, namespace: $space}
current-context: mine
YAML
}

# Definition, rights, and a namespace at the Pod Security level "restricted", without what an earlier script left in it.
cluster_prepare() {
    kubectl delete namespace "$space" --ignore-not-found --timeout=180s >/dev/null &&
        kubectl apply -f "$root/deploy/crd" -f "$root/deploy/manager/namespace.yaml" >/dev/null &&
        kubectl apply -k "$root/deploy/rbac" >/dev/null &&
        kubectl create namespace "$space" >/dev/null &&
        kubectl label namespace "$space" pod-security.kubernetes.io/enforce=restricted >/dev/null &&
        established crd/trainingjobs.coxswain.dev crd/trainingsweeps.coxswain.dev >/dev/null &&
        account_kubeconfig coxswain-system coxswain-operator >"$work/operator.kubeconfig"
}

# account_kubeconfig NAMESPACE NAME: with that service account's token instead of an administrator's certificate
account_kubeconfig() {
    local token
    token=$(kubectl -n "$1" create token "$2" --duration=4h) || return
    sed "/^users:/,/^contexts:/c\\
users:\\
- name: admin\\
  user: {token: $token}\\
contexts:" "$KUBECONFIG"
}

# free_port HOST: at which nobody answers
free_port() {
    local port
    while :; do
        port=$((RANDOM % 20000 + 10000))
        answers "$1" "$port" || break
    done
    echo "$port"
}

# answers HOST PORT
answers() {
    (: <>"/dev/tcp/$1/$2") 2>/dev/null
}

# cluster_operator_start [OPTION…]: starts one more operator; its metrics are at the address in its log.
cluster_operator_start() {
    "$bin/coxswain-operator" --kubeconfig "$work/operator.kubeconfig" --leader-elect --lease-namespace coxswain-system "$@" \
        >"$work/operator-${#operators[@]}.log" 2>&1 &
    operators+=($!)
}

cluster_operators_end() {
    ((${#operators[@]} > 0)) || return 0
    kill "${operators[@]}" 2>/dev/null
    wait "${operators[@]}" # and for nothing else that the script has started
    return 0
}

# The process that holds the Lease.
leader() {
    local holder
    holder=$(kubectl -n coxswain-system get lease coxswain-operator -o 'jsonpath={.spec.holderIdentity}' 2>/dev/null)
    local i
    for i in "${!operators[@]}"; do
        grep -q "identity=\"\?$holder" "$work/operator-$i.log" && kill -0 "${operators[i]}" 2>/dev/null && echo "${operators[i]}" && return
    done
    return 1
}

program_stop() {
    touch "$CLUSTER/hold/$1"
    kill -KILL "$(cat "$CLUSTER/pids/$1")"
}

program_start() {
    rm -f "$CLUSTER/hold/$1"
}

api_server_answers() {
    kubectl get --raw /readyz >/dev/null 2>&1
}

# played_job NAME WORKERS RUN_POLICY [CODE SECONDS [LABELS]]: its pods run until deleted, or end with CODE after that time. The
# caller may set suspend (false), bounds (minReplicas and maxReplicas, a comma behind each), requests (what each pod asks for),
# notes (the job's annotations) and ours (a line of section coxswain)
played_job() {
    local annotations='' pod=
    [[ -z ${4:-} ]] || annotations="test.coxswain.dev/exit-code: \"$4\", test.coxswain.dev/runs-for: $5"
    [[ -z ${requests:-} ]] || pod=", spec: {containers: [{name: trainer, resources: {requests: {$requests}}}]}"
    k apply -f - <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1, labels: {${6:-}}, annotations: {${notes:-}}}
spec:
  suspend: ${suspend:-false}
  workers: {replicas: $2, ${bounds:-}template: {metadata: {annotations: {$annotations}}$pod}}
  runPolicy: $3
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: 0.1}}
    ${ours:-}
YAML
}

# plain_job NAME RUN_POLICY POD [ANNOTATIONS]: one worker, with fields of its pod's spec
plain_job() {
    k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: 1, template: {metadata: {annotations: {${4:-}}}, spec: {$3}}}
  runPolicy: {$2}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: 0.1}}
YAML
}

# node_of JOB INDEX: the node of the pod that is that worker now
node_of() {
    k get pod "$(current "$1" "$2")" -o 'jsonpath={.spec.nodeName}' 2>/dev/null
}

# lose NODE: its pods are deleted by the taint eviction controller, and it comes back
lose() {
    kubectl taint node "$1" test.coxswain.dev/sick=:NoExecute >/dev/null
    sleep 3
    kubectl taint node "$1" test.coxswain.dev/sick- >/dev/null
}

# status_of JOB PATH: one field
status_of() {
    if [[ $2 == state ]]; then # the first condition that is True
        k get tj "$1" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}' | cut -d ' ' -f 1
    else
        k get tj "$1" -o "jsonpath={.status.$2}"
    fi
}

# status_is JOB PATH VALUE
status_is() {
    [[ $(status_of "$1" "$2") == "$3" ]]
}

# expect JOB PATH VALUE: within 90 s
expect() {
    until_true 90 status_is "$@"
}

# pods_are JOB COUNT
pods_are() {
    [[ $(k get pods -l "coxswain.dev/job-name=$1" -o name 2>/dev/null | wc -l) == "$2" ]]
}

# current JOB INDEX: the pod that is that worker now
current() {
    k get pods -l "coxswain.dev/job-name=$1,coxswain.dev/index=$2,coxswain.dev/current=true" -o 'jsonpath={.items[*].metadata.name}'
}

# stamp KIND NAME PATH: a time that the API shows, in seconds
stamp() {
    local time
    time=$(k get "$1" "$2" -o "jsonpath={$3}")
    [[ -n $time ]] && date -d "$time" +%s
}

# replaced JOB INDEX OLD: another pod is that worker, and it runs
replaced() {
    local now
    now=$(current "$1" "$2")
    [[ -n $now && $now != "$3" && $(k get pod "$now" -o 'jsonpath={.status.phase}') == Running ]]
}

# A verdict on all that the operators sent.
operators_judged() {
    local refused
    refused=$(grep -hiE 'forbidden|unknown field|invalid' "$work"/operator-*.log | head -n 3)
    [[ -z $refused ]]
    verdict $? "nothing that the operators sent was refused" "$refused"
}

# ---------------------------------------------------------------- Kueue's view of a job
# workload JOB PATH: a field of its Workload
workload() {
    k get workloads.v1beta2.kueue.x-k8s.io "$1" -o "jsonpath={$2}" 2>/dev/null
}

# workload_condition JOB TYPE [PART]: its status, or another part
workload_condition() {
    workload "$1" ".status.conditions[?(@.type==\"$2\")].${3:-status}"
}

# workload_is JOB TYPE STATUS
workload_is() {
    [[ $(workload_condition "$1" "$2") == "$3" ]]
}

# ---------------------------------------------------------------- what schedulers do
# bind JOB: every pod of it that has no node gets one
bind() {
    local pod
    for pod in $(k get pods -l "coxswain.dev/job-name=$1" --field-selector spec.nodeName= -o 'jsonpath={.items[*].metadata.name}'); do
        kubectl create --raw "/api/v1/namespaces/$space/pods/$pod/binding" -f - >/dev/null 2>&1 <<<"{\"apiVersion\":\"v1\",
            \"kind\":\"Binding\",\"metadata\":{\"name\":\"$pod\"},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"node-0\"}}"
    done
}

# says TYPE STATUS REASON: a condition
says() {
    echo "{\"type\":\"$1\",\"status\":\"$2\",\"reason\":\"$3\",\"message\":\"$3\",\"lastTransitionTime\":\"2026-11-20T14:00:00Z\"}"
}

# kueue CONDITION,… [ADMISSION]: of the Workload of the job `queued`
kueue() {
    kubectl -n "$space" apply --server-side --force-conflicts --subresource=status --field-manager=kueue-admission -f - 2>&1 <<<"{
        \"apiVersion\": \"kueue.x-k8s.io/v1beta2\", \"kind\": \"Workload\", \"metadata\": {\"name\": \"queued\"},
        \"status\": {\"conditions\": [$1]${2:+, \"admission\": $2}}}"
}
