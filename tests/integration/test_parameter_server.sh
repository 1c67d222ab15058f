#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ParameterServer under the operator and the embedded control plane: the bits of the synchronous mode, kills of workers,
# servers and the chief, what is lost then, and checkpoints that go from one strategy to another. Prints ok/not ok lines
# (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/training.sh"
# shellcheck disable=SC2034 # both are of crew
shards=2 model='"preset":"mlp","width":96' # large enough to be cut over both ps
short=150
long=600
longer=800

training_start

# servers NAME OPTIONS STEPS [PATH] [ROLES]: a crew of two workers and two ps; ROLES are sections of further roles, a comma behind each
servers() {
    local strategy="\"type\":\"ParameterServer\"${2:+,$2}"
    local more="\"parameterServers\":{\"replicas\":2},${5:-}"
    crew "$1" 2 "$3" "${4:-$1}"
}

# slow_servers NAME OPTIONS STEPS: like servers, but slowed down so that it is not done before the test disturbs it
slow_servers() {
    delay "$1" 30
    servers "$@"
}

# pod_of JOB ROLE INDEX: the name of the current pod
pod_of() {
    api GET "$pods_path?labelSelector=coxswain.dev/job-name%3D$1,coxswain.dev/current=true,coxswain.dev/index=$3" |
        tr -d '\n' | grep -o "\"name\": *\"$1-$2-$3-[0-9]*\"" | sed 's/.*"\('"$1"'[^"]*\)"/\1/' | sort -u | tail -n 1
}

is_ready() {
    [[ -n $(process_of "$(pod_of "$@")") ]] || field_is "$1" state Succeeded
}

# find_victims JOB ROLE INDEX [ROLE INDEX…]: looks up whom strike is to kill, as soon as they run, so that it loses no time later
find_victims() {
    local job=$1 pod process
    victims=() processes=()
    shift
    while (($# > 0)); do
        until_true 60 runs "$job" "$1" "$2" || return
        pod=$(pod_of "$job" "$1" "$2")
        process=$(process_of "$pod")
        [[ -n $process ]] || return
        victims+=("$pod $1 $2") processes+=("$process")
        shift 2
    done
}

runs() {
    [[ -n $(process_of "$(pod_of "$@")") ]]
}

# strike JOB: kills those that were looked up, all at once, for a crew does not wait for us between two; and waits for their
# successors. Then the crew may go as fast as it can
strike() {
    local victim pod role index
    kill -KILL "${processes[@]}" || return
    for victim in "${victims[@]}"; do
        read -r pod role index <<<"$victim"
        until_true 60 is_another "$pod" "$1" "$role" "$index" && until_true 60 is_ready "$1" "$role" "$index" || return
    done
    undelay "$1"
}

has_checkpoint() {
    compgen -G "runs/$1/step-*" >/dev/null
}

# Or the job is over: then nobody takes its place.
is_another() {
    local before=$1 now
    shift
    now=$(pod_of "$@")
    [[ -n $now && $now != "$before" ]] || field_is "$1" state Succeeded
}

chief_log() {
    local pod
    for pod in $(pods "$1" coxswain.dev/index=0); do log_of "$pod"; done
}

# says JOB PATTERN
says() {
    chief_log "$1" | grep -E "$2" >/dev/null
}

# has_passed STEP: the chief of the job scored has
has_passed() {
    (($(step_of "$(pod_of scored chief 0)") > $1))
}

synchronous='"mode":"Synchronous"'

# ---- the bits of one device

crew mirrored 2 "$long"
wait_for mirrored state Succeeded 90
verdict $? "MultiWorkerMirrored, to compare with"
servers plain "$synchronous" "$long"
wait_for plain state Succeeded 90 && same_weights mirrored plain
verdict $? "Synchronous gives the bits of MultiWorkerMirrored"

# ---- kills in the synchronous mode

slow_servers rolled "$synchronous" "$long"
find_victims rolled ps 1 && until_true 60 has_checkpoint rolled && strike rolled
verdict $? "a ps is killed and replaced"
wait_for rolled state Succeeded 120 && same_weights mirrored rolled
verdict $? "the crew rolls back and ends in the same bits" "$(chief_log rolled | tail -n 5)"
says rolled 'resumes from the checkpoint of step [1-9]'
verdict $? "and says from where" "$(chief_log rolled | tail -n 5)"

slow_servers led "$synchronous" "$long"
find_victims led worker 0 && await_step led 20 && strike led
verdict $? "the chief is killed and replaced"
wait_for led state Succeeded 120 && same_weights mirrored led
verdict $? "its successor goes on with what the servers hold" "$(chief_log led | tail -n 5)"

# ---- kills in the asynchronous mode

slow_servers counted '"mode":"Async"' "$longer"
find_victims counted ps 1 worker 1 && await_step counted 120 && strike counted
verdict $? "asynchronous: a ps and a worker are killed and replaced"
wait_for counted state Succeeded 120 && says counted '[0-9]+ updates that it had acknowledged since are lost'
verdict $? "what is lost with a ps is counted" "$(chief_log counted | tail -n 5)"

# 577 digits to learn from: the last batch of each epoch has one, and the second worker's share of it none.
held=123 slow_servers tailed '"mode":"Async"' "$long"
find_victims tailed worker 0 && await_step tailed 60 && strike tailed
verdict $? "shares without examples: the chief is killed and replaced"
wait_for tailed state Succeeded 120 && ! says tailed 'are lost|were lost'
verdict $? "and none of them counts as a lost update" "$(chief_log tailed | tail -n 5)"

# ---- one checkpoint for all strategies

delay first 30
crew first 2 "$long" shared
await_step first 200
api DELETE "$jobs_path/first" >/dev/null
until_true 60 no_pods_of first
servers second "$synchronous" "$long" shared '"chief":{},"evaluator":{},'
wait_for second state Succeeded 120 && same_weights mirrored second
verdict $? "servers go on from a checkpoint of MultiWorkerMirrored to the same bits"
log_of "$(pod_of second evaluator 0)" | grep 'validation after step [1-9][0-9]*00' >/dev/null
verdict $? "the evaluator scores checkpoints" "$(log_of "$(pod_of second evaluator 0)" | tail -n 5)"

servers third "$synchronous" "$short" back
wait_for third state Succeeded 60
crew fourth 2 "$long" back
wait_for fourth state Succeeded 90 && same_weights mirrored fourth
verdict $? "and MultiWorkerMirrored from one of theirs"

# ---- a chief of its own and an evaluator, while the crew trains; it has no end, and need not hurry

delay scored 5
servers scored '"mode":"Async"' 100000000 scored '"chief":{},"evaluator":{},'

# scores: what the evaluator has found so far, in lines of "STEP LOSS ACCURACY"
scores() {
    log_of "$(pod_of scored evaluator 0)" | sed -n 's/.*validation after step \([0-9]*\): loss \([0-9.]*\), accuracy \([0-9.]*\) .*/\1 \2 \3/p'
}

# Checkpoints that are scored are retired soon.
take_scored() {
    taken=$(scores | tail -n 1)
    rm -rf runs/offline && mkdir runs/offline
    [[ -n $taken ]] && cp -r "runs/scored/step-$(printf %08d "${taken%% *}")".* runs/offline 2>/dev/null &&
        [[ -s $(echo runs/offline/step-*/manifest.json) ]]
}

# The last value of a metric that ends the evaluator's own status document, and of the job's status
own_metric() {
    curl -s --max-time 5 "http://$(address_of "$(pod_of scored evaluator 0)"):8080/status" | tr -d ' \n' |
        grep -o "\"name\":\"$1\",\"value\":[0-9.e-]*\|\"$1\":[0-9.e-]*" | sed 's/.*://' | tail -n 1
}

status_metric() {
    api GET "$jobs_path/scored" | tr -d ' \n' | grep -o "\"name\":\"$1\",\"value\":\"[^\"]*" | sed 's/.*"//' | tail -n 1
}

# was_scored LOSS: the evaluator has said so, rounded as it says it
was_scored() {
    [[ -n $1 ]] && scores | awk -v loss="$(printf %.4f "$1")" '$2 == loss { found = 1 } END { exit !found }'
}

is_in_the_status() {
    was_scored "$(status_metric validationLoss)"
}

until_true 60 take_scored && goes_on_from=$(step_of "$(pod_of scored chief 0)") && until_true 60 take_scored &&
    until_true 60 has_passed "$goes_on_from"
verdict $? "an evaluator scores checkpoints while the crew trains" "$(log_of "$(pod_of scored evaluator 0)" | tail -n 5)"
was_scored "$(own_metric validationLoss)"
verdict $? "its own status has what it says" "$(own_metric validationLoss), $(scores | tail -n 3)"
until_true 60 is_in_the_status
verdict $? "the job's status has it, too" "$(status_metric validationLoss), $(scores | tail -n 3)"
cat >offline.yaml <<YAML
model: {preset: mlp, width: 96}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {steps: ${taken%% *}, stepsPerEpoch: 1000, batchSize: 24, logicalShards: 2, seed: 7,
    optimizer: {type: AdamW, learningRate: "2e-4"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
checkpoint: {storage: runs, path: offline}
YAML
(unset COXSWAIN_JOB TF_CONFIG && timeout 120 "$bin/coxswain-worker" --job offline.yaml --storage "runs=$work/runs" --threads 1 >offline.log 2>&1)
read -r _ offline_loss offline_accuracy <<<"$taken"
grep -q "resumes from the checkpoint of step ${taken%% *}" offline.log &&
    grep -q "held-out examples: accuracy $offline_accuracy %, loss $offline_loss" offline.log
verdict $? "an evaluation of the same checkpoint afterwards finds the same" "$taken, $(tail -n 5 offline.log)"
api DELETE "$jobs_path/scored" >/dev/null
until_true 60 no_pods_of scored
