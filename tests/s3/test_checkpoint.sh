#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs of the embedded control plane that keep their checkpoints in a bucket of a real S3 server, through a proxy that injects faults: the
# chief is killed at each kind of request of an upload, requests fail, credentials are rotated, a pod is deleted, a chief is replaced while it
# uploads. Each job has to end in the weights of an undisturbed run, bit for bit. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/training.sh"
. "$root/tests/s3/server.sh"
. "$root/tests/s3/jobs.sh"
finish_also() {
    s3_end
}
s3_start
proxy_start
training_start
secret POST first-key first-secret-of-the-test

job_of undisturbed
wait_for undisturbed state Succeeded 20 && [[ -s runs/undisturbed.safetensors ]] && [[ $(committed undisturbed 60) ]]
verdict $? "a job saves its checkpoints to a bucket" "$(api GET "$jobs_path/undisturbed" | tail -c 1500; log_of "$(member undisturbed 0)" | tail -n 5; objects undisturbed)"
[[ $(committed undisturbed | wc -l) == 2 && $(objects undisturbed | grep -c rank-00000) == 2 ]]
verdict $? "keep: 2 leaves two checkpoints" "$(objects undisturbed)"
! grep -q 'some/jobs/default/undisturbed/step.*GET' proxy.log && [[ $(ls -A runs) == undisturbed.safetensors ]]
verdict $? "a job without losses reads nothing back" "$(ls -A runs)"

# ---- the chief is killed at each kind of request of an upload

# killed NAME RULE PATTERN WORKERS: kills the chief when the log has the pattern; the pattern tells that a request of step 30 hangs
killed() {
    : >proxy.log
    proxy_rules "[$2]"
    job_of "$1" "${4:-1}"
    until_true 30 proxy_has "$3"
    verdict $? "$1: the upload has begun" "$(cut -c1-150 proxy.log | tail)"
    [[ -z $(committed "$1" 30) ]]
    verdict $? "$1: an upload that is not complete leaves no committed checkpoint" "$(objects "$1")"
    kill_chief "$1" && proxy_rules '[]' && ends_with_same_weights "$1"
    verdict $? "$1: a chief that is killed then costs no bit" "$(api GET "$jobs_path/$1" | tail -c 1000; log_of "$(member "$1" 0)" | tail -n 5)"
}
killed first-part '{"method":"PUT","path":"000030.attempt-1.incarnation-1/rank-00000.safetensors?partNumber=1","fault":"hang"}' 'PUT.*partNumber=1&.* hang'
log_of "$(member first-part 0)" >log && grep -q 'resumes from the checkpoint of step 20' log
verdict $? "a pod without the local folder resumes from the bucket" "$(grep -i resume log)"
killed last-part '{"method":"PUT","path":"000030.attempt-1.incarnation-1/rank-00000.safetensors?partNumber=2","fault":"hang"}' 'PUT.*partNumber=2&.* hang'
killed parts-end '{"method":"POST","path":"000030.attempt-1.incarnation-1/rank-00000.safetensors?uploadId","fault":"hang"}' 'POST.*uploadId.* hang'
killed manifest '{"method":"PUT","path":"000030.attempt-1.incarnation-1/manifest.json","fault":"hang"}' 'PUT.*manifest.json.* hang'
killed crew '{"method":"PUT","path":"000030.attempt-1.incarnation-1/manifest.json","fault":"hang"}' 'PUT.*manifest.json.* hang' 2

: >proxy.log
proxy_rules '[{"method":"GET","path":"000030.attempt-1.incarnation-1/manifest.json","skip":1,"fault":"hang"},{"path":"000040.attempt-1.incarnation-1/manifest.json","method":"PUT","fault":"hang"}]'
job_of after-commit
until_true 30 proxy_has '000040.*manifest.json.* hang' && [[ $(committed after-commit 30) ]] && kill_chief after-commit && proxy_rules '[]' && ends_with_same_weights after-commit &&
    log_of "$(member after-commit 0)" | contains 'resumes from the checkpoint of step 30'
verdict $? "a committed checkpoint is what the next chief starts from" "$(log_of "$(member after-commit 0)" | grep -i resume)"

# ---- faults

proxy_rules '[{"path":"some/jobs","fault":"status","status":503,"every":3,"times":12},{"method":"PUT","path":"partNumber","fault":"cut-request","every":2,"times":4},
    {"method":"PUT","path":"manifest.json","fault":"lose-answer","times":2},{"method":"POST","path":"uploadId","fault":"lose-answer","times":1}]'
job_of faults
ends_with_same_weights faults && [[ $(committed faults | wc -l) == 2 ]]
verdict $? "failing requests, cut uploads and lost answers cost no bit" "$(log_of "$(member faults 0)" | tail -n 5)"

: >proxy.log
proxy_rules '[{"path":"000030.attempt","method":"PUT","fault":"delay","seconds":3}]'
job_of rotated
until_true 30 proxy_has '000020.*manifest.json'
sleep 0.3
s3_kill
s3_start second-key second-secret-of-the-test
credentials second-key second-secret-of-the-test
secret PUT second-key second-secret-of-the-test /bucket
proxy_rules '[]'
ends_with_same_weights rotated && [[ $(field rotated total) == "" ]]
verdict $? "a server that is lost and comes back with other credentials costs no bit and no pod" "$(log_of "$(member rotated 0)" | tail -n 5)"

# ---- a request to end

delay asked 100
job_of asked
await_step asked 13
pod=$(member asked 0)
api DELETE "$pods_path/$pod" >/dev/null
delay asked 20
ends_with_same_weights asked
verdict $? "a deleted pod costs no bit" "$(api GET "$jobs_path/asked" | tail -c 1000)"
step=$(log_of "$(member asked 0)" | sed -n 's/.*resumes from the checkpoint of step \([0-9]*\).*/\1/p')
((step > 10 && step % 10 != 0))
verdict $? "and has saved its last step" "resumes from step $step"

# ---- two chiefs

# chief INCARNATION ADDRESS STEPS: one process by hand, of the same job
chief() {
    COXSWAIN_JOB_UID=two-chiefs COXSWAIN_INCARNATION=$1 COXSWAIN_ATTEMPT=1 COXSWAIN_POD_IP=$2 COXSWAIN_CHECKPOINT_DIR=$work/chief$1 \
        COXSWAIN_CHECKPOINT_S3="{\"endpoint\":\"$proxy_endpoint\",\"bucket\":\"runs\",\"prefix\":\"two\",\"credentials\":\"$work/credentials\"}" \
        COXSWAIN_TERMINATION_LOG=$work/chief$1.message "$bin/coxswain-worker" --job two.yaml --storage runs="$work" --http-port 0 >"chief$1.log" 2>&1
}
cat >two.yaml <<YAML
model: {preset: mlp, width: 2048}
data: {format: Synthetic, examples: 1000}
training: {steps: 20, batchSize: 20, seed: 7, optimizer: {type: AdamW, learningRate: "0.001"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
checkpoint: {storage: runs, everySteps: 10, path: two}
YAML
: >proxy.log
proxy_rules '[{"method":"PUT","path":"two/step-00000020.attempt-1.incarnation-1/rank-00000.safetensors?partNumber=1&","fault":"delay","seconds":6}]'
chief 1 127.0.0.1 &
first=$!
until_true 20 proxy_has 'two/step-00000010.*manifest.json - 200' && sleep 1 && chief 2 127.0.0.2
verdict $? "a second chief takes over the bucket" "$(tail -n 3 chief2.log)"
wait "$first"
[[ $? == 163 ]] && [[ $(storage list two/ | grep -c 'step-00000020.attempt-1.incarnation-1/manifest') == 0 ]] && grep -q 'a newer chief (incarnation 2) has taken over' chief1.log
verdict $? "the first one, in the middle of its upload, commits nothing and ends as superseded" "$(tail -n 3 chief1.log; storage list two/)"
[[ $(storage list two/ | grep -c 'step-00000020.attempt-1.incarnation-2/manifest') == 1 ]] && grep -q 'resumes from the checkpoint of step 10' chief2.log
verdict $? "the second one went on from the first one's checkpoint" "$(cat chief2.log; storage list two/)"
chief 2 127.0.0.1
[[ $? == 163 ]]
verdict $? "a chief with an incarnation that has been used ends as superseded" "$(tail -n 3 chief2.log)"

# ---- damage, and the messages of jobs that fail

head -c 1000 /dev/urandom >junk
sed -i 's/steps: 20/steps: 30/' two.yaml
name=$(storage list two/ | sed -n 's:.* \(two/step-00000020[^/]*\)/manifest.json:\1:p')
storage put junk "$name/rank-00000.safetensors" && chief 3 127.0.0.1 && grep -q 'step-00000020.* is damaged' chief3.log && grep -q 'resumes from the checkpoint of step 10' chief3.log
verdict $? "a damaged checkpoint is passed over, and the older one taken" "$(cat chief3.log)"
bucket_of_job=rums job_of mistyped
wait_for mistyped state Failed 30 && job_says mistyped "$proxy_endpoint/rums.*there is no such bucket; create it or correct its name" && [[ ! $(member mistyped 0) =~ -[2-9]$ ]]
verdict $? "a mistyped bucket fails the job at its first try, with a sentence" "$(api GET "$jobs_path/mistyped" | tail -c 1500)"
secret PUT second-key wrong /bucket
job_of refused
wait_for refused state Failed 30 && job_says refused 'correct AWS_SECRET_ACCESS_KEY'
verdict $? "wrong credentials fail the job with a sentence" "$(api GET "$jobs_path/refused" | tail -c 1500)"
