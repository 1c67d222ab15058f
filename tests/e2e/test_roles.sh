#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A crew has every role, and its pods are deleted one role after the other: each is replaced and the job goes on. Synchronous
# steps have the bits of an undisturbed run after the loss of any role. Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

# crew NAME STEPS [CPU]: chief, two workers, two parameter servers, an evaluator
crew() {
    local limits='' template
    [[ -z ${3:-} ]] || limits="resources: {limits: {cpu: $3}}"
    template="template: {spec: {containers: [{name: trainer, env: [{name: COXSWAIN_THREADS, value: \"1\"}], $limits}]}}"
    k apply -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: 2, $template}
  storage:
  - {name: runs, persistentVolumeClaim: {claimName: runs}}
  chief: {$template}
  parameterServers: {replicas: 2, $template}
  evaluator: {$template}
  coxswain:
    strategy: {type: ParameterServer, mode: Synchronous}
    model: {preset: lenet}
    data: {format: Synthetic, examples: 10000, validation: {last: 200}}
    training: {steps: $2, batchSize: 64, seed: 3, optimizer: {type: SGD, learningRate: "0.01"}}
    checkpoint: {storage: runs, path: $1, everySteps: 100, keep: 2}
    export: {storage: runs, path: $1/model.safetensors}
  runPolicy: {backoffLimit: 0, forceDeleteAfterSeconds: 10}
YAML
}

# pod_of JOB ROLE INDEX: prints the name of the current pod
pod_of() {
    k get pods -l "coxswain.dev/job-name=$1,coxswain.dev/role=$2,coxswain.dev/index=$3,coxswain.dev/current=true" \
        -o 'jsonpath={.items[*].metadata.name}'
}

# follows JOB ROLE INDEX OLD: another pod is that, and it runs
# shellcheck disable=SC2317 # called by until_true
follows() {
    local now
    now=$(pod_of "$1" "$2" "$3")
    [[ -n $now && $now != "$4" && $(k get pod "$now" -o 'jsonpath={.status.phase}') == Running ]]
}

install
claim runs "$CLUSTER/volumes/runs"
steps=${E2E_STEPS:-1200}
crew calm "$steps"
succeeds calm "a crew of every role trains undisturbed"

crew rough "$steps" 100m
witness rough
until_true 180 stepped rough 120 # past the first checkpoint
verdict $? "the crew to be disturbed trains" "$(k get pods -o wide)"
disruptions=0
for one in "worker 1" "chief 0" "ps 0" "evaluator 0" "ps 1" "worker 0"; do
    read -r role index <<<"$one"
    old=$(pod_of rough "$role" "$index")
    k delete pod "$old" --wait=false >/dev/null
    verdict $? "$role $index is deleted" "$(k get pods)"
    until_true 180 follows rough "$role" "$index" "$old"
    verdict $? "it comes again" "$(k get pods -o wide)"
    disruptions=$((disruptions + 1))
    until_true 60 status_is rough restarts.disruptions $disruptions
    verdict $? "as a disruption" "$(status_of rough restarts)"
    advances rough
    verdict $? "and the crew trains on" "at step $(step_of rough): $(k get pods -o wide)"
done
hasten
succeeds rough "the disturbed crew succeeds"
testify rough "every status told what the pods were"
[[ $(status_of rough restarts.failures) =~ ^0?$ ]]
verdict $? "nothing of it was a failure" "$(status_of rough restarts)"
cmp "$CLUSTER/volumes/runs/"{calm,rough}/model.safetensors
verdict $? "with the weights of the undisturbed run"
uninstall
