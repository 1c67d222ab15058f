#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the chart's NetworkPolicies, enforced on every node (tests/cluster/policies.py): a crew forms, loses a pod, trains
# on and is polled, while other pods get no answer. Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

api_port=$(kubectl config view -o 'jsonpath={.clusters[0].cluster.server}' | sed 's/.*://')
control=10.77.0.1 # the API server's and CoreDNS's, which is no pod here
install --set networkPolicy.operator.enabled=true,networkPolicy.operator.apiServerPorts="{443,$api_port}" \
    --set networkPolicy.operator.apiServerTo[0].ipBlock.cidr=$control/32 \
    --set networkPolicy.dnsTo[0].ipBlock.cidr=$control/32 \
    --set networkPolicy.crews.enabled=true,networkPolicy.crews.namespaces="{$space}"

# stranger NAME NAMESPACE LABELS: a pod that does nothing by itself
stranger() {
    kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $2, labels: {$3}}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: idle
    image: localhost/coxswain-worker-cpu:test
    command: [sleep, "86400"]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
YAML
    kubectl -n "$2" wait "pod/$1" --for=condition=Ready --timeout=240s >/dev/null
}

# reaches NAMESPACE POD ADDRESS PORT: a connection from that pod's first container to there
reaches() {
    timeout 60 kubectl -n "$1" exec "$2" -- timeout 5 bash -c ": <>/dev/tcp/$3/$4" >/dev/null 2>&1
}

reaches_not() {
    ! reaches "$@"
}

address_of() {
    k get pod "$(current "$1" "$2")" -o 'jsonpath={.status.podIP}'
}

claim runs "$CLUSTER/volumes/runs"
training guarded "${E2E_STEPS:-3000}" runs 100m
stranger passer-by $space ""
kubectl create namespace elsewhere >/dev/null
stranger impostor elsewhere "coxswain.dev/job-uid: x, app.kubernetes.io/name: coxswain, app.kubernetes.io/component: operator,
  app.kubernetes.io/instance: coxswain"
whole guarded "a crew trains, its policies are not enforced yet"
chief=$(address_of guarded 0)
for port in 2222 2223 8080; do
    until_true 20 reaches $space passer-by "$chief" $port
    verdict $? "anybody reaches port $port of the chief"
done

enforce=("$root/tests/cluster/policies.py" enforce)
for node in $(nodes); do enforce+=(/proc/"$(<"$CLUSTER/nodes/$node/init")"/ns/net); done
"${enforce[@]}" >enforce.log 2>&1 &
in_background+=($!)
for port in 2222 2223 8080; do
    until_true 20 reaches_not $space passer-by "$chief" $port
    verdict $? "enforced: a pod of no crew does not reach port $port"
    reaches_not elsewhere impostor "$chief" $port
    verdict $? "a pod of another namespace with the labels of crew and operator does not reach port $port"
done
whole guarded "the crew trains on, and the operator sees it"

for index in 1 0; do
    old=$(current guarded $index)
    k delete pod "$old" --wait=false >/dev/null
    renewed guarded $index "$old" "worker $index is replaced behind the policies"
done
member=$(current guarded 1)
reaches_not $space "$member" "${KUBERNETES_ADDRESS:-10.77.0.1}" "$api_port"
verdict $? "a worker does not reach the API server"
k exec "$member" -- getent hosts guarded-worker-0.guarded >/dev/null
verdict $? "but finds names"
operator=$(kubectl -n coxswain-system get pods -l app.kubernetes.io/component=operator -o 'jsonpath={.items[0].status.podIP}')
reaches elsewhere impostor "$operator" 8080
verdict $? "metrics of the operator are for everybody"

hasten
succeeds guarded "the job succeeds behind its policies"
[[ $(status_of guarded progress.lastCheckpointStep) -gt 0 ]] && ! grep -q Traceback enforce.log
verdict $? "and they were enforced all along" "$(tail -n 3 enforce.log)"
kubectl delete namespace elsewhere --timeout=120s >/dev/null
k delete pod passer-by >/dev/null
uninstall
