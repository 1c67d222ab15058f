#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Scripts of other frameworks that send their progress to the operator over HTTPS, in the embedded control plane, in both isolations: what
# a pod is told, what becomes of a report, what is refused and in which words, a pod of an earlier attempt, an operator that is killed,
# the last report before the end, and an operator that takes no reports. The script is push.py. Prints ok/not ok lines (see tests/run).
set -uo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip push: python3 is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.2", 0)); print(s.getsockname()[1])'
}

# pushing NAME [RUN_POLICY]
pushing() {
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"image\":\"none\",\"pytorch\":{\"progress\":{\"push\":true}},
        \"runPolicy\":{\"cleanPodPolicy\":\"None\",\"backoffLimit\":1${2:-}},
        \"storage\":[{\"name\":\"scripts\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"scripts\"}},
            {\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"workers\":{\"replicas\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",
            \"command\":[\"python3\",\"/coxswain/storage/scripts/push.py\",\"run\",\"/coxswain/storage/runs\"]}]}}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

progress_has() {
    api GET "$jobs_path/$1" | tr -d ' \n' | contains -- "\"progress\":{.*$2"
}

has_event() {
    api GET apis/events.k8s.io/v1/namespaces/default/events | contains "$1"
}

# sends ANSWER POD [OPTION…]: that push.py, told to send, gets this answer
sends() {
    python3 "$root/tests/integration/push.py" send "runs/$2" "${@:3}" >said 2>&1
    grep -q -- "^$1" said
}

refusals() {
    sends '401 - send the header Authorization' one-worker-0-1 token=none
    verdict $? "a report without a token is refused ($1)" "$(cat said)"
    sends "403 - the token is not this job's" one-worker-0-1 token=0123
    verdict $? "one with a wrong token, too ($1)" "$(cat said)"
    sends "403 - the token is not this job's" one-worker-0-1 token_of=runs/two-worker-0-1
    verdict $? "and one with the token of another job ($1)" "$(cat said)"
    sends '404 - reports go to the URL' one-worker-0-1 path=/other && sends '405 - send reports with POST' one-worker-0-1 method=PUT
    verdict $? "a wrong path and a wrong method are told ($1)" "$(cat said)"
    sends '400 - the report is not JSON' one-worker-0-1 body='{"trainerStatus":' &&
        sends '400 - progressPercentage is 101' one-worker-0-1 body='{"trainerStatus":{"progressPercentage":101}}'
    verdict $? "a report that cannot be read is told ($1)" "$(cat said)"
    sends '413 - the report has 20[0-9]* bytes; send at most 16384' one-worker-0-1 padding=20000
    verdict $? "one that is too long, too ($1)" "$(cat said)"
    sends '200 - the metric x was left out' one-worker-0-1 body='{"trainerStatus":{"metrics":[{"name":"x","value":"nan"}]}}'
    verdict $? "a metric that is no number is left out ($1)" "$(cat said)"
    sends '429 1 this job reports more often' one-worker-0-1 times=15
    verdict $? "more than one report a second is too much ($1)" "$(cat said)"
    sends '200 - reported' two-worker-0-1
    verdict $? "that is counted for each job ($1)" "$(cat said)"
}

# It reports once, and waits for `go`, which the other jobs do not have yet.
silence() {
    pushing silent ',"progressDeadlineSeconds":3'
    until_true 30 field_is silent attempt 2 && until_true 10 has_event ProgressDeadlineExceeded &&
        until_true 10 has_event 'no new step for [0-9]* s, and progressDeadlineSeconds is 3: the last one is step 100 of 1000'
    verdict $? "a script that is silent for too long is started over ($1)" "$(api GET "$jobs_path/silent")"
    api DELETE "$jobs_path/silent" >answer.json
}

for isolation in auto rewrite; do
    rm -rf state runs
    mkdir runs
    port=$(free_port)
    plane_start --isolation "$isolation" --volume "scripts=$root/tests/integration" --volume "runs=$work/runs"
    operator_start '' --progress-address "127.0.0.2:$port"

    pushing one
    pushing two
    until_true 60 test -s runs/one-worker-0-1 && until_true 60 test -s runs/two-worker-0-1
    until_true 30 progress_has one '"step":100,"totalSteps":1000,"percent":10,"epoch":0' &&
        progress_has one '"metrics":\[{"name":"loss","value":"2.5","step":100}\]'
    verdict $? "a report becomes the job's progress ($isolation)" "$(api GET "$jobs_path/one"; tail -n 5 operator.log)"
    [[ $isolation != auto ]] || refusals "$isolation"
    [[ $isolation != auto ]] || silence "$isolation"

    operator_kill
    operator_start '' --progress-address "127.0.0.2:$port"
    until_true 30 sends '200 - reported' two-worker-0-1 loss=1.75 && until_true 10 progress_has two '"value":"1.75"' && progress_has two '"secondsRemaining":7'
    verdict $? "another operator takes the same token ($isolation)" "$(cat said; tail -n 5 operator.log)"

    kill -KILL "$(process_of one-worker-0-1)"
    until_true 60 test -s runs/one-worker-0-2
    sends '409 - this pod has a successor, or is of an earlier attempt' one-worker-0-1 loss=77
    verdict $? "a pod of an earlier attempt cannot report ($isolation)" "$(cat said)"
    until_true 30 progress_has one '"value":"2.25"' && ! progress_has one '"value":"77"'
    verdict $? "its successor can ($isolation)" "$(api GET "$jobs_path/one")"

    touch runs/go
    wait_for one state Succeeded 60 && progress_has one '"percent":100' && progress_has one '"name":"loss","value":"0.25","step":990' &&
        progress_has one '"name":"train_loss","value":"0.125"'
    verdict $? "the last report is there at the end ($isolation)" "$(api GET "$jobs_path/one")"
    wait_for two state Succeeded 60
    sends '409 - this job has ended' two-worker-0-1
    verdict $? "a job that has ended takes none ($isolation)" "$(cat said)"
    api DELETE "$jobs_path/two" >answer.json
    until_true 20 sends '404 - this job is gone' two-worker-0-1
    verdict $? "nor does one that is gone ($isolation)" "$(cat said)"

    operator_kill
    operator_start
    pushing three
    until_true 30 has_event 'progress.push needs an operator with --progress-address'
    verdict $? "an operator that takes no reports says so ($isolation)" "$(api GET apis/events.k8s.io/v1/namespaces/default/events)"
    plane_stop
    operator='' standalone=''
done
