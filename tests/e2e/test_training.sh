#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Training on a real node, and everything that ends pods there: each time the job completes, with the weights of a run that
# nothing disturbed, and its status never says what is not so. Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

# ---------------------------------------------------------------- installed
install
why=$(helm test coxswain -n coxswain-system --timeout 400s 2>&1)
verdict $? "helm test: a job learns" "$why"

claim runs "$CLUSTER/volumes/runs"
if [[ -d ${COXSWAIN_DATA:-/none}/mnist ]]; then
    claim digits "$CLUSTER/volumes/digits"
    cp -r "$COXSWAIN_DATA/mnist" "$CLUSTER/volumes/digits/"
    k apply -f "$root/deploy/examples/digits.yaml" >/dev/null
    k wait tj/digits --for=condition=Succeeded --timeout=600s >/dev/null
    verdict $? "the example digits learns" "$(k get tj digits -o 'jsonpath={.status.conditions}')"
    [[ -s $CLUSTER/volumes/runs/digits/model.safetensors ]]
    verdict $? "and leaves its weights"
    grep -q accuracy < <(k logs digits-worker-0-1)
    verdict $? "and says how well"
else
    echo "skip the example digits: COXSWAIN_DATA has no mnist"
fi

# ---------------------------------------------------------------- undisturbed
steps=${E2E_STEPS:-4000}
training calm "$steps" runs
succeeds calm "an undisturbed run"

# ---------------------------------------------------------------- disturbed
# Every status that the job ever had.
watch_status() {
    while :; do
        k get tj rough --watch --request-timeout=0 -o \
            'jsonpath={.status.conditions[?(@.type=="Failed")].status} {.status.controllerState.incarnation} {.status.restarts.failures} {.status.restarts.disruptions}{"\n"}' 2>/dev/null
        sleep 0.5
    done
}
training rough "$steps" runs 100m
witness rough
watch_status >seen &
watcher=$!
in_background+=("$watcher")
until_true 180 stepped rough 100
verdict $? "the job to be disturbed trains" "$(k get pods)"

old=$(current rough 1)
k delete pod "$old" --wait=false >/dev/null
renewed rough 1 "$old" "a worker's pod deleted"
old=$(current rough 0)
k delete pod "$old" --wait=false >/dev/null
renewed rough 0 "$old" "the chief's pod deleted"

old=$(current rough 1)
process=$(worker_process rough 1) && kill -KILL "$process"
verdict $? "a container killed"
until_true 60 status_is rough restarts.failures 1
verdict $? "counts as a failure" "$(status_of rough restarts)"
renewed rough 1 "$old" "and is made good"

old=$(current rough 1)
process=$(leading_process) && kill -KILL "$process"
verdict $? "the leading operator killed"
k delete pod "$old" --wait=false >/dev/null
renewed rough 1 "$old" "the other one acts"

old=$(current rough 0)
kubectl create --raw "/api/v1/namespaces/$space/pods/$old/eviction" -f - >/dev/null \
    <<<"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"$old\"}}"
renewed rough 0 "$old" "the chief evicted"

for node in $(nodes); do node_program_stop "$node" kubelet; done
advances rough
verdict $? "training goes on without kubelets" "step $(step_of rough)"
for node in $(nodes); do node_program_start "$node" kubelet; done
whole rough "and with them again"

node=$(node_of rough 1)
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data --force --pod-selector=coxswain.dev/job-name=rough \
    --timeout=300s >drain.log 2>&1
verdict $? "a drain" "$(tail -n 3 drain.log | tr '\n' ' ')"
until_true 120 is_on rough 1 "$(other_node "$node")"
verdict $? "what it took away comes up on the other node" "$(k get pods -o wide)"
whole rough "and trains on there"
kubectl uncordon "$node" >/dev/null

# Last, since kube-scheduler may take a minute more until it sees nodes again. Nobody but the chief itself can tell then how far it is.
chief=$(worker_process rough 0)
crew="$(current rough 0) $(current rough 1)"
program_stop kube-apiserver
api_server_is_away() { ! api_server_answers; }
until_true 60 api_server_is_away
sleep "${E2E_AWAY:-60}"
before=$(told_step "$chief")
[[ -n $before ]] && until_true 180 has_told "$chief" $((before + 50)) && api_server_is_away
verdict $? "training goes on without the API server" "from step $before to $(told_step "$chief")"
program_start kube-apiserver
until_true 120 api_server_answers
whole rough "and with it again"
[[ "$(current rough 0) $(current rough 1)" == "$crew" ]] # which may have come to the end by now
verdict $? "nobody was replaced for it" "not $crew any more: $(k get pods)"

hasten
succeeds rough "the disturbed job succeeds"
kill "$watcher"
testify rough "every status told what the pods were"

status_is rough restarts.failures 1
verdict $? "one failure among many disruptions" "$(status_of rough restarts)"
cmp "$CLUSTER/volumes/runs/"{calm,rough}/model.safetensors
verdict $? "with the weights of the undisturbed run"
# A missing number is empty and counts as 0.
why=$(awk -F'[ ]' '$1 == "True" { print "Failed was said" }
    NF != 4 { print "no status: " $0 }
    { if ($2 + 0 < e || $3 + 0 < f || $4 + 0 < d) print "went back: " $0; e = $2 + 0; f = $3 + 0; d = $4 + 0 }
    END { if (e < 2 || f < 1 || d < 1) print "seen to the end: incarnation " e + 0 ", " f + 0 " failures, " d + 0 " disruptions" }' seen |
    sort | uniq | head -n 3)
[[ -z $why ]]
verdict $? "and a status that never went back" "$why"

# ---------------------------------------------------------------- a full volume
mkdir -p "$CLUSTER/volumes/small"
mount -t tmpfs -o size=6m tmpfs "$CLUSTER/volumes/small"
claim small "$CLUSTER/volumes/small"
training full 900 small 400m
until_true 180 stepped full 150
dd if=/dev/zero of="$CLUSTER/volumes/small/ballast" bs=64k 2>/dev/null
last=$(status_of full progress.lastCheckpointStep)
advances full && advances full && advances full
verdict $? "training goes on with a full volume" "$(k logs -l coxswain.dev/job-name=full --tail=3)"
grep -qi "space left" < <(k logs -l coxswain.dev/job-name=full --tail=-1)
verdict $? "and the worker reports it" "$(k logs -l coxswain.dev/job-name=full --tail=5)"
failing() { status_is full 'conditions[?(@.type=="CheckpointsFailing")].reason' "$1"; }
until_true 60 failing VolumeFull
verdict $? "the status says it" "$(status_of full conditions)"
(($(status_of full progress.lastCheckpointStep) <= last + 100))
verdict $? "and the status does not claim a checkpoint" "$(status_of full progress)"
rm "$CLUSTER/volumes/small/ballast"
until_true 120 failing Saved
verdict $? "and takes it back once there is room" "$(status_of full conditions)"
succeeds full "and ends well once there is room"

uninstall
umount "$CLUSTER/volumes/small"
