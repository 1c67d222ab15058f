#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cox run checks a job before it starts any pod: layers, files of the data, batches, memory. A job that cannot train leaves nothing behind,
# and a suspicious one a warning. Then what a first long job meets: it is killed, continued, used before it has saved, and cannot save.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
# shellcheck source=tests/integration/verdict.sh
. "$root/tests/integration/verdict.sh"
# shellcheck source=tests/integration/cox.sh
. "$root/tests/integration/cox.sh"
work=$(mktemp -d)
runner=
finish() {
    if [[ -n $runner ]]; then kill "$runner" 2>/dev/null && wait "$runner" 2>/dev/null; fi
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
export HOME=$work
# shellcheck disable=SC2034 # cox.sh calls it
cox_command=(timeout 120 "$bin/cox")

# refused TEXT: cox run has ended with one sentence that has TEXT, and nothing was created
refused() {
    [[ $(wc -l <err) == 1 && ! -s out && ! -e .local ]] && grep -qF -- "$1" err
}

cat >layers.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: layers}
spec:
  workers: {replicas: 2}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model:
      inputShape: [28, 28, 1]
      layers:
        - {type: Conv2D, filters: 8, kernel: 3}
        - {type: MaxPool, size: 2}
        - {type: Flatten}
        - {type: Dense, units: 10}
    data: {format: Synthetic, examples: 200}
    training: {steps: 3, batchSize: 20, optimizer: {type: SGD, learningRate: "0.1"}}
YAML
cox 1 run layers.yaml --set 'spec.coxswain.model.layers[1].size=40' &&
    refused 'cox run: model.layers[1] (maxPool1): a window of 40 does not fit an image of 26x26'
verdict $? "layers that do not fit together are refused before a pod starts" "$(said)"
cox 1 run layers.yaml --set 'spec.coxswain.model.inputShape=[784]' &&
    refused 'cox run: model.layers[0] (conv2d0): it takes images (height, width, channels), but its input is 784; change the layer before it, or, if it is the first one, model.inputShape'
verdict $? "a layer of images that gets a row" "$(said)"
cox 1 run layers.yaml --set 'spec.coxswain.model.layers=[{"type":"Flatten"},{"type":"Dense","units":8,"name":"a"},{"type":"Dense","units":4},{"type":"Add","inputs":["a","dense2"]}]' &&
    refused 'cannot add 8 and 4; give the two layers before it the same output, such as by their units or filters'
verdict $? "layers of different sizes that are added" "$(said)"
cox 2 run layers.yaml --volumes x && grep -qx 'did you mean --volume?' err
verdict $? "an option that was probably meant" "$(said)"
cox 1 run layers.yaml --set 'spec.coxswain.model={"preset":"lenet"}' --set 'spec.coxswain.data={"format":"IDX","storage":"digits","path":"mnist","train":{"images":"t10k-images-idx3-ubyte.gz","labels":"t10k-labels-idx1-ubyte.gz"}}' \
    --set 'spec.storage=[{"name":"digits","persistentVolumeClaim":{"claimName":"digits"}}]' --volume "digits=$work" &&
    refused "/mnist/t10k-images-idx3-ubyte.gz: No such file or directory. \`cox demo\` downloads this file once; then give the folder with --volume digits=~/.cache/coxswain/data"
verdict $? "the digits of the examples are missing" "$(said)"
cox 1 run layers.yaml --set 'spec.coxswain.model.layers[0].filters=60000' --set spec.coxswain.training.batchSize=1000000 &&
    refused 'cox run: the memory plan needs ' && grep -q 'it would fit with training.batchSize: ' err
verdict $? "a job that needs more memory than the machine has" "$(said)"
cox 1 run layers.yaml --set spec.coxswain.training.optimizer.learningRate=0 && [[ ! -e .local/state/coxswain/default-layers ]] &&
    grep -q 'learningRate: 0 is out of bounds; give a number above 0' err
verdict $? "a value that is always wrong is refused by the API" "$(said)"
rm -rf .local

mkdir data
printf 'a,b,kind\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n9,9,x\n1,3,y\n' >data/table.csv
cox 0 generate table --data data && mv out table.yaml
claim=--volume=data=$work/data
mv data/table.csv data/other.csv
cox 1 run table.yaml "$claim" && refused "$work/data/table.csv: No such file or directory; the folder has other.csv"
verdict $? "a file that is missing is named as it is called on this machine" "$(said)"
mv data/other.csv data/table.csv
cox 1 run table.yaml "$claim" --set 'spec.coxswain.model.inputShape=[3]' && refused 'training data: '
verdict $? "data that does not fit the model" "$(said)"
sed 's/,x$/,/' data/table.csv >data/hole.csv
cox 1 run table.yaml "$claim" --set spec.coxswain.data.train.files=hole.csv && refused "$work/data/hole.csv"
verdict $? "a table with a hole" "$(said)"
cox 1 run table.yaml "$claim" --set spec.coxswain.init.path=/nowhere/model.safetensors && refused 'init.path: read the initial weights in /nowhere/model.safetensors'
verdict $? "initial weights that are not there" "$(said)"

cox 1 run table.yaml "$claim" --set spec.coxswain.data.train.files=tabel.csv && refused 'data/tabel.csv: No such file or directory; did you mean table.csv?'
verdict $? "a file whose name is misspelt" "$(said)"
cox 0 run table.yaml "$claim" --set spec.coxswain.model.classes=3 --set metadata.name=three && grep -q '^cox run: warning: the model has 3 classes, but the labels only 2 different values; ' err
verdict $? "a model with more classes than the labels name" "$(said)"
cox 0 run table.yaml "$claim" --set spec.coxswain.training.batchSize=500 && grep -q '^cox run: warning: a batch of 500 is more than the [0-9]* training examples' err
verdict $? "a batch larger than the data is told" "$(said)"
gzip -c data/table.csv >data/packed.csv && echo '30000 packed.csv' >slow
rate=(--set metadata.name=slow --set spec.coxswain.data.train.files=packed.csv --set spec.coxswain.training.optimizer.learningRate=100)
LD_PRELOAD=$bin/tests/slow-disk.so SLOW_DISK=$work/slow "${cox_command[@]}" run table.yaml "$claim" "${rate[@]}" >out 2>err
rm data/packed.csv
grep -q '^cox run: warning: the data was not checked, since opening it takes longer than 20 s$' err && grep -q '^cox run: warning: .*learningRate: 100 is very high' err
verdict $? "data that takes long to open does not keep back the other warnings" "$(said)"
cox 0 run layers.yaml --set spec.coxswain.training.optimizer.learningRate=1e-9 --set spec.workers.replicas=1 &&
    ! grep -q warning err
verdict $? "a usual job has no warning" "$(cat err)"
cox 1 run layers.yaml --set 'spec.coxswain.model.layers[1].size=40' && grep -q 'model.layers\[1\] (maxPool1): a window of 40 does not fit' err && ! grep -q immutable err
verdict $? "a job that has changed is checked before it is compared with the earlier one" "$(said)"
cox 1 run layers.yaml --fresh --set spec.coxswain.training.optimizer.learningRate=1000 --set spec.coxswain.training.steps=50 &&
    grep -q '^cox run: warning: training.optimizer.learningRate: 1000 is very high for SGD' err
verdict $? "a suspicious learning rate is told, and the job runs" "$(said)"

# The checkpoints of another model, which the pods would find at step 0.
cat >saves.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: saves}
spec:
  storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]
  coxswain:
    strategy: {type: OneDevice}
    model: {preset: mlp, width: 16, depth: 1}
    data: {format: Synthetic, examples: 200}
    training: {steps: 6, batchSize: 20, optimizer: {type: SGD, learningRate: "0.1"}}
    checkpoint: {storage: runs, everySteps: 3}
YAML
mkdir runs
wider=(--set spec.coxswain.model.width=32) kept_in=--volume=runs=$work/runs
misfits() {
    [[ $(wc -l <err) == 1 && ! -s out && ! -e two ]] && grep -q "^cox run: the checkpoint of step 6 in $1 does not fit this job: $2$" err
}
cox 0 run saves.yaml --state one "$kept_in" && find runs -printf '%p %s %T@\n' | sort >before &&
    cox 1 run saves.yaml --state two "$kept_in" "${wider[@]}" &&
    misfits "$work/runs/saves" 'tensor [a-z0-9]*.weight is 16 x 784 in the checkpoint and 32 x 784 in the model; to begin at step 0: --set spec.coxswain.checkpoint.path=ANOTHER'
verdict $? "the checkpoint of another model is refused before a pod starts" "$(said)"
cox 1 run saves.yaml --state two "$kept_in" --set spec.coxswain.training.optimizer.type=AdamW && misfits "$work/runs/saves" 'tensor adam.m/.* is missing; the model or the optimizer has changed; .*' &&
    find runs -printf '%p %s %T@\n' | sort | cmp - before
verdict $? "that of another optimizer, too, and nothing is written" "$(said)"
newest=$(echo runs/saves/step-00000006*)
cp -r "$newest" kept && echo x >>"$(echo "$newest"/*.safetensors)" && cox 1 run saves.yaml --state two "$kept_in" "${wider[@]}" &&
    grep -q 'the checkpoint of step 3 in .* does not fit' err && [[ -e $newest ]] && rm -r "$newest" && mv kept "$newest"
verdict $? "a damaged one is left alone, and the one before is compared" "$(said)"
echo '600000 .safetensors' >slow
LD_PRELOAD=$bin/tests/slow-disk.so SLOW_DISK=$work/slow cox 1 run saves.yaml --state two "$kept_in" "${wider[@]}" && misfits "$work/runs/saves" 'tensor [a-z0-9]*.weight is .*'
verdict $? "only the headers of a checkpoint are read, since reading its numbers may take long" "$(said)"
cox 0 run saves.yaml --state two "$kept_in" "${wider[@]}" --set spec.coxswain.checkpoint.path=other && cox 0 run saves.yaml --state three "$kept_in" &&
    grep -q 'goes on from the checkpoints of an earlier run, up to step 6' err
verdict $? "another path, and the same model, are taken" "$(said)"
rm -r two three
cox 0 run saves.yaml --state own && cox 1 run saves.yaml --state own "${wider[@]}" --fresh && misfits "$work/own/volumes/default/runs/saves" '.*; to begin at step 0: --fresh --delete-volumes, or --set .*' &&
    [[ -e own/run.json ]] && cox 0 run saves.yaml --state own "${wider[@]}" --fresh --delete-volumes
verdict $? "with --fresh they are compared unless --delete-volumes deletes them" "$(said)"
best=(--set 'spec.coxswain.data.validation={last: 20}' --set spec.coxswain.evaluation.everySteps=3 --set spec.coxswain.checkpoint.keepBest=true
    --set 'spec.coxswain.export={storage: runs, path: best.safetensors, weights: Best}' --fresh --delete-volumes)
cox 0 run saves.yaml --state own "${best[@]}" && [[ -s own/volumes/default/runs/best.safetensors ]]
verdict $? "a job that exports its best weights begins anew, too" "$(said)"
# The rate goes up and up, so that the last weights are worse.
cox 0 run saves.yaml --state own "${best[@]}" --set spec.coxswain.training.steps=12 --set 'spec.coxswain.training.optimizer={type: AdamW, learningRate: "4", schedule: {type: Constant, warmupSteps: 12}}' &&
    told=$(sed -n 's/^saves is done: \(.* %\) right on 20 held-out examples with the best weights, of step 3, which are exported$/\1/p' out) && [[ -n $told ]] &&
    last=$(sed -n 's/^  losses .*, held out \([0-9.]*\) (last), [0-9.]* (best)$/\1/p' out) && cox 0 predict own all && predicted=$(<out) && [[ $predicted == *"accuracy ${told% %}0 %: "* && $predicted != *"loss $last,"* ]] &&
    cox 0 runs --state own && grep -q "  $told (best, step 3)  " out
verdict $? "and its score is that of these weights" "$(said)"
rm -rf .local

# A sweep, whose jobs are made of a template.
cat >sweep.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: wide}
spec:
  objective: {metric: loss, goal: Minimize}
  maxTrials: 2
  parameters:
    - {path: coxswain.training.optimizer.learningRate, values: ["0.1", "0.2"]}
  template:
YAML
sed -n '/^spec:/,$p' layers.yaml | sed '1d; s/^/  /; s/size: 2/size: 40/' >>sweep.yaml
rm -rf .local
cox 1 run sweep.yaml && refused 'model.layers[1] (maxPool1): a window of 40 does not fit'
verdict $? "the template of a sweep is checked, too" "$(said)"
sed -e 's/size: 40/size: 2/' -e 's/metric: loss/metric: los/' sweep.yaml >los.yaml
cox 1 run los.yaml && refused 'spec.objective.metric: the trials do not report "los" (did you mean "loss"?)'
verdict $? "so is its metric" "$(said)"
sed -e 's/size: 40/size: 2/' -e 's/metric: loss/metric: validationAccuracy/' sweep.yaml >lowest.yaml
cox 0 run lowest.yaml --set 'spec.template.coxswain.data.validation={last: 10}' &&
    grep -qx 'cox run: warning: objective.goal: with Minimize the trial with the lowest validationAccuracy is the best; write goal: Maximize' err
verdict $? "and its goal" "$(said)"
rm -rf .local
sed 's/{path: .*}/{path: coxswain.model.layers.1.size, values: [2, 3]}/' sweep.yaml >placeholder.yaml
cox 0 run placeholder.yaml && ! grep -q warning err
verdict $? "a template that fits with the values of its parameters only" "$(said)"
sed 's/size: 40/size: 2/; s/^  maxTrials: 2$/&\n  earlyStopping: {type: ASHA, minSteps: 5000}/' sweep.yaml >late.yaml
cox 0 run late.yaml --fresh && grep -q '^cox run: warning: earlyStopping.minSteps: a trial takes [0-9]* steps, so none is stopped or paused after 5000; lower minSteps$' err &&
    cox 0 run late.yaml --fresh --set spec.earlyStopping.minSteps=1 && ! grep -q minSteps err
verdict $? "a minSteps that no trial comes to" "$(said)"
sed 's/size: 40/size: 2/; s/{path: .*}/{path: coxswain.training.batchSize, values: [10, 20]}/; s/^  maxTrials: 2$/&\n  earlyStopping: {type: ASHA, minSteps: 1}/' sweep.yaml >batches.yaml
cox 0 run batches.yaml --fresh && grep -q '^cox run: warning: earlyStopping: rungs count steps, so trials with larger batches have seen more examples at each rung' err
verdict $? "batches of different sizes are compared at rungs" "$(said)"
sed 's/size: 40/size: 2/; s/^  maxTrials: 2$/&\n  parallelism: 400/' sweep.yaml >side.yaml
side='^cox run: warning: the 2 trials that run side by side have 4 pods, which share [123] processors*, so each trial may train more slowly; lower parallelism'
cox 0 run side.yaml --fresh && if (($(nproc) < 4)); then grep -q "$side" err; else ! grep -q 'side by side' err; fi
verdict $? "trials that run side by side need more than one" "$(said)"
sed 's/{path: .*}/{path: coxswain.model.layers.1.size, values: [40, 2]}/; s/size: 40/size: 2/' sweep.yaml >values.yaml
cox 0 run values.yaml --fresh
grep -q "^cox run: warning: the first trial would fail with its values: model.layers\[1\] (maxPool1): a window of 40" err && grep -q '1 of 2 trials succeeded' out
verdict $? "values of which some do not fit are told, and the sweep runs" "$(said)"
rm -rf .local

# Files that are not there yet, and GPUs that are not there at all.
sed 's/claimName: data$/&\n      download: {sources: [{url: "https:\/\/127.0.0.1:1\/table.csv", sha256: '"$(printf 'a%.0s' {1..64})"'}]}/; s/ readOnly: true//' table.yaml >download.yaml
grep -q download: download.yaml && mkdir empty && timeout 10 "$bin/cox" run download.yaml --volume "data=$work/empty" >out 2>err
grep -q '^table is Created' err out
verdict $? "files that a download brings are not looked for" "$(cat out err)"
timeout 10 "$bin/cox" run download.yaml --fresh >out 2>err
grep -q '^table is Created' err out
verdict $? "a claim with a download needs no --volume" "$(cat out err)"
rm -rf .local
cox 1 run layers.yaml --set 'spec.devices={type: GPU, count: 16}' && refused 'cox run: devices.type: '
verdict $? "GPUs that the machine does not have" "$(said)"

# ---- a long job

sed -e 's/name: layers/name: long/' -e 's/steps: 3,/steps: 1000000,/' -e 's/"0.1"/"0.001"/' layers.yaml >long.yaml
cat >>long.yaml <<'YAML'
    checkpoint: {storage: runs, everySeconds: 2}
  storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]
YAML

# long_start LOG: runs the job in the background; it has made a step when this returns
long_start() {
    "$bin/cox" run long.yaml >"$1" 2>&1 </dev/null &
    runner=$!
    until_true 60 grep -q '^step [0-9]' "$1"
}

# long_end SIGNAL
long_end() {
    kill -s "$1" "$runner"
    wait "$runner" 2>/dev/null
    runner=
}

has_saved() {
    compgen -G '.local/state/coxswain/default-long/volumes/default/runs/long/*/manifest.json' >/dev/null
}

# workers: the processes of this test's pods
workers() {
    local at
    for at in /proc/[0-9]*; do
        [[ $(cat "$at/comm" 2>/dev/null) == coxswain-worker ]] && grep -qs "$work" "$at/environ" && echo "${at#/proc/}"
    done
}

sed 's/everySeconds: 2/everySteps: 1000000/; s/name: long/name: unsaved/' long.yaml >unsaved.yaml
"$bin/cox" run unsaved.yaml >unsaved.log 2>&1 </dev/null &
runner=$!
until_true 60 grep -q '^step [0-9]' unsaved.log && cox 1 predict unsaved && [[ $(wc -l <err) == 1 ]] &&
    grep -q '^cox predict: .* holds no checkpoint; unsaved is at step [0-9]* and has saved none yet; checkpoint.everySteps' err && ! grep -q 'exit [0-9]' err
verdict $? "cox predict of a job that has saved nothing yet" "$(said)"
cox 2 predict unsaved one && grep -qx 'cox predict: "one" is neither "all" nor the number of an example, from 0' err
verdict $? "cox predict with a word for a number" "$(said)"
long_end KILL
cox 0 runs && printed '^unsaved  *Job  *[A-Z][a-z]*  *[1-9][0-9]*/1000000 '
verdict $? "cox runs shows the step of a job that was killed in its first seconds" "$(said)"
sed 's/name: unsaved/name: diverged/; s/"0.001"/"1000"/' unsaved.yaml >diverged.yaml
cox 1 run diverged.yaml && cox 1 predict diverged && grep -q ' holds no checkpoint; diverged failed at step [0-9]* before it saved one; run it again$' err
verdict $? "cox predict of a job that has failed before it saved" "$(said)"

long_start first.log && until_true 60 has_saved && long_end INT
step=$(sed -n 's/^Interrupted after step \([0-9]*\)\..*/\1/p' first.log)
[[ ${step:-0} -gt 0 ]]
verdict $? "a job is interrupted" "$(tail -n 3 first.log)"
long_start second.log && long_end INT
grep -q '^chief: resumes from the checkpoint of step [1-9]' second.log && ! grep -q 'long-worker-.-1)' second.log &&
    [[ $(grep -c '^chief: model ' second.log) == 1 && $(head -n 1 second.log) != step* ]] &&
    awk -v before="$step" '/^step / { split($2, at, "/"); if (at[1] + 0 < before + 0) bad = 1 } END { exit bad }' second.log
verdict $? "and continued: only what is new is shown, after the step that it resumes from" "$(cat second.log)"

if command -v prlimit >/dev/null; then
    long_start third.log
    # cannot_save: has told it; the workers that train may have started after the first step that was shown
    cannot_save() {
        for pid in $(workers); do prlimit --fsize=1024: --pid "$pid"; done 2>/dev/null
        grep -q '^warning: .*save' third.log
    }
    until_true 60 cannot_save && before=$(grep -c '^step ' third.log) &&
        more_steps() { (($(grep -c '^step ' third.log) > before)); } && until_true 30 more_steps && kill -0 "$runner"
    verdict $? "a checkpoint that cannot be saved is a warning of cox run, and the job goes on" "$(cat third.log)"
    long_end INT
else
    echo "skip a checkpoint that cannot be saved: prlimit is not installed"
fi
