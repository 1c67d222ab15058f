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

# ---- only the newest files are kept

rm -rf kept/compiled/* && for i in {1..20}; do : >"kept/compiled/old-$i" && touch -d "$((40 - i)) minutes ago" "kept/compiled/old-$i"; done
compiled 'compiling the program'
left=$(find kept/compiled -type f -printf '%f ')
(($(wc -w <<<"$left") == 16)) && [[ " $left" != *" old-5 "* && " $left" == *" old-6 "* && " $left" == *" old-20 "* ]]
verdict $? "of compiled code the 16 newest files are kept" "$left"
touch -d "1 day ago" kept/compiled/[0-9a-f]*[0-9a-f]
compiled 'taken as it was compiled before'
newest=$(find kept/compiled -type f -printf '%T@ %f\n' | sort -rn | head -n 1)
[[ $newest && $newest != *" old-"* ]]
verdict $? "code that is used counts as new" "$newest"

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

# ---- a program that was exported with another batch than the shards have

python "$root/tests/programs/export.py" mlp program 50 2>export.log
verdict $? "Python exports a function of JAX" "$(tail -n 3 export.log)"
job filled
sed -i 's|^model: .*|model: {program: {storage: runs, path: program}}|' filled.yaml
lone filled && grep -q '50 % of what the program computes only fills up its calls of 50 examples, since the logical shards have 25: export it with a batch of 25,' filled.log
verdict $? "a chief warns of calls that are half filled, and says which batch fits" "$(tails filled)"
sed -i 's/batchSize: 50/batchSize: 98/' filled.yaml
rm -rf filled && lone filled && ! grep -q 'only fills up' filled.log
verdict $? "but not of a few examples" "$(tails filled)"

# ---- members whose code could differ in its bits do not compute together

job flags MultiWorkerMirrored
start_pair flags XLA_FLAGS=--xla_cpu_enable_fast_math=false MEMBER=1
ended_with 162 "worker 1 has another XLA_FLAGS or LIBTPU_INIT_ARGS than the crew's, .*: set the same for all, or set training.determinism to Run" flags 1
verdict $? "a crew refuses a worker whose compiler has other settings" "$ended"
end_crew KILL
determinism=Run job free MultiWorkerMirrored
start_pair free XLA_FLAGS=--xla_cpu_enable_fast_math=false MEMBER=1
await_crew
verdict $? "unless it promises its own bits alone" "$(tails free)"
job plugins MultiWorkerMirrored
sed -i 's/^devices: .*/devices: {type: TPU, count: 1}/' plugins.yaml
start_pair plugins "COXSWAIN_PJRT_CPU_DEVICES=1 COXSWAIN_PJRT_PLUGIN=$newer" "COXSWAIN_PJRT_CPU_DEVICES=1 COXSWAIN_PJRT_PLUGIN=$older"
ended_with 162 "worker 1 has another PJRT plugin than the crew's, .*: give all the same image or devices.plugin" plugins 1
verdict $? "nor does it take one with another plugin" "$ended"
end_crew KILL

# ---- a checkpoint says with how many threads its program ran

# with_threads NAME THREADS [OPTION…]: a process for which nobody has chosen a number, on that many processors
processors=$(taskset -cp $$ | sed 's/.*: //')
with_threads() {
    (export LANG "${@:3}" && worker_options=() && taskset -cp "$2" $BASHPID >/dev/null && lone "$1")
}
first=${processors%%[,-]*}
if [[ $first == "$processors" ]]; then
    echo 'skip a checkpoint says with how many threads its program ran: there is one processor'
    exit
fi
job all OneDevice 30
with_threads all "$processors"
job begun OneDevice 15
with_threads begun "$processors"
from=begun job moved OneDevice 30
with_threads moved "$first" && grep -q 'restarting with the number of threads.*threads=' moved.log && same_weights moved all && grep -q 'resumes from the checkpoint of step 15' moved.log
verdict $? "on a smaller node a job goes on with as many threads, to the same bits" "$(tails moved)"
from=begun job told OneDevice 30
rm -rf begun
with_threads begun "$processors"
with_threads told "$processors" COXSWAIN_THREADS=16 && grep -q "step 15 was computed with another number of threads than this worker's" told.log
verdict $? "and with a number that somebody has chosen it warns" "$(tails told)"
