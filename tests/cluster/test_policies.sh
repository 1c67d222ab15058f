#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The NetworkPolicies of the chart and of deploy/ beside the pods that are really made: do they select them, and do they
# open every port that these pods declare, to whom it is meant for and to nobody else? Run by tests/cluster/check; that
# crews live behind them is shown by tests/e2e/test_policies.sh.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    kubectl -n kube-system delete pod names --ignore-not-found >/dev/null
    kubectl delete namespace elsewhere coxswain-system $space --ignore-not-found --timeout=180s >/dev/null
    rm -rf "$work"
}
trap finish EXIT

cluster_prepare || { echo "not ok preparation"; exit 1; }
cluster_operator_start

# idle NAMESPACE NAME LABELS: a pod of nobody's, played
idle() {
    kubectl create -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1, labels: {$3}}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers: [{name: idle, image: none, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
YAML
}

# A crew of each strategy with ports of its own, and strangers.
played_job crew 2 '{}' >/dev/null
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: servers}
spec:
  workers: {replicas: 1}
  chief: {}
  parameterServers: {replicas: 1}
  coxswain:
    strategy: {type: ParameterServer}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: "0.1"}}
YAML
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: torch}
spec:
  image: torch
  workers: {replicas: 2}
  pytorch: {}
YAML
for job in crew servers torch; do
    k wait tj/$job --for=condition=Running --timeout=180s >/dev/null
    verdict $? "the pods of $job are made" "$(status_of $job conditions)"
done
idle $space passer-by ""
kubectl create namespace elsewhere >/dev/null
until_true 30 kubectl -n elsewhere get serviceaccount default >/dev/null 2>&1
idle elsewhere impostor "coxswain.dev/job-uid: x, app.kubernetes.io/name: coxswain, app.kubernetes.io/component: operator,
  app.kubernetes.io/instance: coxswain"
idle kube-system names "k8s-app: kube-dns"

members() {
    k get pods -l coxswain.dev/job-uid -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'
}

ports_of() {
    k get pod "$1" -o 'jsonpath={range .spec.containers[*].ports[*]}{.containerPort}{"\n"}{end}'
}

# questions OPERATOR [API_SERVER]: prints which connections must be possible, and which must not. With the API server's
# address, no other address may be reached at its ports.
questions() {
    local member port protocol peer=
    for member in $(members); do
        for port in $(ports_of "$member"); do
            if ((port == 8080)); then
                echo "yes $1 $space/$member 8080 the operator polls workers"
                echo "no $1 $space/$member 2222 and does not join them"
            else
                [[ -z $peer ]] || echo "yes $space/$peer $space/$member $port workers reach each other at $port"
            fi
            echo "no $space/passer-by $space/$member $port a stranger does not reach them at $port"
            echo "no elsewhere/impostor $space/$member $port nor one of another namespace at $port"
        done
        for port in 23456 40123; do
            [[ -z $peer ]] || echo "yes $space/$peer $space/$member $port and at ports that PyTorch and NCCL take"
            echo "no $space/passer-by $space/$member $port and nobody else there"
        done
        for protocol in UDP TCP; do
            echo "yes $space/$member kube-system/names 53/$protocol workers ask for names"
            echo "no $space/$member 203.0.113.7 53/$protocol and nobody in the world"
            echo "no $space/$member $space/passer-by 53/$protocol nor a stranger"
        done
        echo "no $space/$member kube-system/names 443 and for nothing else there"
        echo "no $space/$member 10.96.0.1 443 and do not reach the API server"
        echo "yes $space/$member $1 8443 workers send the operator their progress"
        echo "no $space/$member $1 8081 and reach nothing else of it"
        peer=$member
    done
    for port in 443 6443; do echo "yes $1 10.96.0.1 $port the operator reaches the API server at $port"; done
    for protocol in UDP TCP; do
        echo "yes $1 kube-system/names 53/$protocol and asks for names"
        echo "no $1 203.0.113.7 53/$protocol but nobody in the world"
    done
    [[ -z ${2:-} ]] || echo "no $1 203.0.113.7 443 and nobody else at the API server's ports"
    echo "no $1 $space/passer-by 8080 and talks to no stranger"
    echo "yes elsewhere/impostor $1 8080 anybody reads its metrics"
    echo "no elsewhere/impostor $1 8081 and nothing else of it"
}

# An operator's pod as the chart, or deploy/, makes it.
operator_pod() {
    kubectl -n coxswain-system get pods -l app.kubernetes.io/component=operator --field-selector=status.phase=Running \
        -o 'jsonpath={.items[0].metadata.name}' 2>/dev/null | grep .
}
# policies_judged NAME [API_SERVER]
policies_judged() {
    until_true 60 operator_pod >/dev/null
    verdict $? "an operator's pod by $1" "$(kubectl -n coxswain-system get all)"
    questions "coxswain-system/$(operator_pod)" "${2:-}" | "$root/tests/cluster/policies.py" ask | sed -E "s#^(ok|not ok) #&$1: #"
    kubectl delete networkpolicies --all -n $space >/dev/null
    kubectl delete networkpolicies,deployments,pods --all -n coxswain-system --timeout=120s >/dev/null
}

helm template coxswain "$root/charts/coxswain" -n coxswain-system --kube-version 1.29.0 --set crds.install=false,rbac.aggregate=false,test.enabled=false,progress.enabled=true \
    --set networkPolicy.operator.enabled=true,networkPolicy.operator.apiServerTo[0].ipBlock.cidr=10.96.0.1/32 \
    --set networkPolicy.crews.enabled=true,networkPolicy.crews.namespaces="{$space}" |
    kubectl apply -f - >/dev/null
policies_judged "the chart" 10.96.0.1

mkdir "$work/overlay"
deploy=$(realpath --relative-to="$work/overlay" "$root/deploy")
cat >"$work/overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$deploy]
components: [$deploy/components/network-policies, $deploy/components/progress]
YAML
kubectl apply -k "$work/overlay" >/dev/null
kubectl apply -n $space -f "$root/deploy/components/network-policies/crews.yaml" >/dev/null
policies_judged "deploy/"
