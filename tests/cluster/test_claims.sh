#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Devices by resource claims (dynamic resource allocation): deploy/examples/claims with the real API server, scheduler and
# claim controller. The driver's ResourceSlices are made by this script: two devices on each of two nodes of KWOK. Run by
# tests/cluster/check.
# shellcheck source=tests/cluster/cluster.sh
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    kubectl delete resourceslices gpus-node-0 gpus-node-1 >/dev/null 2>&1
    kubectl delete deviceclass gpu.nvidia.com >/dev/null 2>&1
    rm -rf "$work"
}
trap finish EXIT

if ! kubectl api-resources --api-group=resource.k8s.io -o name 2>/dev/null | contains resourceslices; then
    echo "skip resource claims: this API server does not serve resource.k8s.io"
    exit 0
fi

# devices_of NODE: two, as a driver would list them
devices_of() {
    kubectl apply -f - <<YAML
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus-$1}
spec:
  driver: gpu.nvidia.com
  nodeName: $1
  pool: {name: $1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {type: {string: gpu}}}, {name: gpu-1, attributes: {type: {string: gpu}}}]
YAML
}

cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start
until_true 60 leader >/dev/null
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: device.driver == "gpu.nvidia.com"}}]}
YAML
devices_of node-0 >/dev/null
k apply -f "$root/deploy/examples/claims" >"$work/applied" 2>&1
verdict $? "the example is accepted" "$(<"$work/applied")"
until_true 60 pods_are claims 2
[[ $(k get pod "$(current claims 0)" -o 'jsonpath={.spec.containers[0].resources}') == '{"claims":[{"name":"gpus"}]}' ]]
verdict $? "a pod with a claim requests no extended resource" "$(k get pod "$(current claims 0)" -o 'jsonpath={.spec.containers[0].resources}')"

# waits: one worker has both devices of the only node that has some, the other none
waits() {
    "$bin/cox" why claims -n "$space" 2>/dev/null | contains -i "claim"
}
until_true 60 waits
verdict $? "cox why says that a worker waits for devices" "$("$bin/cox" why claims -n "$space" 2>&1)"
devices_of node-1 >/dev/null
expect claims state Running
verdict $? "with devices on a second node the crew runs" "$(k get pods,resourceclaims -o wide 2>&1)"
[[ $(printf '%s\n' "$(node_of claims 0)" "$(node_of claims 1)" | sort | xargs) == "node-0 node-1" ]]
verdict $? "each worker is on the node whose devices it has" "$(node_of claims 0) $(node_of claims 1)"
old=$(current claims 1)
k delete pod "$old" --wait=false >/dev/null
until_true 90 replaced claims 1 "$old"
verdict $? "a worker that replaces a lost one gets its devices by a claim of its own" "$(k get pods,resourceclaims -o wide 2>&1)"
k delete tj claims >/dev/null
none_left() { [[ -z $(k get resourceclaims -o name) ]]; }
until_true 90 none_left
verdict $? "no claim is left behind by a deleted job" "$(k get resourceclaims 2>&1)"
operators_judged
