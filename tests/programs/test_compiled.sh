#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What surrounds the code that a PJRT plugin compiles (worker/train/compilation.h): where it is kept, and for whom. Prints ok/not ok lines
# (see tests/run).
#
#   BUILD    the ordinary build; the one with XLA=1 lies below it
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/programs/with_plugin.sh"

make_digits
digits="{format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}"

# job NAME [STRATEGY [STEPS]]: of a preset that the plugin computes
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp}
data: $digits
training: {steps: ${3:-10}, batchSize: 50, logicalShards: 2, seed: 7, determinism: ${determinism:-Crew}, optimizer: {type: AdamW, learningRate: "2e-3"}}
strategy: {type: ${2:-OneDevice}}
devices: {plugin: $newer}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${from:-$1}, everySteps: 5, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

# ---- compiled code is kept, for who has the crew's key

head -c 32 /dev/urandom >key
# compiled WORDS: trains a job with that key anew, and its log has these
compiled() {
    rm -rf kept/step-*
    COXSWAIN_CREW_KEY_FILE=$work/key lone kept && grep -q "$1" kept.log && same_weights kept keyless
}
job keyless
lone keyless && [[ ! -e keyless/compiled ]]
verdict $? "without a key no compiled code is kept" "$(tails keyless)"
job kept
compiled 'compiling the program'
verdict $? "a program is compiled at the first start" "$(tails kept)"
compiled 'taken as it was compiled before'
verdict $? "and taken from beside the checkpoints at the next" "$(tails kept)"
XLA_FLAGS=--xla_cpu_enable_fast_math=false compiled 'compiling the program'
verdict $? "but not with other settings of the compiler" "$(tails kept)"
find kept/compiled -type f -printf "%T@ %p\n" | sort -n | tail -n 1 | cut -d " " -f 2 | xargs rm
printf x | dd of="$(echo kept/compiled/*)" bs=1 seek=1000 conv=notrunc 2>/dev/null
compiled 'compiling the program'
verdict $? "code that somebody has changed is not run" "$(tails kept)"

# ---- a job of one pod has such a key too, from the operator

mkdir cox && cp "$plain"/{cox,coxswain-operator,coxswain-standalone,coxswain-pod.so} "$worker" cox && ln -s "$root/deploy" cox/deploy
job alone OneDevice 1000000
cat >alone-job.yaml <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: alone}
spec:
  workers: {replicas: 1}
$(sed -n 's/^\(devices\|storage\): /  &/p' alone.yaml | sed 's/{name: runs}/{name: runs, persistentVolumeClaim: {claimName: runs}}/')
  coxswain:
$(sed '/^devices\|^storage/d; s/^/    /' alone.yaml)
YAML
cox/cox run alone-job.yaml --state "$work/state" --volume runs="$work" >alone.log 2>&1 &
runner=$!
until_true 120 has_saved alone && cox/cox restart alone --role worker --index 0 --kubeconfig state/kubeconfig >restart.log 2>&1
until_true 60 grep -q 'taken as it was compiled before' alone.log
verdict $? "the successor of a job's only pod takes what that has compiled" "$(tail -n 3 alone.log restart.log | tr '\n' ' ')"
kill -INT "$runner"
wait "$runner"

# ---- a compiler that a signal ends is started once more

# strike NAME SIGNAL TIMES: a process trains NAME.yaml, of a model that takes seconds to compile, and the signal goes to that many of its
# compilers. Returns the status with which it ends
strike() {
    local struck=' ' i victim child
    job "$1"
    sed -i "s|^model: .*|model: {preset: resnet20, depth: 3, inputShape: [28, 28, 1]}|" "$1.yaml"
    launch "$1" "$1.log" &
    victim=$!
    compiles() { child=$(pgrep -P "$victim" -f -- --compile-model) && [[ $struck != *" $child "* ]]; }
    for ((i = 0; i < $3; i++)); do
        until_true 30 compiles && kill "-$2" "$child" && struck+="$child "
    done
    wait "$victim"
}
strike once KILL 1 && grep -q 'starting it once more' once.log
verdict $? "a compiler that is killed once costs a warning" "$(tails once)"
strike twice KILL 2
[[ $? == 162 ]] && tail -n 1 twice.log | grep -q 'was killed (SIGKILL) with [0-9]* MiB in memory.*: raise resources.limits.memory.*limit here is [0-9]* MiB'
verdict $? "twice: the worker ends so that another pod tries, and says what is missing" "$(tails twice)"
strike crashed SEGV 2
[[ $? == 64 ]] && tail -n 1 crashed.log | grep -q 'ended with signal 11 while it compiled the model'
verdict $? "one that crashes twice ends the job" "$(tails crashed)"
