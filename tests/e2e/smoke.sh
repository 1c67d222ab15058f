#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The least that shows that images, chart, operator and workers fit together on real nodes: installed, a crew that loses a
# pod and a drained node, weights at the end. Run by `make check-e2e-smoke`, for where a whole tests/e2e/check takes too long.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

# After a failure nothing more is to be learnt here.
eval "said_$(declare -f verdict)"
verdict() {
    said_verdict "$@"
    (($1 == 0)) || exit 1
}

install
claim runs "$CLUSTER/volumes/runs"
training brief "${E2E_STEPS:-1500}" runs 100m
whole brief "a crew trains"
old=$(current brief 1)
k delete pod "$old" --wait=false >/dev/null
renewed brief 1 "$old" "a worker's pod deleted"
node=$(node_of brief 0) old=$(current brief 0)
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --force --pod-selector=coxswain.dev/job-name=brief \
    --timeout=300s >drain.log 2>&1
verdict $? "the chief's node drained" "$(tail -n 3 drain.log | tr '\n' ' ')"
renewed brief 0 "$old" "the chief is made good"
is_on brief 0 "$(other_node "$node")"
verdict $? "on the other node" "$(k get pods -o wide)"
hasten
succeeds brief "the job succeeds"
[[ -s $CLUSTER/volumes/runs/brief/model.safetensors ]]
verdict $? "and leaves its weights"
uninstall
