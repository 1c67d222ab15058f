#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a real API server and kubectl say of TrainingJob: the verdicts of the corpus, `kubectl explain`, and the same
# verdicts from the embedded control plane. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)
cd "$work" || exit

# shellcheck source=tests/integration/plane.sh
. "$root/tests/integration/plane.sh"

finish() {
    plane_stop
    rm -rf "$work"
}
trap finish EXIT

"$root/tests/cluster/manifest-verdicts"

refused=
for file in "$root"/deploy/examples/*.yaml "$root"/deploy/examples/{foreign,sweeps,volumes,volumes/bucket}/*.yaml \
    "$root"/deploy/examples/{kueue/queued,claims/claims}.yaml; do
    kubectl apply --dry-run=server -f "$file" >/dev/null 2>why || refused+="${file##*/}: $(head -n 1 why); "
done
[[ -z $refused ]]
verdict $? "every example is admitted" "$refused"

kubectl explain tj --recursive >fields
[[ $(grep -c '<' fields) -gt 150 ]]
verdict $? "explain knows every field" "$(grep -c '<' fields) fields"
kubectl explain tj.spec.coxswain.strategy >strategy
grep -q 'DESCRIPTION' strategy && grep -Eq 'type.*<string>.*-required-' strategy && grep -q 'enum:' strategy
verdict $? "explain reads well" "$(head -c 300 strategy | tr '\n' ' ')"
silent=
for field in spec spec.workers spec.parameterServers spec.pytorch spec.coxswain spec.coxswain.strategy spec.runPolicy spec.coxswain.model spec.coxswain.data spec.coxswain.training spec.coxswain.checkpoint spec.storage status \
    status.progress status.restarts; do
    ! kubectl explain "tj.$field" 2>&1 | contains '<no description>' || silent+="$field "
done
[[ -z $silent ]]
verdict $? "every field is described" "$silent"

plane_start
EMBEDDED=1 KUBECONFIG=$work/state/kubeconfig "$root/tests/cluster/manifest-verdicts" >embedded
good=("$root"/tests/corpus/{manifests,sweeps}/good/*.yaml)
manifests=$((${#good[@]} + $(cat "$root"/tests/corpus/{manifests,sweeps}/bad.yaml | grep -c '{at: ')))
! grep '^not ok' embedded && (($(grep -c '^ok' embedded) == manifests))
verdict $? "the embedded control plane gives the same verdicts" \
    "$(grep -c '^not ok' embedded) others, $(grep -c '^ok' embedded) of $manifests the same"
