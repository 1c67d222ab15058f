#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two nodes: crews that want to be apart, a drain that moves pods, a node that hangs and one that is cut off. Each time the
# pods come up on the other node, and the job ends with the weights of an undisturbed run. Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

# Leaves a node that says nothing after five seconds, not five minutes.
impatient="{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5},
  {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}"
# One on each node, as long as there are two that take pods.
spread() {
    echo "tolerations: [$impatient], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname,
      whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor,
      labelSelector: {matchLabels: {coxswain.dev/job-name: $1, coxswain.dev/current: \"true\"}}}]"
}

install --set-json 'affinity={"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,
    "podAffinityTerm":{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app.kubernetes.io/component":"operator"}}}}]}}' \
    --set-json "tolerations=[$(sed 's/\([a-zA-Z][a-zA-Z./-]*\)/"\1"/g' <<<"$impatient")]"
operators_apart() {
    [[ $(kubectl -n coxswain-system get pods -l app.kubernetes.io/component=operator -o 'jsonpath={.items[*].spec.nodeName}' |
        tr ' ' '\n' | sort -u | wc -l) == 2 ]]
}
until_true 60 operators_apart
verdict $? "operators stand apart by the chart's affinity"

claim runs "$CLUSTER/volumes/runs"
steps=${E2E_STEPS:-3000}
training still "$steps" runs "" "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
  {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {coxswain.dev/job-name: still}}}]}}"
until_true 120 apart still
verdict $? "anti-affinity puts a crew on two nodes" "$(k get pods -o wide)"
succeeds still "where it trains undisturbed"

# ---------------------------------------------------------------- drained
training moving "$steps" runs 100m "$(spread moving)"
witness moving
until_true 120 apart moving
verdict $? "a topology spread puts a crew on two nodes" "$(k get pods -o wide)"
whole moving "and the crew trains"

lost=$(node_of moving 1) other=$(node_of moving 0) old=$(current moving 1)
kubectl drain "$lost" --ignore-daemonsets --delete-emptydir-data --force --timeout=400s >drain.log 2>&1
verdict $? "a whole node is drained, an operator with it" "$(tail -n 3 drain.log | tr '\n' ' ')"
renewed moving 1 "$old" "its worker is made good"
is_on moving 1 "$other"
verdict $? "on the other node" "$(k get pods -o wide)"
kubectl uncordon "$lost" >/dev/null
old=$(current moving 1)
k delete pod "$old" --wait=false >/dev/null
renewed moving 1 "$old" "pods deleted once the node is back"
until_true 60 is_on moving 1 "$lost"
verdict $? "are spread again" "$(k get pods -o wide)"

# ---------------------------------------------------------------- hung
gone() {
    ! k get pod "$1" >/dev/null 2>&1
}
lost=$(node_of moving 1) other=$(other_node "$lost") old=$(current moving 1)
node_freeze "$lost"
node_cut "$lost"
until_true 120 node_is "$lost" Unknown
verdict $? "a node hangs" "$(kubectl get nodes)"
renewed moving 1 "$old" "its worker is made good without it"
is_on moving 1 "$other"
verdict $? "on the other node" "$(k get pods -o wide)"
until_true 120 gone "$old"
verdict $? "the pod that cannot end is taken out of the API" "$(k get pods -o wide)"
grep -q "pod $old did not end" < <(k get events -o 'jsonpath={range .items[?(@.reason=="PodForceDeleted")]}{.message}{"\n"}{end}')
verdict $? "an event says why" "$(k get events | grep -i force)"
[[ -n $(worker_processes moving 1 "${old##*-}") ]]
verdict $? "while its process is still there"
node_join "$lost"
node_thaw "$lost"
until_true 120 node_is "$lost" True
verdict $? "the node wakes" "$(kubectl get nodes)"
no_process() { [[ -z $(worker_processes "$@") ]]; }
until_true 120 no_process moving 1 "${old##*-}"
verdict $? "and ends what has been replaced" "$(worker_processes moving 1 "${old##*-}")"
whole moving "the crew trains on"

# ---------------------------------------------------------------- cut off
old=$(current moving 0)
k delete pod "$old" --wait=false >/dev/null
renewed moving 0 "$old" "the chief moves"
until_true 60 is_on moving 0 "$lost"
verdict $? "to the node that woke" "$(k get pods -o wide)"
old=$(current moving 0)
node_cut "$lost"
until_true 120 node_is "$lost" Unknown
verdict $? "a node is cut off, the chief on it" "$(kubectl get nodes)"
[[ -n $(worker_processes moving 0 "${old##*-}") ]]
verdict $? "which lives on, with the volume"
renewed moving 0 "$old" "another chief takes over"
is_on moving 0 "$other"
verdict $? "on the other node" "$(k get pods -o wide)"
node_join "$lost"
until_true 120 node_is "$lost" True
verdict $? "the node is back" "$(kubectl get nodes)"
until_true 120 no_process moving 0 "${old##*-}"
verdict $? "and ends the old chief" "$(worker_processes moving 0 "${old##*-}")"

hasten
succeeds moving "the job succeeds"
testify moving "every status told what the pods were"
[[ $(status_of moving restarts.failures) == 0 || -z $(status_of moving restarts.failures) ]]
verdict $? "nothing of it was a failure" "$(status_of moving restarts)"
cmp "$CLUSTER/volumes/runs/"{still,moving}/model.safetensors
verdict $? "with the weights of the undisturbed run"
uninstall
