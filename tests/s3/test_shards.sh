#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs in which several pods write a checkpoint together, to a bucket of a real S3 server: shardedOptimizer, Pipeline, ParameterServer. Pods
# are killed while a shard is uploaded and before the manifest is, the whole crew is killed, its size changes. Each job has to end in the
# weights of an undisturbed one, bit for bit. Prints ok/not ok lines (see tests/run).
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

# shards JOB: how many shards of its checkpoints are in the bucket
shards() {
    objects "$1" | grep -c '^shards/shard-'
}

says_end() {
    api GET "$jobs_path/$1" | tail -c 1200
    log_of "$(member "$1" 0)" | grep -v '^step' | tail -n 12
    objects "$1"
}

# pods_of JOB ROLE [LABELS]: the names of its current pods
pods_of() {
    api GET "$pods_path?labelSelector=coxswain.dev/job-name%3D$1,coxswain.dev/current=true,coxswain.dev/role=$2${3:+,$3}" |
        tr -d '\n' | grep -o "\"name\": *\"$1-$2-[0-9-]*\"" | sed 's/.*"\('"$1"'[^"]*\)"/\1/' | sort -u
}

gone() {
    [[ -z $(pods "$1") ]]
}

# undisturbed NAME WORKERS SHARDS: the reference of the jobs that follow; SHARDS is how many a checkpoint has
undisturbed() {
    job_of "$1" "$2"
    wait_for "$1" state Succeeded 30 && [[ -s runs/$1.safetensors && $(committed "$1" | wc -l) == 2 && $(committed "$1" 60) ]]
    verdict $? "$1: a job saves to a bucket" "$(says_end "$1")"
    [[ $(shards "$1") == $((2 * $3)) ]]
    verdict $? "$1: no shard is left that no checkpoint has" "$(objects "$1")"
}

ends_like() {
    wait_for "$1" state Succeeded 30 && cmp "runs/$1.safetensors" "runs/$2.safetensors"
}

# crew_killed NAME REFERENCE WORKERS: all workers are killed when the manifest of step 30 is all that lacks
crew_killed() {
    local index processes=()
    : >proxy.log
    proxy_rules '[{"method":"PUT","path":"000030.attempt-1.incarnation-1/manifest.json","fault":"hang"}]'
    job_of "$1" "$3"
    until_true 20 proxy_has 'PUT.*000030.*manifest.json.* hang' && [[ -z $(committed "$1" 30) ]]
    verdict $? "$1: the shards of a checkpoint are uploaded before its manifest" "$(says_end "$1")"
    for ((index = 0; index < $3; index++)); do processes+=("$(process_of "$(member "$1" "$index")")"); done
    kill -KILL "${processes[@]}"
    proxy_rules '[]'
    ends_like "$1" "$2" && log_of "$(member "$1" 0)" | contains 'from the checkpoint of step [12]0'
    verdict $? "$1: a new crew goes on from the bucket, and no bit is lost" "$(says_end "$1")"
}

# ---- shardedOptimizer

strategy='"type":"MultiWorkerMirrored","shardedOptimizer":true'
undisturbed sharded 2 1
crew_killed sharded-crew sharded 2

: >proxy.log
proxy_rules '[{"method":"PUT","path":"shards/shard-00001","fault":"hang","skip":2,"times":1}]'
job_of sharded-part 2
until_true 20 proxy_has 'PUT.*shard-00001.* hang' && sleep 0.5 && [[ $(committed sharded-part | wc -l) == 2 && -z $(committed sharded-part 30) ]]
verdict $? "sharded-part: without the shard of one worker nothing is committed" "$(says_end sharded-part)"
kill_member sharded-part 1 && proxy_rules '[]' && ends_like sharded-part sharded
verdict $? "sharded-part: a worker that is killed while it uploads its shard costs no bit" "$(says_end sharded-part)"

proxy_rules '[{"path":"shards/","fault":"status","status":503,"every":3,"times":12},{"method":"PUT","path":"shards/","fault":"cut-request","every":2,"times":3},
    {"method":"PUT","path":"shards/","fault":"lose-answer","times":2}]'
job_of sharded-faults 2
ends_like sharded-faults sharded && [[ $(committed sharded-faults | wc -l) == 2 ]]
verdict $? "sharded-faults: failing requests and lost answers cost no bit" "$(says_end sharded-faults)"

# A checkpoint of two workers is read by the three of another job in the same place.
proxy_rules '[]'
job_of sharded-two 2
await_step sharded-two 22
api DELETE "$jobs_path/sharded-two" >/dev/null
until_true 20 gone sharded-two
path=default/sharded-two job_of sharded-three 3
ends_like sharded-three sharded && log_of "$(member sharded-three 0)" | contains 'resumes from the checkpoint of step 2'
verdict $? "sharded-three: a crew of another size goes on from the bucket, and no bit is lost" "$(says_end sharded-three)"
[[ $(objects sharded-two | grep -c '^shards/shard-') == 4 ]]
verdict $? "sharded-three: it removes the shards of the job before" "$(objects sharded-two)"

# ---- Pipeline

strategy='"type":"Pipeline","stages":2'
undisturbed pipeline 2 1
crew_killed pipeline-crew pipeline 2

# ---- ParameterServer

strategy='"type":"ParameterServer","mode":"Synchronous"' roles='"parameterServers":{"replicas":2},"chief":{},'
undisturbed served 2 2
: >proxy.log
proxy_rules '[{"method":"PUT","path":"000030.attempt-1.incarnation-1/manifest.json","fault":"hang"}]'
job_of served-all 2
until_true 20 proxy_has 'PUT.*000030.*manifest.json.* hang'
processes=()
for role in ps chief worker; do
    for pod in $(pods_of served-all "$role"); do processes+=("$(process_of "$pod")"); done
done
((${#processes[@]} == 5))
verdict $? "served-all: five pods are to be killed" "${processes[*]}"
kill -KILL "${processes[@]}"
proxy_rules '[]'
ends_like served-all served && [[ $(committed served-all | wc -l) == 2 ]]
verdict $? "served-all: servers, workers and chief are killed before the manifest, and no bit is lost" "$(says_end served-all)"

: >proxy.log
strategy='"type":"ParameterServer","mode":"Async"' roles='"parameterServers":{"replicas":2},"chief":{},"evaluator":{},'
proxy_rules '[{"method":"PUT","path":"shards/shard-00001","fault":"hang","skip":2,"times":1}]'
held=100 job_of asynchronous 2
until_true 30 proxy_has 'PUT.*shard-00001.* hang' && [[ $(committed asynchronous | wc -l) == 2 ]]
verdict $? "asynchronous: without the shard of one server nothing is committed" "$(says_end asynchronous)"
pod=$(pods_of asynchronous ps coxswain.dev/index=1)
kill -KILL "$(process_of "$pod")"
proxy_rules '[]'
wait_for asynchronous state Succeeded 40 && [[ $(committed asynchronous | wc -l) == 2 && $(committed asynchronous 60) && $(shards asynchronous) == 4 ]]
verdict $? "asynchronous: a server that is killed while it uploads starts from the bucket" "$(says_end asynchronous)"
pod=$(pods_of asynchronous evaluator)
scored_last() {
    log_of "$pod" | contains 'validation after step 60'
}
until_true 15 scored_last
verdict $? "asynchronous: the evaluator scores checkpoints of the bucket, the last one too" "$(log_of "$pod")"
