# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $bin, $root and $work are the caller's
#
# The embedded control plane and an operator, for scripts that source this file: start, stop, ask. The caller sets `bin`
# (the build directory), `root` (the sources) and `work` (a directory of its own, which is also the working directory), as
# scene.sh does.

# shellcheck source=tests/integration/verdict.sh
. "${BASH_SOURCE[0]%/*}/verdict.sh"
jobs_path=apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs
pods_path=api/v1/namespaces/default/pods
operator=
standalone=

# plane_start [OPTION…]: serves once this returns
plane_start() {
    "$bin/coxswain-standalone" --state "$work/state" --crd "$root/deploy/crd" "$@" >>standalone.log 2>&1 &
    standalone=$!
    plane_await 10
}

# plane_await SECONDS: waits until a plane with its state in `state` serves; `api` then sends requests to it
plane_await() {
    until_true "$1" test -s state/kubeconfig || return
    server=$(sed -n 's/^ *server: //p' state/kubeconfig)
    token=$(sed -n 's/^ *token: //p' state/kubeconfig)
    sed -n 's/^ *certificate-authority-data: //p' state/kubeconfig | base64 -d >ca.pem
}

# operator_start [KUBECONFIG [OPTION…]]
operator_start() {
    "$bin/coxswain-operator" --kubeconfig "${1:-$work/state/kubeconfig}" "${@:2}" >>operator.log 2>&1 &
    operator=$!
}

operator_kill() {
    kill -KILL "$operator"
    wait "$operator" 2>/dev/null
}

# metric NAME: its value, as the operator tells it at the port that stands in its log
metric() {
    local port
    port=$(sed -n 's/.*serving metrics.*port[^0-9]*\([0-9]*\).*/\1/p' operator.log | tail -n 1)
    curl -s "http://127.0.0.1:$port/metrics" | sed -n "s/^$1 //p"
}

plane_stop() {
    # shellcheck disable=SC2086 # either may be unset
    kill $operator $standalone 2>/dev/null
    wait
}

# api METHOD PATH [BODY]
api() {
    local type=application/json
    [[ $1 == PATCH ]] && type=application/merge-patch+json
    curl -sS --cacert ca.pem -H "Authorization: Bearer $token" -H "Content-Type: $type" -X "$1" \
        ${3:+--data-binary "$3"} "$server/$2"
}

# field JOB NAME: a scalar of the job's status, read from its JSON
field() {
    if [[ $2 == state ]]; then # the first condition that is True
        api GET "$jobs_path/$1" | tr -d '\n' | grep -o '"type": *"[A-Za-z]*", *"status": *"True"' | head -n 1 | cut -d '"' -f 4
        return
    fi
    api GET "$jobs_path/$1" | tr -d '\n' | sed -n "s/.*\"status\": *{.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

field_is() {
    now=$(field "$1" "$2")
    [[ $now == "$3" ]]
}

# job_says JOB PATTERN: somewhere in its object
job_says() {
    api GET "$jobs_path/$1" | contains "$2"
}

# wait_for JOB FIELD VALUE [SECONDS]
wait_for() {
    local now
    until_true "${4:-15}" field_is "$1" "$2" "$3" && return
    echo "# $1: $2 is '$now', not '$3'"
    return 1
}

# job NAME RUN_POLICY WORKERS SCRIPT [LABELS [SPEC]]: applies a job with pods that run a shell script; SPEC is more of
# their template's spec, ended by a comma. The caller may set suspend, and checkpoint to an object
job() {
    api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\",\"labels\":${5:-{\}}},
        \"spec\":{\"suspend\":${suspend:-false},\"runPolicy\":$2,
        \"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},
            \"model\":{\"preset\":\"mlp\"},\"data\":{\"format\":\"Synthetic\",\"examples\":1000},
            \"training\":{\"steps\":10,\"batchSize\":100,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":0.1}}${checkpoint:+,\"checkpoint\":$checkpoint}},
        \"workers\":{\"replicas\":$3,\"template\":{\"spec\":{${6:-}\"containers\":[{\"name\":\"trainer\",
        \"readinessProbe\":null,\"command\":[\"/bin/sh\",\"-c\",\"$4\"]}]}}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

# pods JOB [SELECTOR]: their names
pods() {
    api GET "$pods_path?labelSelector=coxswain.dev/job-name%3D$1${2:+,$2}" |
        tr -d '\n' | grep -o "\"name\": *\"$1-worker-[0-9]*-[0-9]*\"" | sed 's/.*"\('"$1"'[^"]*\)"/\1/' | sort -u
}

no_pods_of() {
    [[ -z $(pods "$1") ]]
}

# member JOB INDEX: the name of the current pod of that worker
member() {
    pods "$1" "coxswain.dev/current=true,coxswain.dev/index=$2" | tail -n 1
}

# process_of POD: the process that is its container, nothing when it does not run
process_of() {
    api GET "$pods_path/$1" | tr -d '\n' | grep '"running": *{' | sed -n 's/.*process:\/\/\([0-9]*\).*/\1/p'
}

address_of() {
    api GET "$pods_path/$1" | tr -d '\n' | sed -n 's/.*"podIP": *"\([^"]*\)".*/\1/p'
}

log_of() {
    api GET "$pods_path/$1/log"
}
