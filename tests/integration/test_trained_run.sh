#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What a run of `cox run` has left is used: cox predict and cox generate-text find its weights, and cox get, describe, why and logs show
# it when it is over. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/cox.sh"
. "$root/tests/integration/runs.sh"
. "$root/tests/integration/arrays.sh"

# Points in a plane, of two classes: the sign of the first number. What is asked later is in new.npy, and arrays that do not fit.
mkdir data
perl -e 'srand(1); for (1 .. 200) { print rand(2) - 1, " ", rand(2) - 1, "\n" }' >rows
array data/points.npy '<f4' '200, 2' 'f<*' <rows
awk '{ print ($1 > 0) }' rows | array data/labels.npy '<i4' '200,' 'l<*'
echo 0.9 0.1 -0.9 0.5 0.8 -0.3 | array new.npy '<f4' '3, 2' 'f<*'
echo {1..6} | array half.npy '<f2' '3, 2' 'S<*'
echo {1..6} | array wide.npy '<f4' '2, 3' 'f<*'
echo 1 1 | array one.npy '<f4' '2,' 'f<*'

cat >points.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: points}
spec:
  workers: {replicas: 1}
  storage: [{name: data, persistentVolumeClaim: {claimName: points}}, {name: runs, persistentVolumeClaim: {claimName: runs}}]
  coxswain:
    strategy: {type: OneDevice}
    model: {inputShape: [2], layers: [{type: Dense, units: 2}]}
    data: {format: NPY, storage: data, train: {images: points.npy, labels: labels.npy}, validation: {last: 20}}
    training: {steps: 100, batchSize: 20, optimizer: {type: AdamW, learningRate: 0.1}}
    checkpoint: {storage: runs, everySteps: 50}
    export: {storage: runs, path: points.safetensors}
YAML
cox 0 run points.yaml --volume points=data && printed 'To use the trained model:' ' predict points 0$'
verdict $? "a run ends with the command that uses it" "$(said)"
cox 0 predict points && printed '^loss .*, accuracy .* of 20$' && cp out all && grep -q 'points.safetensors' err
verdict $? "all held-out examples" "$(said)"
mkdir elsewhere
(cd elsewhere && cox 0 predict points all) && cmp -s out all && cox 0 predict points.yaml && cmp -s out all && cox 0 predict "$folder/default-points" &&
    cmp -s out all
verdict $? "from another folder, by the manifest, by the state directory" "$(said)"
cox 0 predict points 3 && printed '^class [01]: [0-9.]* %$' '^example 3 of 20 is of class [01]: '
verdict $? "one of them" "$(said)"
cox 0 predict points --data new.npy && [[ $(wc -l <out) == 3 ]] && printed '^example 0: class 1 [0-9.]* %, class 0 [0-9.]* %$' '^example 1: class 0 ' '^example 2: class 1 '
verdict $? "new examples" "$(said)"
cox 0 predict points 1 --data new.npy && printed '^class 0: ' && ! grep -q 'is of class' out && cox 2 predict points 3 --data new.npy && grep -q 'from 0 to 2' err
verdict $? "one new example" "$(said)"
cox 0 predict points --data new.npy --outputs && head -c 128 out | contains "'shape': (3, 2,)" && [[ $(wc -c <out) == $((128 + 24)) ]]
verdict $? "their outputs as an array" "$(cat err)"
cox 1 predict points --data half.npy && grep -q -- '--data half.npy: .*images of type f2; save them as uint8' err &&
    cox 1 predict points --data wide.npy && grep -q 'an example has 3 values, but the model.s input 2; change the file' err &&
    cox 1 predict points --data one.npy && grep -q 'give it a first dimension of 1' err && cox 1 predict points --data none.npy && grep -q 'none.npy' err
verdict $? "arrays that do not fit are refused" "$(said)"
cox 1 predict point && grep -q 'there is no run "point"; did you mean points?' err && cox 2 predict && cox 2 predict points 1 2 && cox 2 predict points --some &&
    cox 0 predict --help && printed '^usage: cox predict'
verdict $? "wrong usage" "$(said)"
cox 0 predict points --weights "$folder/default-points/volumes/default/runs/points" && grep -q 'the checkpoint of step 100' err
verdict $? "a checkpoint by its path" "$(said)"

cox 0 run points.yaml --volume points=data --state "$folder/demo/calm" --set spec.coxswain.training.steps=1 && printed ' predict demo/calm 0$' &&
    cox 0 predict demo/calm && ! cmp -s out all && cox 1 predict points && grep -q 'there are 2 runs "points"; name one by its directory' err &&
    cox 0 predict default-points && cmp -s out all && cox 0 runs && printed '^default-points ' '^demo/calm ' && cox 0 runs delete calm --yes && cox 0 predict points
verdict $? "of two runs with one name each is named by its directory" "$(said)"

mkdir text
for ((i = 0; i < 300; i++)); do printf 'Sphinx of black quartz, judge my vow. '; done >text/corpus.txt
cat >bytes.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: bytes}
spec:
  workers: {replicas: 1}
  storage: [{name: text, persistentVolumeClaim: {claimName: text}}, {name: runs, persistentVolumeClaim: {claimName: runs}}]
  coxswain:
    strategy: {type: OneDevice}
    model: {preset: gpt-bytes, width: 32, depth: 1, heads: 2, context: 48}
    data: {format: Bytes, storage: text, train: {text: corpus.txt}, validation: {last: 8}}
    training: {steps: 20, batchSize: 8, optimizer: {type: AdamW, learningRate: 0.01}}
    checkpoint: {storage: runs}
YAML
cox 0 run bytes.yaml --volume text=text && printed " generate-text bytes 'To be'$"
verdict $? "a text model" "$(said)"
cox 0 generate-text bytes 'Sphinx of' --tokens 20 --temperature 0 && [[ $(wc -c <out) == 30 ]] && printed '^Sphinx of' && grep -q 'the checkpoint of step 20' err
verdict $? "continues a text" "$(said)"
cox 0 generate-text bytes --tokens 5 -- '-x' && printed '^-x' && cox 2 generate-text bytes && cox 2 generate-text bytes x --tokens none && cox 1 generate-text byte x
verdict $? "wrong usage" "$(said)"

# ---- what the cluster's commands show of a run that is over
cox 0 get --state points && printed '^points  *Succeeded '
verdict $? "cox get shows a run that is over, by its name" "$(said)"
[[ -s $folder/default-points/coxswain-operator.log ]]
verdict $? "and leaves its operator's log" "$(ls "$folder/default-points")"
cox 0 why --state points && printed '^points waits for nothing: it has succeeded' && cox 0 describe points --state "$folder/default-points" && printed '^Name  *points$'
verdict $? "cox why and describe" "$(said)"
mkdir points
# shellcheck disable=SC2016 # backticks of the message
cox 0 get --state points && printed '^points  *Succeeded ' && cox 1 get --state nosuch && grep -q 'there is no run "nosuch"; `cox runs` lists them' err && [[ ! -e nosuch ]]
verdict $? "a folder of a run's name does not hide the run, and a name that is none is said" "$(said)"
cox 0 top --state points && printed '^NAME  *STATE' '^points  *Succeeded ' && cox 0 top points --state points --once && printed '^points ' 'Succeeded'
verdict $? "cox top shows it once" "$(said)"
cox 0 why points && printed '^points waits for nothing: it has succeeded' && cox 0 get points && printed '^points  *Succeeded ' && cox 0 logs bytes --tail 1 && printed 'worker-0 | ' &&
    cox 0 describe points && cox 0 top points && printed '^points ' && cox 0 wait points && printed '^points: Succeeded: ' && cox 1 wait points --for Deleted
verdict $? "without a cluster a name alone is that of a run" "$(said)"
none_is_said() {
    local command
    for command in why logs describe get top wait suspend delete; do
        # shellcheck disable=SC2016 # backticks of the message
        cox 1 "$command" point && grep -q "^cox $command: "'there is no run "point"; did you mean points?; `cox runs` lists them$' err || return
    done
}
none_is_said
verdict $? "one that is none is said, with the one that was probably meant" "$(said)"
ended_is_said() {
    local command
    for command in suspend resume restart scale; do
        cox 1 "$command" points && grep -q "^cox $command: the run points has ended (Succeeded)$" err || return
    done
}
ended_is_said
verdict $? "a run that has ended is not changed" "$(said)"
cox 1 delete points && grep -q '^cox delete: the run points has ended; to delete it with its files: cox runs delete points$' err && cox 0 get points
verdict $? "and deleted by another command, which is named" "$(said)"
# shellcheck disable=SC2016 # backticks of the message
cox 0 get && printed '^NAME  *KIND ' '^points  *Job  *Succeeded ' && grep -qx 'cox get: no cluster is configured; these are the jobs of this machine (see `cox runs`)' err && cox 0 get -n default && cox 1 get -n other &&
    grep -q '^cox get: to see a run on this machine, name it: `cox runs` lists them$' err && cox 1 get -o json && cox 1 sweep get && cox 1 top && grep -q 'name it: `cox runs`' err
verdict $? "without a name get lists the runs, and the others say where the names are" "$(said)"
no_cluster=(--kubeconfig "$work/no.kubeconfig")
printf 'apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]\ncontexts: [{name: a, context: {cluster: a}}]\n' >no.kubeconfig
cox 1 why points "${no_cluster[@]}" && grep -q 'there is a run points on this machine; to see it, add --state points' err && ! printed 'succeeded'
verdict $? "with one they ask the cluster, and then say that there is such a run" "$(said)"
# Each try of a call would wait longer than the one before, two to five seconds for each command.
at_once() {
    local command began
    for command in 'why points' 'get points' get 'sweep get points' 'sweep best points' 'logs points'; do
        began=$EPOCHREALTIME
        # shellcheck disable=SC2086 # words of a command
        cox 1 $command "${no_cluster[@]}" && grep -q 'Failed to connect to 127.0.0.1 port 1' err || return
        took[${#took[@]}]=$(awk -v began="$began" -v now="$EPOCHREALTIME" 'BEGIN { print now - began }')
    done
    printf '%s\n' "${took[@]}" | awk '{ sum += $1 } END { exit !(sum < 10) }'
}
took=()
at_once
verdict $? "a server that refuses connections is told at once" "$(said) ${took[*]}"
cox 0 logs --state bytes --tail 3 -f && printed 'worker-0 | '
verdict $? "cox logs, which ends though -f was said" "$(said)"
cox 2 get --state points --context x && grep -q 'give one of them' err && cox 1 get --state "$work/text" && grep -q 'is not a state directory of cox run' err &&
    cox 2 suspend points --state points && cox 0 logs --help && printed '^  --state RUN' &&
    cox 0 help top && printed '^usage: cox top' '^  --state RUN' && cox 2 help nothing && grep -q 'there is no command "nothing"' err && cox 0 help && printed '^usage: cox COMMAND'
verdict $? "wrong usage" "$(said)"
running() {
    "$bin/cox" get --state long >out 2>err && printed '^long  *Running '
}
shown_by_name() {
    "$bin/cox" top long >out 2>err && printed '^long ' 'Running' && "$bin/cox" why long >out 2>err && printed '^long '
}
long_start points.yaml --volume points=data && until_true 30 running && cox 1 predict nothing
verdict $? "and one that goes on" "$(said; cat long.log)"
until_true 20 shown_by_name
verdict $? "also by its name alone" "$(said)"
cox 0 suspend long && printed '^long is being suspended' && cox 0 wait long --for Suspended --timeout 60 && cox 0 runs && printed '^long  *Job  *Suspended  *[0-9]*/1000000  *[0-9.]*  *[0-9.]* %  *[0-9.]* [kMKG]*B$' && cox 0 why long && printed '(cox resume long)' &&
    cox 0 resume long && cox 0 wait long --for Running --timeout 60 && cox 1 scale long --workers 2 && cox 1 suspend long points && grep -q 'points has ended' err && cox 0 resume long
verdict $? "which suspend, wait, resume and scale take, too" "$(said; cat long.log)"
until_true 60 running
used() {
    "$bin/cox" predict long --data new.npy >out 2>err
}
until_true 20 used
verdict $? "which can be used, too" "$(said)"
long_kill
stopped() {
    "$bin/cox" get --state long >out 2>err && printed '^long  *Interrupted  *0 '
}
again="$bin/cox run $work/points.yaml --volume points=$work/data --set metadata.name=long --set spec.coxswain.training.steps=1000000"
shown_as_interrupted() {
    cox 0 top --state long && printed '^long  *Interrupted ' && cox 0 top long && printed 'Interrupted' && cox 0 why --state long && printed "^long waits for a user to run it again: it was interrupted.*, and goes on with: $again\$" && cox 0 describe --state long &&
        printed '^State  *Interrupted, 0 ready$' && cox 1 wait long && printed "^long: it was interrupted; to continue: $again\$" && cox 1 suspend long && grep -q "the run long was interrupted; to continue: $again\$" err &&
        cox 1 delete long && grep -qx 'cox delete: the run long was interrupted; to delete it with its files: cox runs delete long' err
}
until_true 30 stopped && shown_as_interrupted
verdict $? "one that was killed is shown as interrupted" "$(said)"
"$bin/coxswain-standalone" --state "$folder/default-long" --no-node >reader.log 2>&1 &
runner=$!
until_true 30 grep -q serving reader.log && cox 0 runs && printed '^long  *Job  *Interrupted ' && shown_as_interrupted
verdict $? "also while another command, such as cox ui, reads what it has left" "$(said; cat reader.log)"
kill "$runner" && wait "$runner"
runner=
long_start points.yaml --volume points=data && until_true 60 running && cox 0 delete long --timeout 60 && printed '^long is ' && { wait "$runner" || true; } && runner= && grep -q '^long was deleted' long.log
verdict $? "a run that goes on is deleted by its name" "$(said; cat long.log)"

# ---- one that is suspended
rm -r "$folder/default-long"
suspended() {
    cox 0 runs && printed '^long  *Job  *Suspended  *[0-9]*/1000000 .* ago ' && cox 0 get long && printed '^long  *Suspended  *0 ' &&
        cox 0 why long && printed "^long waits for a user to run it again: it was suspended.*, and goes on with: $again\$" &&
        cox 0 wait long --for Suspended && cox 1 wait long && printed "^long: it was suspended; to continue: $again\$" &&
        cox 1 resume long && grep -qx "cox resume: the run long was suspended, and its cox run has ended; to continue: $again" err &&
        cox 1 delete long && grep -qx 'cox delete: the run long was suspended, and its cox run has ended; to delete it with its files: cox runs delete long' err
}
long_start points.yaml --volume points=data && cox 0 suspend long && cox 0 wait long --for Suspended --timeout 60 && kill -INT "$runner" && { wait "$runner"; [[ $? == 130 ]]; } &&
    runner= && grep -q '^Suspended after step [0-9]*\. The state is kept in .*; to resume it:$' long.log && suspended
verdict $? "a run that is suspended and then interrupted is told as suspended" "$(said; cat long.log)"
long_start points.yaml --volume points=data && grep -qx 'cox run: long was suspended, and is resumed' long.log && cox 0 runs && printed '^long  *Job  *Running '
verdict $? "and the command that was printed resumes it" "$(said; cat long.log)"
cox 0 suspend long && cox 0 wait long --for Suspended --timeout 60 && cox 0 runs && printed '^long  *Job  *Suspended ' && long_kill && until_true 30 suspended
verdict $? "as does one whose cox was killed" "$(said; cat long.log)"
"$bin/cox" run points.yaml --volume points=data --set metadata.name=long --set spec.coxswain.training.steps=1000000 --set spec.suspend=true >held.log 2>&1 &
runner=$!
until_true 30 grep -qx 'cox run: long is suspended; to resume it: cox resume long' held.log && cox 0 resume long && cox 0 wait long --for Running --timeout 60
verdict $? "unless the manifest suspends it, which is told" "$(said; cat held.log)"
long_kill

# ---- a sweep and its trials
{
    printf 'apiVersion: coxswain.dev/v1beta1\nkind: TrainingSweep\nmetadata: {name: pair}\nspec:\n  algorithm: {type: Grid}\n'
    printf '  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1, 0.01]}]\n  template:\n'
    sed -n '/^spec:/,/everySteps/{/^spec:/d;s/^/  /;p}' points.yaml
} >pair.yaml
cox 0 run pair.yaml --volume points=data && printed "best.yaml --volume points=$work/data$" && cox 0 why pair-0 && printed '^pair-0 waits for nothing: it has succeeded' && cox 0 logs pair-1 --tail 1 && printed 'worker-0 | ' && cox 0 sweep get pair &&
    cox 1 why pair-7 && cox 1 why pair-x && cox 1 sweep get pair-0 && cox 1 get pair-0 pair-1 && grep -q 'name one at a time$' err
verdict $? "a trial is found by its name" "$(said)"
# shellcheck disable=SC2016 # backticks of the message
cox 0 predict pair-0 && printed '^loss [0-9.]*, accuracy [0-9.]* %: [0-9]* of 20$' && grep -q '^weights: the checkpoint of step 100 in .*/pair-0-' err && cox 0 predict pair-1 all --data new.npy &&
    cox 1 predict pair-7 && grep -qx 'cox predict: the sweep pair has no trial pair-7; `cox sweep get pair` lists them' err && cox 1 predict points-7 && grep -q 'there is no run "points-7"' err &&
    cox 1 predict pair && grep -q '^cox predict: pair is a sweep: name a trial that has a checkpoint or an export, such as pair-0, or train its best job, ' err
verdict $? "a trial with a checkpoint can be used" "$(said)"
sed 's/^metadata: .*/metadata: {name: kept}/; s/everySteps: [0-9]*/&, keepBest: true/' pair.yaml >kept.yaml
cox 0 run kept.yaml --volume points=data --set spec.template.coxswain.evaluation.everySteps=10 && cox 0 predict kept-0 &&
    best=$(sed -n 's/^weights: the file \(.*\/kept-0-.*\/best.safetensors\)$/\1/p' err) &&
    told=$(head -c 2000 "$best" | grep -ao '"validationLoss":"[^"]*' | sed 's/.*"//') && printed "^loss $(printf %.4f "$told"), "
verdict $? "with its best weights, if it keeps them" "$(said; echo "$told")"
trained() {
    find "$folder/default-pair/volumes" -path "*/pair-0-*/step-*" -name manifest.json | sed 's|/step-.*||' | sort -u | wc -l
}
[[ $(trained) == 1 ]] && cox 0 run pair.yaml --volume points=data --fresh --set 'spec.parameters[0].values=[0.2, 0.02]' && [[ $(trained) == 2 ]]
verdict $? "the trials of a sweep that is made anew do not go on from those of the earlier one" "$(said; find "$folder/default-pair/volumes")"
cox 0 why pair && printed '^pair waits for nothing: it is complete, and 2 of 2 trials succeeded$' && cox 0 describe pair && printed '^pair  Grid, .*  Complete$' '^TRIAL  *STATE' '^1  *Succeeded ' '^pair waits for nothing: it is complete' && cox 1 get pair && grep -q 'pair is a sweep' err && cox 1 logs --state pair && grep -q 'pair is a sweep' err &&
    cox 0 sweep get && printed '^pair  *Sweep  *Succeeded  *2/2 ' && ! printed ' Job ' && cox 0 get && ! printed '^pair' && cox 0 wait pair && printed '^pair: Complete: ' && cox 0 wait pair --for Complete && cox 0 wait pair --for Succeeded && cox 1 wait pair --for Failed && cox 1 sweep get points && grep -q '^cox sweep get: points is a job: cox get points$' err
verdict $? "a sweep is not taken for a job, nor a job for a sweep" "$(said)"
