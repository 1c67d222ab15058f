# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $bin, $work and others are the caller's
#
# Jobs that keep their checkpoints in the bucket of server.sh, for scripts that source this file after scene.sh, training.sh and server.sh, and
# ways to disturb them.

secret() {
    api "$1" "api/v1/namespaces/default/secrets${4:-}" "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"bucket\"},
        \"stringData\":{\"AWS_ACCESS_KEY_ID\":\"$2\",\"AWS_SECRET_ACCESS_KEY\":\"$3\"}}" >secret.json
}
# job_of NAME [WORKERS [KEEP [MORE]]]: 60 steps with a checkpoint each 10 steps, of 20 MB, so that it is uploaded in parts; MORE is more of
# the section coxswain. The caller may set strategy, and, with a comma behind each, bounds (minReplicas and maxReplicas) and roles (further members
# of the spec);
# path, the folder of the checkpoints; bucket_of_job, another bucket; and held, the number of examples for validation;
# pause, the milliseconds that a step takes longer.
job_of() {
    [[ -e $1.delay ]] || delay "$1" "${pause:-100}" # so that no save has to be skipped because the one before is still being uploaded
    api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"workers\":{\"replicas\":${2:-1},${bounds:-}$(worker_template "$1")},${roles:-}\"runPolicy\":{\"backoffLimit\":100,\"cleanPodPolicy\":\"None\"},
        \"storage\":[{\"name\":\"digits\",\"persistentVolumeClaim\":{\"claimName\":\"digits\"},\"readOnly\":true},
            {\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}},
            {\"name\":\"bucket\",\"s3\":{\"endpoint\":\"$proxy_endpoint\",\"bucket\":\"${bucket_of_job:-runs}\",\"prefix\":\"some/jobs\",
                \"secretRef\":{\"name\":\"bucket\"}}}],
        \"coxswain\":{\"strategy\":{${strategy:-\"type\":\"MultiWorkerMirrored\"}},\"model\":{\"preset\":\"mlp\",\"width\":2048},
            \"data\":{\"format\":\"IDX\",\"storage\":\"digits\",\"train\":{\"images\":\"images\",\"labels\":\"labels\"}${held:+,\"validation\":{\"last\":$held\}}},
            \"training\":{\"steps\":60,\"batchSize\":24,\"logicalShards\":4,\"seed\":7,\"optimizer\":{\"type\":\"AdamW\",\"learningRate\":\"2e-4\"}},
            \"checkpoint\":{\"storage\":\"bucket\",\"everySteps\":10,\"keep\":${3:-2}${path:+,\"path\":\"$path\"}},
            \"export\":{\"storage\":\"runs\",\"path\":\"$1.safetensors\"}${4:-}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

# objects JOB: the names of its objects
objects() {
    storage list "some/jobs/default/$1/" | sed "s:^[0-9]* some/jobs/default/$1/::"
}

# committed JOB [STEP]: the names of its committed checkpoints
committed() {
    objects "$1" | sed -n "s:^\(step-0*${2:-[0-9]}[^/]*\)/manifest.json:\1:p"
}

proxy_has() {
    grep -q "$1" proxy.log
}

# kill_member JOB INDEX
kill_member() {
    local process
    process=$(process_of "$(member "$1" "$2")")
    [[ $process ]] && kill -KILL "$process"
}

kill_chief() {
    kill_member "$1" 0
}

ends_with_same_weights() {
    wait_for "$1" state Succeeded 60 && same_weights undisturbed "$1"
}
