#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs of the embedded control plane whose data are objects of a real S3 server: that they train in spite of faults, and the messages of those
# that fail. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/digits.sh"
. "$root/tests/s3/server.sh"
finish_also() {
    s3_end
}
s3_start
proxy_start
make_digits
mkdir runs
storage put images corpus/mnist/images && storage put labels corpus/mnist/labels && head -c 300 /dev/urandom >other &&
    storage put other corpus/mnist/other && storage put other elsewhere/other
verdict $? "the data is in the bucket"

plane_start --volume runs="$work/runs"
operator_start
secret() {
    api "$1" "api/v1/namespaces/default/secrets${3:-}" "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"corpus\"},
        \"stringData\":{\"AWS_ACCESS_KEY_ID\":\"first-key\",\"AWS_SECRET_ACCESS_KEY\":\"$2\"}}" >secret.json
}
secret POST first-secret-of-the-test

# job_of NAME DATA_S3 [MORE]: trains on the digits; MORE is more of the section coxswain
job_of() {
    api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"workers\":{\"replicas\":2},\"storage\":[{\"name\":\"corpus\",\"s3\":{\"endpoint\":\"$proxy_endpoint\",\"bucket\":\"${bucket:-runs}\",
            \"secretRef\":{\"name\":\"corpus\"},$2}},{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"coxswain\":{\"strategy\":{\"type\":\"MultiWorkerMirrored\"},\"model\":{\"preset\":\"mlp\"},
            \"data\":{\"format\":\"IDX\",\"storage\":\"corpus\",\"path\":\"mnist\",\"train\":{\"images\":\"images\",\"labels\":\"labels\"}},
            \"training\":{\"epochs\":1,\"batchSize\":100,\"seed\":1,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":0.1}}${3:-}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

proxy_rules '[{"method":"GET","path":"corpus/mnist/images","fault":"cut-answer","times":2},{"fault":"status","status":503,"every":3,"times":4}]'
job_of first '"prefix":"corpus"' ',"export":{"storage":"runs","path":"first.safetensors"}'
wait_for first state Succeeded 20 && [[ -s runs/first.safetensors ]] && [[ $(grep -c 'cut-answer' proxy.log) == 2 ]] &&
    ! grep -q 'mnist/other' proxy.log
verdict $? "a job trains on objects, fetched through faults, and fetches no others" "$(api GET "$jobs_path/first" | tail -c 2000; cut -c1-100 proxy.log)"
! api GET "$pods_path/$(pods first | head -n 1)" | tr -d '\n' | sed 's/.*"containers": *\[//; s/"initContainers".*//' | contains 'coxswain/s3'
verdict $? "the trainer does not see the credentials"

proxy_rules '[]'
storage put runs/first.safetensors weights/first.safetensors
job_of second '"prefix":"corpus"' ',"export":{"storage":"runs","path":"second.safetensors"}'
wait_for second state Succeeded 20 && cmp runs/first.safetensors runs/second.safetensors
verdict $? "faults change no bit of the result"

# ---- exports to the bucket

: >proxy.log
proxy_rules '[{"method":"PUT","path":"corpus/out/w.safetensors","fault":"cut-request","times":1},{"method":"PUT","path":"corpus/out/w.safetensors","fault":"lose-answer","times":1}]'
job_of exports '"prefix":"corpus"' ',"export":{"storage":"corpus","path":"out/w.safetensors"}'
wait_for exports state Succeeded 20 && storage get corpus/out/w.safetensors got && cmp got runs/first.safetensors && grep -q 'lose-answer' proxy.log
verdict $? "a job exports to its bucket through faults, with the same bits" "$(api GET "$jobs_path/exports" | tail -c 1500; grep 'out/' proxy.log | cut -c1-120)"

# The chief is killed when all of the export is on its way. Nothing is there then, and the successor exports. Without checkpoints the records
# of the chiefs are in the bucket.
: >proxy.log
proxy_rules '[{"method":"PUT","path":"corpus/killed/w.safetensors","fault":"hang","times":1}]'
job_of killed '"prefix":"corpus"' ',"export":{"storage":"corpus","path":"killed/w.safetensors"}'
until_true 20 grep -q 'killed/w.safetensors hang' proxy.log && [[ $(storage list corpus/killed/ | grep -c 'w.safetensors$') == 0 ]] &&
    kill -KILL "$(process_of "$(member killed 0)")" && wait_for killed state Succeeded 20 && storage get corpus/killed/w.safetensors got && cmp got runs/first.safetensors &&
    [[ $(storage list corpus/killed/ | grep -c '/.w.safetensors.chiefs/incarnation-') == 2 ]]
verdict $? "a chief that is killed while it uploads leaves no export, and its successor a whole one" "$(api GET "$jobs_path/killed" | tail -c 1500; storage list corpus/killed/)"

# Hugging Face's names: the config is there before the weights, which a reader looks for.
# exporter INCARNATION ADDRESS: a chief by hand, of a job without checkpoints
exporter() {
    COXSWAIN_JOB_UID=two-chiefs COXSWAIN_INCARNATION=$1 COXSWAIN_ATTEMPT=1 COXSWAIN_POD_IP=$2 COXSWAIN_TERMINATION_LOG=$work/exporter$1.message \
        COXSWAIN_EXPORT_S3="{\"endpoint\":\"$proxy_endpoint\",\"bucket\":\"runs\",\"prefix\":\"two/model.safetensors\",\"credentials\":\"$work/credentials\"}" \
        "$bin/coxswain-worker" --job two.yaml --storage runs="$work/local$1" --http-port 0 >"exporter$1.log" 2>&1
}
cat >two.yaml <<YAML
model: {preset: gpt2-124m, depth: 1, width: 256, heads: 4, context: 16, vocabulary: 20000}
data: {format: Synthetic, examples: 100}
training: {steps: 2, batchSize: 2, seed: 7, optimizer: {type: AdamW, learningRate: "0.001"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
export: {storage: runs, path: model.safetensors, names: HuggingFace}
YAML
: >proxy.log
proxy_rules '[{"method":"PUT","path":"two/model.safetensors?partNumber=1&","fault":"delay","seconds":8,"times":1}]'
exporter 1 127.0.0.1 &
first=$!
until_true 20 grep -q 'POST /runs/two/model.safetensors' proxy.log && [[ $(storage list two/ | grep -c 'model.safetensors$') == 0 && $(storage list two/ | grep -c 'two/config.json') == 1 ]]
verdict $? "the config is in the bucket before the weights" "$(cat exporter1.log; storage list two/)"
exporter 2 127.0.0.2
verdict $? "a second chief exports while the first one still uploads" "$(tail -n 3 exporter2.log)"
storage list two/ >before
wait "$first"
[[ $? == 163 ]] && storage list two/ | cmp - before && storage get two/model.safetensors got && cmp got local2/model.safetensors && grep -q 'a newer chief (incarnation 2) has taken over' exporter1.log
verdict $? "the first one replaces nothing and ends as superseded" "$(tail -n 3 exporter1.log; storage list two/)"
proxy_rules '[]'

# ---- the messages of jobs that fail
fails_with() {
    wait_for "$1" state Failed 20 && job_says "$1" "$2"
    verdict $? "$3" "$(api GET "$jobs_path/$1" | tail -c 1500)"
}
# fails_at_once JOB WORDS NAME: without a second try
fails_at_once() {
    fails_with "$@"
    job_says "$1" PermanentFailure && [[ $(pods "$1" | grep -c -- '-[2-9]$') == 0 ]]
    verdict $? "and it fails at once" "$(api GET "$jobs_path/$1" | tail -c 1500; pods "$1")"
}
job_of nowhere '"prefix":"none"'
fails_at_once nowhere "$proxy_endpoint/runs: the bucket has no object at none/mnist/images; correct the bucket, the prefix or the path" "an object that is not there fails the job with a sentence"
bucket=rums job_of mistyped '"prefix":"corpus"'
fails_at_once mistyped "$proxy_endpoint/rums?prefix=corpus/mnist/.*: there is no such bucket; create it or correct its name" "a mistyped bucket fails the job with a sentence"
job_of small '"prefix":"corpus","cacheSize":"1k"'
fails_at_once small 'raise cacheSize' "objects larger than the cache fail the job with a sentence"
secret PUT wrong /corpus
job_of refused '"prefix":"corpus"'
fails_at_once refused 'correct AWS_SECRET_ACCESS_KEY' "wrong credentials fail the job with a sentence"
