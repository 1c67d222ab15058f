#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Progress over HTTPS with a real API server and the rights of deploy/components/progress: the operator's Secret, the EndpointSlice of
# the operator that acts, a report in the name of a played pod, and the same token with the second operator. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

system() {
    kubectl -n coxswain-system "$@"
}

finish() {
    cluster_operators_end
    system delete -f "$root/deploy/components/progress/role.yaml" -f "$root/deploy/components/progress/role_binding.yaml" \
        -f "$root/deploy/components/progress/service.yaml" --ignore-not-found >/dev/null
    system delete secret,endpointslice coxswain-progress --ignore-not-found >/dev/null
    kubectl delete namespace coxswain-system $space --ignore-not-found --timeout=180s >/dev/null
    rm -rf "$work"
}
trap finish EXIT

cluster_prepare || { echo "not ok preparation"; exit 1; }
system apply -f "$root/deploy/components/progress/role.yaml" -f "$root/deploy/components/progress/role_binding.yaml" \
    -f "$root/deploy/components/progress/service.yaml" >/dev/null || { echo "not ok preparation"; exit 1; }

# operator_with ADDRESS: its own, at which it listens
operator_with() {
    COXSWAIN_POD_IP=$1 "$bin/coxswain-operator" --kubeconfig "$work/operator.kubeconfig" --leader-elect \
        --lease-namespace coxswain-system --progress-address "$1:18443" --progress-service coxswain-progress \
        >"$work/operator-${#operators[@]}.log" 2>&1 &
    operators+=($!)
}

slice_has() {
    [[ $(system get endpointslice coxswain-progress -o 'jsonpath={.endpoints[*].addresses[*]} {.ports[0].port}') == "$1 18443" ]]
}

variable() {
    k get pod "$(current reporter 0)" -o "jsonpath={.spec.containers[0].env[?(@.name==\"$1\")].value}"
}

# report ADDRESS PERCENT: in the name of the pod
report() {
    local url
    url=$(variable KUBEFLOW_TRAINER_SERVER_URL)
    curl -sS --cacert "$work/ca.crt" -H "Authorization: Bearer $(cat "$work/token")" \
        --resolve "coxswain-progress.coxswain-system.svc:18443:$1" -d "{\"trainerStatus\":{\"progressPercentage\":$2}}" "$url" 2>&1
}

file_of_secret() {
    k get secret -o json | python3 -c 'import base64, json, sys
for secret in json.load(sys.stdin)["items"]:
    if secret["metadata"]["name"].startswith("reporter-progress-"):
        print(base64.b64decode(secret["data"][sys.argv[1]]).decode(), end="")' "$1"
}

own=$(hostname -I | cut -d ' ' -f 1)
operator_with "$own"
until_true 60 slice_has "$own"
verdict $? "the operator that acts writes itself into the EndpointSlice" "$(cat "$work"/operator-*.log)"
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: reporter}
spec:
  image: torch
  workers: {replicas: 1}
  pytorch: {progress: {push: true}}
YAML
expect reporter state Running
file_of_secret token >"$work/token" && file_of_secret ca.crt >"$work/ca.crt"
[[ $(report "$own" 30) == *reported* ]] && expect reporter progress.percent 30
verdict $? "a report reaches the job's status" "$(report "$own" 30; cat "$work"/operator-*.log)"

kill -KILL "${operators[0]}"
operator_with "$own"
until_true 60 grep -q 'listening for progress that scripts send' "$work/operator-1.log" && [[ $(report "$own" 60) == *reported* ]] &&
    expect reporter progress.percent 60
verdict $? "the next operator takes the same token" "$(report "$own" 60; cat "$work/operator-1.log")"
