#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# GPUs of `cox run` on one machine: each pod that requests some has its own, others wait for them or see none. CUDA_VISIBLE_DEVICES stands
# for GPUs here, since the scripts that run open none (tests/gpu/check-run has workers that do). Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/cox.sh"
. "$root/tests/integration/runs.sh"

: >record
# Each pod says which GPUs it sees, waits while there is a file `stay`, and says that it ends.
cat >script <<'SH'
echo "begins $NAME ${CUDA_VISIBLE_DEVICES-unset}" >>"$WORK/record"
while [ -e "$WORK/stay" ]; do sleep 0.1; done
sleep 1
echo "ends $NAME ${CUDA_VISIBLE_DEVICES-unset}" >>"$WORK/record"
echo '{"metrics":{"score":1}}' >"${COXSWAIN_TERMINATION_LOG:-/dev/termination-log}"
SH

# template DEVICES WORKERS: the spec of a job of such scripts
template() {
    cat <<YAML
image: any
pytorch: {}
devices: $1
workers:
  replicas: $2
  template:
    spec:
      containers:
      - name: trainer
        command: [sh, $work/script]
        env:
        - {name: WORK, value: $work}
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
YAML
}

# job NAME DEVICES WORKERS
job() {
    {
        printf 'apiVersion: coxswain.dev/v1beta1\nkind: TrainingJob\nmetadata: {name: %s}\nspec:\n' "$1"
        template "$2" "$3" | sed 's/^/  /'
    } >"$1.yaml"
}

# sweep NAME DEVICES WORKERS: four trials, all of which may run at a time
sweep() {
    {
        cat <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: $1}
spec:
  parallelism: 4
  algorithm: {type: Grid}
  objective: {metric: score, goal: Maximize}
  parameters: [{env: VALUE, values: [1, 2, 3, 4]}]
  template:
YAML
        template "$2" "$3" | sed 's/^/    /'
    } >"$1.yaml"
}

# seen WORD: the GPUs of pods that begin, or end, sorted
seen() {
    awk -v what="$1" '$1 == what { print $3 }' record | sort | paste -sd ' '
}

# never_shared: no GPU has been with two pods at a time
never_shared() {
    awk '{ n = split($3, gpus, ",")
           for (i = 1; i <= n; i++) {
               if ($1 == "begins" && had[gpus[i]]++) exit failed = 1
               if ($1 == "ends") had[gpus[i]]--
           } }
         END { exit failed }' record
}

start() {
    CUDA_VISIBLE_DEVICES=$1 "$bin/cox" run "$2" >ran 2>&1 </dev/null &
    runner=$!
}

ended_with() {
    local code=0
    wait "$runner" || code=$?
    runner=
    ((code == $1))
}

# has_begun PODS
has_begun() {
    (($(grep -c begins record) == $1))
}

# Two of the four trials, whichever came last.
two_wait_for_a_gpu() {
    for ((trial = 0; trial < 4; trial++)); do
        KUBECONFIG=$folder/default-trials/kubeconfig "$bin/cox" why "trials-$trial"
    done >waits 2>&1
    (($(grep -c "1 GPU needed, and 0 of this machine's 2 are free" waits) == 2))
}

# Succeeds once the control plane of the killed command has ended.
goes_on() {
    CUDA_VISIBLE_DEVICES=1 cox 0 run killed.yaml >/dev/null
}

job crew '{type: GPU, count: 2}' 2
CUDA_VISIBLE_DEVICES=5,0,7,1 cox 0 run crew.yaml && [[ $(seen begins) == '5,0 7,1' ]]
verdict $? "each worker has GPUs of its own, of those that the caller may use" "$(said; cat record)"
job wide '{type: GPU, count: 3}' 2
CUDA_VISIBLE_DEVICES=0,1,2,3 cox 1 run wide.yaml &&
    grep -q "pods need 6 GPUs together, and this command may use 4 of this machine by CUDA_VISIBLE_DEVICES" err && [[ ! -d $folder/default-wide ]]
verdict $? "more than there are is refused before a pod starts" "$(said)"
CUDA_VISIBLE_DEVICES='' cox 1 run crew.yaml --fresh && grep -q 'needs 4 GPUs, and this command may use none' err
verdict $? "and any where there are none" "$(said)"

: >record
job plain '{type: CPU}' 1
CUDA_VISIBLE_DEVICES=0,1 cox 0 run plain.yaml && [[ $(seen begins) == '' ]] && grep -q '^begins plain-worker-0-1 $' record
verdict $? "a job that requests none sees none" "$(said; cat record)"
: >record
job any '{type: Auto, count: 2}' 1
CUDA_VISIBLE_DEVICES=0,1,2 cox 0 run any.yaml && [[ $(seen begins) == 0,1 ]]
verdict $? "Auto has GPUs where there are enough" "$(said; cat record)"
: >record
CUDA_VISIBLE_DEVICES=0 cox 0 run any.yaml --fresh && grep -q '^begins any-worker-0-1 $' record
verdict $? "and none where there are too few" "$(said; cat record)"

: >record
touch stay
sweep trials '{type: GPU}' 1
start 0,1 trials.yaml
until_true 60 has_begun 2
until_true 20 two_wait_for_a_gpu
verdict $? "a trial that finds no free GPU says what it waits for" "$(cat waits record ran)"
rm stay
ended_with 0 && [[ $(seen begins) == '0 0 1 1' ]] && never_shared && grep -q 'warning: parallelism: the 4 trials .* need 4 GPUs' ran
verdict $? "and has that of the first one that ends" "$(cat ran record)"

: >record
sweep crews '{type: GPU}' 2
start 0,1,2 crews.yaml
ended_with 0 && [[ $(grep -c ends record) == 8 ]] && never_shared
verdict $? "two crews never wait for each other's GPUs" "$(cat ran record)"

: >record
touch stay
job killed '{type: GPU}' 1
start 1 killed.yaml
until_true 60 has_begun 1
kill -KILL "$runner"
wait "$runner" 2>/dev/null
runner=
rm stay
until_true 60 goes_on && [[ $(seen ends) == 1 ]]
verdict $? "after a kill the next command has the GPUs again" "$(said; cat record)"

# announced GPUS COUNT: how often a plane that may use these says so many (capacity, allocatable); it has the state of the one before
announced() {
    rm -f state/kubeconfig
    CUDA_VISIBLE_DEVICES=$1 plane_start
    api GET api/v1/nodes/localhost | grep -o "\"nvidia.com/gpu\": *\"$2\"" | wc -l
    plane_stop
}

[[ $(announced 0,4,2 3) == 2 && $(announced 1 1) == 2 && $(announced '' '[0-9]*') == 0 ]]
verdict $? "the node announces those of each start" "$(cat standalone.log)"
