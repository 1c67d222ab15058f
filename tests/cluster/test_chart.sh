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

# The objects that earlier scripts have applied would conflict with Helm's. A TrainingJob of the tests needs a definition.
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
    verdict $? "a user with the role $role: may $verb TrainingJobs? $expected"
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
components: [$deploy/components/network-policies, $deploy/components/replicas, $deploy/components/progress, $deploy/components/sick-nodes]
YAML
why=$(kubectl apply --dry-run=server --validate=strict -k "$overlay" 2>&1)
verdict $? "and its components" "$why"
why=$(kubectl apply --dry-run=server --validate=strict -f deploy/components/network-policies/crews.yaml \
    -f deploy/components/monitoring/service.yaml -n coxswain-system 2>&1)
verdict $? "and what goes with them" "$why"
sed -i "s#^components:.*#components: [$deploy/components/monitoring]#" "$overlay/kustomization.yaml"
grep -q 'kind: ServiceMonitor' <<<"$(kubectl kustomize "$overlay")"
verdict $? "and monitoring"

# ---------------------------------------------------------------- deploy/ is as the chart
# rules: what the roles among the objects on stdin allow, one rule a line: the kind of role, its namespace, the rule
rules() {
    kubectl create --dry-run=client --validate=false -o json -f - | python3 -c '
import json, sys
text, decoder, found = sys.stdin.read().strip(), json.JSONDecoder(), []
while text:
    thing, end = decoder.raw_decode(text)
    text = text[end:].strip()
    found += thing["items"] if thing["kind"] == "List" else [thing]
for role in found:
    for rule in role.get("rules", []):
        rule = json.dumps({key: sorted(value) for key, value in rule.items()}, sort_keys=True)
        print(role["kind"], role["metadata"].get("namespace", ""), rule)' | sort
}
# The chart calls its Lease after the release.
helm template coxswain-operator $chart -n coxswain-system --kube-version 1.29.0 --set watchNamespace=train,rbac.aggregate=false,crds.install=false,test.enabled=false,leaseName=coxswain-operator >"$CLUSTER/chart.yaml"
sed -i "s#^resources:.*#resources: [$deploy/rbac, $deploy/manager]#; s#^components:.*#components: [$deploy/components/one-namespace]#" "$overlay/kustomization.yaml"
kubectl kustomize "$overlay" >"$overlay/objects"
why=$(diff <(rules <"$CLUSTER/chart.yaml") <(rules <"$overlay/objects"))
[[ -z $why ]] && grep -q 'Role train .*pods' < <(rules <"$overlay/objects")
verdict $? "for one namespace, the same Roles as the chart's" "$why"
why=$(grep -E '^kind: (Cluster.*|Namespace|CustomResourceDefinition)$' "$overlay/objects")
[[ -z $why ]] && grep -q -- '- --namespace=train$' "$overlay/objects"
verdict $? "and nothing of the whole cluster" "$why"
why=$(kubectl apply -f "$overlay/objects" 2>&1)
verdict $? "the API server takes it" "$why"
may() { kubectl auth can-i "$1" "$2" -n "$3" --as=system:serviceaccount:coxswain-system:coxswain-operator 2>/dev/null; }
confined() { [[ $(may create pods train) == yes && $(may create pods default) == no && $(may update leases/coxswain-operator coxswain-system) == yes ]]; }
until_true 30 confined
verdict $? "its operator may create pods there and nowhere else" "$(may create pods train) $(may create pods default)"
sed -i "s#^components:.*#components: [$deploy/components/dashboard]#" "$overlay/kustomization.yaml"
# dashboard: the data of the ConfigMap on stdin that is Grafana's
dashboard() { kubectl create --dry-run=client --validate=false -l grafana_dashboard=1 -o 'jsonpath={.data.coxswain\.json}' -f -; }
charts=$(helm template coxswain $chart -n coxswain-system --kube-version 1.29.0 --set metrics.dashboard.enabled=true | dashboard)
ours=$(kubectl kustomize "$overlay" | dashboard)
why=$(diff <(echo "$charts") <(echo "$ours"))
[[ -z $why && $charts == *panels* ]]
verdict $? "the same dashboard as the chart's" "$why"
kubectl delete namespace coxswain-system train --timeout=60s >/dev/null
