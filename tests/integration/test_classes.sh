#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ClusterTrainingClass and TrainingClass on the embedded control plane: a job waits for its class, keeps what it was created with, and says what is wrong;
# `cox run` takes a class in the same file, and trials of a sweep have the class of their template. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
patience=60
plane_start
operator_start
export KUBECONFIG=$work/state/kubeconfig HOME=$work
classes=apis/coxswain.dev/v1beta1/clustertrainingclasses

# class NAME SPEC
class() {
    api POST "$classes?fieldValidation=Strict" \
        "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"ClusterTrainingClass\",\"metadata\":{\"name\":\"$1\"},\"spec\":$2}"
}

# with_word WORD: a template whose pods say it, and idle
with_word() {
    echo "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"readinessProbe\":{\"exec\":{\"command\":[\"true\"]}},\"env\":[{\"name\":\"WORD\",\"value\":\"$1\"}],
        \"command\":[\"/bin/sh\",\"-c\",\"echo word \$WORD \$OWN; exec sleep 600\"]}]}}}"
}

# classy NAME CLASS [MORE [KIND]]: a job of that class
classy() {
    api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"trainingClass\":{\"kind\":\"${4:-ClusterTrainingClass}\",\"name\":\"$2\"},\"workers\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",
        \"env\":[{\"name\":\"OWN\",\"value\":\"mine\"}]}]}}},\"coxswain\":{\"strategy\":{\"type\":\"OneDevice\"},\"model\":{\"preset\":\"mlp\"},
        \"data\":{\"format\":\"Synthetic\",\"examples\":1000},\"training\":{\"steps\":10,\"batchSize\":100}${3:-}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

says() {
    log_of "$(member "$1" 0)" | contains "^word $2 mine"
}

# ---- a class that is not there yet

classy early small
until_true "$patience" job_says early 'ClusterTrainingClass small does not exist: create it' && no_pods_of early
verdict $? "a job waits for its class, and says for which" "$(api GET "$jobs_path/early")"
words=$("$bin/cox" why early 2>&1)
grep -q '^early waits for its class: ClusterTrainingClass small does not exist: create it' <<<"$words"
verdict $? "why says so" "$words"
class small "$(with_word first)" >answer.json
wait_for early state Running "$patience" && until_true "$patience" says early first
verdict $? "it starts when the class is there, with what both give" "$(cat answer.json; api GET "$jobs_path/early")"
api GET "$jobs_path/early" | tr -d ' \n' | contains '"trainingClass":{"name":"small","uid":"[^"]*","generation":1,"defaults":{'
verdict $? "its status has a copy" "$(api GET "$jobs_path/early")"

# ---- it keeps what it was created with

api PATCH "$classes/small" "{\"spec\":$(with_word second)}" >answer.json
operator_kill
operator_start
classy late small
wait_for late state Running "$patience" && until_true "$patience" says late second
verdict $? "a class that was changed gives the new to new jobs" "$(cat answer.json; api GET "$jobs_path/late")"
api DELETE "$classes/small" >/dev/null
old=$(member early 0)
api DELETE "$pods_path/$old" >/dev/null
gone_on() {
    [[ $(member early 0) != "$old" ]] && says early first
}
until_true "$patience" gone_on
verdict $? "and those from before keep theirs, also when it is gone and the operator another" "$(api GET "$jobs_path/early")"

# ---- a class of the namespace, beside one of the cluster with its name

class local "$(with_word cluster)" >/dev/null
classy near local '' TrainingClass
until_true "$patience" job_says near '"message":"TrainingClass local does not exist' && no_pods_of near
verdict $? "a TrainingClass is another thing than a ClusterTrainingClass" "$(api GET "$jobs_path/near")"
api POST "apis/coxswain.dev/v1beta1/namespaces/default/trainingclasses" \
    "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingClass\",\"metadata\":{\"name\":\"local\"},\"spec\":$(with_word namespace)}" >answer.json
wait_for near state Running "$patience" && until_true "$patience" says near namespace
verdict $? "and is taken from the job's namespace" "$(cat answer.json; api GET "$jobs_path/near")"

# ---- what is wrong

class bare '{"storage":[{"name":"runs"}]}' | tr '\n' ' ' >answer.json
grep -q 'each storage needs exactly one volume source' answer.json
verdict $? "a class is checked when it is written" "$(cat answer.json)"
class bare '{"storage":[{"name":"runs","emptyDir":{}}]}' >/dev/null
classy lost bare ',"checkpoint":{"storage":"other"}'
until_true "$patience" job_says lost 'with the defaults of ClusterTrainingClass bare: spec.coxswain.checkpoint.storage'
verdict $? "a storage that neither gives fails the job, and the message names the class" "$(api GET "$jobs_path/lost")"
null='{"template":{"spec":{"affinity":null}}}'
class empty "$null" >answer.json
classy refused empty
until_true "$patience" job_says refused 'correct ClusterTrainingClass empty: spec has null as affinity'
verdict $? "a class with null is not taken, which a copy cannot keep" "$(cat answer.json; api GET "$jobs_path/refused")"
api DELETE "$classes/empty" >/dev/null
until_true "$patience" job_says refused 'ClusterTrainingClass empty does not exist'
verdict $? "when it is deleted, the job says so" "$(api GET "$jobs_path/refused")"
class typo '{"template":{"spec":{"containers":[{"name":"trainer","imagePullPolcy":"Never"}]}}}' >/dev/null
classy blamed typo
until_true "$patience" job_says blamed 'spec.workers.template (with the defaults of ClusterTrainingClass typo): unknown field'
verdict $? "so does a field that pods do not have" "$(api GET "$jobs_path/blamed")"
class large '{"template":{"spec":{"containers":[{"name":"trainer","resources":{"limits":{"memory":"512Mbyte"}}}]}}}' >/dev/null
classy sized large
until_true "$patience" job_says sized 'spec.containers\[0\].resources.limits.memory: quantities must match .*; correct spec.workers.template (with the defaults of ClusterTrainingClass large)'
verdict $? "and a limit that is no quantity" "$(api GET "$jobs_path/sized")"
operator_kill
plane_stop

# ---- cox run

cat >run.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: ClusterTrainingClass
metadata: {name: small}
spec:
  storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]
---
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: classy}
spec:
  trainingClass: {name: small}
  coxswain:
    strategy: {type: OneDevice}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 500}
    training: {steps: 10, batchSize: 50}
    export: {storage: runs, path: model.safetensors}
YAML
unset KUBECONFIG
mkdir kept
timeout 120 "$bin/cox" run run.yaml --state "$work/run" --volume "runs=$work/kept" >out 2>&1 && [[ -s kept/model.safetensors ]]
verdict $? "cox run takes a class in the file of its job" "$(cat out)"
sed -e "s/^kind: TrainingJob/kind: TrainingSweep/; s/{name: classy}/{name: trials}/; /^  trainingClass/,\$s/^/  /" -e '/^    trainingClass/i\
  algorithm: {type: Grid}\
  objective: {metric: loss}\
  parameters: [{path: coxswain.training.seed, values: [1, 2]}]\
  template:' run.yaml >sweep.yaml
timeout 180 "$bin/cox" run sweep.yaml --state "$work/sweep" --volume "runs=$work/kept" >out 2>&1 && grep -q 'trials-1' out
verdict $? "and trials have the class of their template" "$(cat out sweep.yaml)"
timeout 120 "$bin/cox" run "$work/sweep/best.yaml" --state "$work/again" --volume "runs=$work/kept" >out 2>&1 && grep -q 'name: small' "$work/sweep/best.yaml"
verdict $? "and the file of a sweep's best job has its class, too" "$(cat out "$work/sweep/best.yaml")"
