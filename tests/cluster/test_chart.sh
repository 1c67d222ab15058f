#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Helm chart and deploy/ before a real API server: every set of values of scripts/check-chart, install, upgrade,
# test's objects, uninstall. Run by tests/cluster/check.
# shellcheck disable=SC2086 # options are several words
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit

. tests/integration/verdict.sh
chart=charts/coxswain
for space in coxswain-system train; do
    kubectl get namespace $space >/dev/null 2>&1 || kubectl create namespace $space >/dev/null
done
kubectl label namespace coxswain-system train pod-security.kubernetes.io/enforce=restricted >/dev/null

# What scripts before this one have applied would be in Helm's way. The tests' TrainingJob is only understood once there is a
# definition.
kubectl delete -f deploy/crd >/dev/null 2>&1
kubectl delete -k deploy/rbac >/dev/null 2>&1
helm template coxswain $chart -n coxswain-system --kube-version 1.29.0 | kubectl delete --ignore-not-found -f - >/dev/null 2>&1
older=$CLUSTER/older # a chart from before one of the blocks of values
cp -r $chart "$older"
sed -i '/^  podMonitor:/,/^  dashboard:/{/^  dashboard:/!d}' "$older/values.yaml"
why=$(helm install coxswain "$older" -n coxswain-system --set podLabels.kept=yes --wait --timeout 120s 2>&1)
verdict $? "helm install" "$why"
for space in coxswain-system train; do kubectl -n $space create serviceaccount other-coxswain-test >/dev/null; done
while read -r name options; do
    why=$(helm template other $chart -n coxswain-system $options --set crds.install=false --kube-version 1.29.0 |
        kubectl apply --dry-run=server --validate=strict -f - 2>&1)
    verdict $? "the API server takes $name" "$(grep -i error <<<"$why" | tr '\n' ' ')"
    ! grep -i 'warning' <<<"$why" | grep -vq 'last-applied-configuration'
    verdict $? "and warns of nothing"
done < <(scripts/check-chart sets)

available() {
    [[ $(kubectl -n coxswain-system get deployment coxswain -o 'jsonpath={.status.readyReplicas}' 2>&1) == "$1" ]]
}
why=$(helm upgrade coxswain $chart -n coxswain-system --reset-then-reuse-values --set replicas=3 --wait --timeout 120s 2>&1)
verdict $? "helm upgrade from an older chart" "$why"
[[ $(helm get values coxswain -n coxswain-system --all) == *podMonitor* &&
    $(kubectl -n coxswain-system get deployment coxswain -o 'jsonpath={.spec.template.metadata.labels.kept}') == yes ]]
verdict $? "it has what is new, and keeps what was set"
why=$(helm upgrade coxswain "$older" -n coxswain-system --reset-then-reuse-values --wait --timeout 120s 2>&1 &&
    helm upgrade coxswain $chart -n coxswain-system --reuse-values --wait --timeout 120s 2>&1)
verdict $? "helm upgrade with the older chart's values alone" "$why"
until_true 90 available 3
verdict $? "three replicas under the restricted level"
[[ $(kubectl -n coxswain-system get pdb coxswain -o 'jsonpath={.spec.maxUnavailable}') == 1 ]]
verdict $? "a disruption budget with them"

why=$(helm rollback coxswain -n coxswain-system --wait --timeout 120s 2>&1)
verdict $? "helm rollback" "$why"

for user in "view get yes" "view create no" "edit create yes" "edit delete yes"; do
    read -r role verb expected <<<"$user"
    kubectl -n train create rolebinding "$role" --clusterrole="$role" --user="$role" >/dev/null 2>&1
    allowed() { [[ $(kubectl -n train auth can-i "$verb" trainingjobs --as="$role" 2>/dev/null) == "$expected" ]]; }
    until_true 30 allowed
    verdict $? "who may $role: may $verb TrainingJobs? $expected"
done

why=$(helm uninstall coxswain -n coxswain-system --wait --timeout 120s 2>&1)
verdict $? "helm uninstall" "$why"
kubectl get crd trainingjobs.coxswain.dev >/dev/null
verdict $? "the definition stays"

why=$(kubectl apply --dry-run=server --validate=strict -k deploy 2>&1)
verdict $? "the API server takes deploy/" "$why"
overlay=$CLUSTER/overlay
deploy=$(realpath --relative-to="$overlay" deploy)
mkdir "$overlay"
cat >"$overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$deploy]
components: [$deploy/components/network-policies, $deploy/components/replicas]
YAML
why=$(kubectl apply --dry-run=server --validate=strict -k "$overlay" 2>&1)
verdict $? "and its components" "$why"
why=$(kubectl apply --dry-run=server --validate=strict -f deploy/components/network-policies/crews.yaml \
    -f deploy/components/monitoring/service.yaml -n coxswain-system 2>&1)
verdict $? "and what goes with them" "$why"
sed -i "s#^components:.*#components: [$deploy/components/monitoring]#" "$overlay/kustomization.yaml"
grep -q 'kind: ServiceMonitor' <<<"$(kubectl kustomize "$overlay")"
verdict $? "and monitoring"
kubectl delete namespace coxswain-system train --timeout=60s >/dev/null
