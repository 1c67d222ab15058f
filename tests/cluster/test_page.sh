#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The page of `cox ui` on a real control plane, in a headless Chromium: as a user who may edit one namespace, as one who may only look at it,
# and as one whose credentials are no longer valid. KWOK's pods have no logs. Without a browser the test is skipped. Run by
# tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${BUILD:-$root/build}" && pwd)
work=$(mktemp -d)
pages=()

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

if ! CI=true "$root/scripts/dependencies" ensure page >/dev/null 2>&1 || ! "$root/scripts/dependencies" report page >/dev/null; then
    echo "skip page: there is no Chromium with its driver and Selenium here: scripts/dependencies report page says what is missing"
    exit 0
fi

finish() {
    ((${#pages[@]} == 0)) || kill "${pages[@]}" 2>/dev/null
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

if ! cluster_prepare || ! person_kubeconfig editor edit >"$work/editor" || ! person_kubeconfig viewer view >"$work/viewer"; then
    echo "not ok preparation"
    exit 1
fi
cluster_operator_start
may_edit() { kubectl auth can-i create trainingjobs -n "$space" --as="system:serviceaccount:$space:editor" >/dev/null 2>&1; }
may_view() { kubectl auth can-i watch trainingsweeps -n "$space" --as="system:serviceaccount:$space:viewer" >/dev/null 2>&1; }
until_true 60 may_edit && until_true 60 may_view
verdict $? "one user may edit the namespace, one may look at it"

played_job steady 2 '{backoffLimit: 2}' >/dev/null
bounds='minReplicas: 1, maxReplicas: 4, ' played_job grows 2 '{backoffLimit: 2}' >/dev/null
played_job ends 1 '{backoffLimit: 0}' 3 1s >/dev/null
plain_job nowhere 'backoffLimit: 2' 'nodeSelector: {no: such-node}'
k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: rates}
spec:
  parallelism: 2
  algorithm: {type: Grid}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1, 0.2]}]
  template:
    workers: {template: {metadata: {annotations: {test.coxswain.dev/exit-code: "0", test.coxswain.dev/runs-for: 2s}}}}
    coxswain:
      strategy: {type: OneDevice}
      model: {preset: mlp}
      data: {format: Synthetic, examples: 1000}
      training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: 0.1}}
YAML
expect steady readySummary 2/2 && expect grows readySummary 2/2

# page_of PERSON [OPTION…]: prints the URL of a page with that person's rights
page_of() {
    HOME=$work KUBECONFIG=$work/$1 "$bin/cox" ui "${@:2}" >"$work/$1.log" 2>&1 &
    pages+=($!)
    until_true 20 grep -q 'token=' "$work/$1.log"
}
page_of editor
page_of viewer
url_of() { grep -o 'http://.*' "$work/$1.log"; }
mkdir -p "$bin/page"
cd "$work" || exit 1
SPACE=$space SHOTS=$bin/page PYTHONPATH=$root/tests/page PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$root/tests/page/cluster.py" "$(url_of editor)" "$(url_of viewer)"
operators_judged
