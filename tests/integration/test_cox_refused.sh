#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cox with a user who may not read the cluster's objects: a command that waits says so at once. The embedded
# control plane allows everything, so tests/faultproxy refuses in its place. Prints ok/not ok lines (see
# tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
proxy=

finish_also() {
    if [[ -n $proxy ]]; then kill "$proxy" 2>/dev/null; fi
}

# refusing RULES: from here on KUBECONFIG is that of a cluster with these faults
refusing() {
    finish_also
    [[ -z $proxy ]] || wait "$proxy" 2>/dev/null
    echo "$1" >rules.json
    rm -f faulty
    "$bin/tests/faultproxy" --kubeconfig state/kubeconfig --rules rules.json --out faulty 2>proxy.log &
    proxy=$!
    until_true 60 test -s faulty
    export KUBECONFIG=$work/faulty
}

plane_start
operator_start
export HOME=$work
cox_command=(timeout 90 "$bin/cox")
. "$root/tests/integration/cox.sh"

# shellcheck disable=SC2016 # for the pod's shell
job steady '{}' 2 'echo $COXSWAIN_ROLE $COXSWAIN_INDEX speaks; exec sleep 1000'
job short '{}' 1 'echo done'
wait_for steady readySummary 2/2 60 && wait_for short state Succeeded 60
verdict $? "preparation" "$(field steady readySummary) $(field short state)"

refusing '[{"path": "/trainingjobs", "watch": true, "fault": "status", "status": 403}]'
cox 1 wait steady && grep -q 'made by faultproxy; a RoleBinding to the ClusterRole view' err && cox 1 get -w && cox 1 top --once &&
    cox 1 logs steady -f
verdict $? "a user who may not watch jobs does not wait forever" "$(said)"
refusing '[{"path": "/pods", "watch": true, "fault": "status", "status": 403}]'
cox 1 logs steady -f && grep -q 'made by faultproxy; a RoleBinding to the ClusterRole view' err
verdict $? "a user who may not watch pods does not wait forever" "$(said)"
refusing '[{"path": "/log", "fault": "status", "status": 403}]'
cox 1 logs short && grep -q 'made by faultproxy; a RoleBinding to the ClusterRole view' err && cox 1 logs short -f && grep -q 'made by faultproxy; a RoleBinding to the ClusterRole view' err
verdict $? "a user who may not read logs does not wait forever" "$(said)"
refusing '[{"path": "/trainingjobs", "watch": true, "fault": "status", "status": 401}]'
cox 1 wait steady && grep -q 'made by faultproxy: the cluster does not accept' err
verdict $? "an unknown user does not wait forever" "$(said)"
refusing '[{"path": "/trainingjobs", "watch": true, "fault": "status", "status": 404}]'
cox 1 wait steady && grep -q 'does not know TrainingJobs.*install Coxswain' err
verdict $? "without TrainingJobs in the cluster, a user does not wait forever" "$(said)"


# The job ends once the refusal has been told.
cat >seen.yaml <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: seen}
spec:
  workers: {template: {spec: {containers: [{name: trainer, readinessProbe: null, command: [/bin/sh, -c, 'until [ -e $work/told ]; do sleep 0.1; done']}]}}}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: "0.1"}}
YAML
told_without_pods() {
    grep -q 'made by faultproxy; a RoleBinding to the ClusterRole view.*; until then seen is shown without its pods' seen.err
}
refusing '[{"path": "/pods", "fault": "status", "status": 403}]'
"${cox_command[@]}" run seen.yaml --kubeconfig "$KUBECONFIG" >seen.out 2>seen.err </dev/null &
runs=$!
until_true 60 told_without_pods
touch told
wait "$runs" && [[ $(wc -l <seen.err) == 1 ]]
verdict $? "a user who may not see pods runs a job to its end, and is told so once" "$(cat seen.out seen.err)"
cox 0 top steady && printed 'steady'
verdict $? "and shown" "$(said)"
refusing '[{"method": "GET", "path": "/trainingjobs", "fault": "status", "status": 403}]'
cox 1 run seen.yaml --kubeconfig "$KUBECONFIG" && grep -q '^cox run: TrainingJob seen: made by faultproxy; a RoleBinding' err && cox 1 top steady
verdict $? "but not for a user who may not see the job" "$(said)"

pod=steady-worker-0-$(field steady incarnation)
refusing '[{"path": "/pods/'"$pod"'/log", "fault": "status", "status": 500}]'
cox 1 logs steady && grep -q "^cox logs: worker-0: pod $pod: made by faultproxy" err && printed '^worker-1 | worker 1 speaks$'
verdict $? "a log that cannot be read does not keep the others" "$(said)"

refusing '[{"path": "/trainingjobs", "watch": true, "fault": "status", "status": 403}]'
cox 1 restart steady && grep -q 'steady stays suspended (cox resume steady): made by faultproxy' err
verdict $? "a user who may not watch a restart is told that the job stays suspended" "$(said)"
