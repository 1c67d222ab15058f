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
        \"spec\":{\"workers\":{\"replicas\":2},\"storage\":[{\"name\":\"corpus\",\"s3\":{\"endpoint\":\"$proxy_endpoint\",\"bucket\":\"runs\",
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

# ---- the messages of jobs that fail
fails_with() {
    wait_for "$1" state Failed 20 && job_says "$1" "$2"
    verdict $? "$3" "$(api GET "$jobs_path/$1" | tail -c 1500)"
}
job_of nowhere '"prefix":"none"'
fails_with nowhere 'no object at none/mnist/images; correct the prefix or the path' "an object that is not there fails the job with a sentence"
job_of small '"prefix":"corpus","cacheSize":"1k"'
fails_with small 'raise cacheSize' "objects larger than the cache fail the job with a sentence"
secret PUT wrong /corpus
job_of refused '"prefix":"corpus"'
fails_with refused 'correct AWS_SECRET_ACCESS_KEY' "wrong credentials fail the job with a sentence"
job_of saves '"prefix":"corpus"' ',"export":{"storage":"corpus","path":"w.safetensors"}' | grep -q 'is object storage, to which only checkpoints of section coxswain are saved'
verdict $? "an export to a bucket is refused" "$(cat answer.json)"
