#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What `cox run` leaves on this machine: `cox runs` lists, compares and deletes it. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/cox.sh"
. "$root/tests/integration/runs.sh"

cat >tiny.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: tiny}
spec:
  workers: {replicas: 1}
  storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]
  coxswain:
    strategy: {type: OneDevice}
    model: {preset: mlp, width: 16}
    data: {format: Synthetic, examples: 400, validation: {last: 100}}
    training: {steps: 30, batchSize: 50, optimizer: {type: SGD, learningRate: 0.1}}
    checkpoint: {storage: runs, everySteps: 20}
    export: {storage: runs, path: tiny.safetensors}
YAML
cat >sweep.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: rates}
spec:
  objective: {metric: validationLoss, goal: Minimize}
  algorithm: {type: Grid}
  parallelism: 2
  parameters:
    - {path: coxswain.training.optimizer.learningRate, values: [0.05, 0.1]}
  template:
    workers: {replicas: 1}
    coxswain:
      strategy: {type: OneDevice}
      model: {preset: mlp, width: 16}
      data: {format: Synthetic, examples: 400, validation: {last: 100}}
      training: {steps: 10, batchSize: 50, optimizer: {type: SGD, learningRate: 0.1}}
YAML

cox 0 runs && grep -q 'no runs in ~/.local/state/coxswain' err && [[ ! -s out ]]
verdict $? "where nothing has run there are no runs" "$(said)"

mkdir mine
echo keep >mine/file
cox 0 run tiny.yaml && cox 0 run tiny.yaml --set metadata.name=other --set spec.coxswain.training.optimizer.learningRate=0.2 --volume "runs=$work/mine"
verdict $? "two jobs run" "$(said)"
cox 0 run sweep.yaml
verdict $? "and a sweep" "$(said)"
cp "$folder/default-tiny/run.json" tiny.json
cox 1 run sweep.yaml --set metadata.name=tiny && grep -qx 'cox run: ~/.local/state/coxswain/default-tiny holds the job tiny, and a sweep cannot share it: give the sweep another name (--set metadata.name=ANOTHER) or directory (--state DIRECTORY), or replace the job with --fresh' err &&
    cmp tiny.json "$folder/default-tiny/run.json" && cox 0 predict tiny &&
    cox 1 run tiny.yaml --set metadata.name=rates && grep -q 'default-rates holds the sweep rates, and a job cannot share it: give the job another name ' err && cox 0 sweep get rates
verdict $? "a sweep does not take a job's directory, nor a job a sweep's" "$(said)"
cox 0 run tiny.yaml --state "$work/kinds/one" && cox 0 run sweep.yaml --state "$work/kinds/one" --fresh && cox 0 runs --state "$work/kinds" && printed '^rates *Sweep *Succeeded'
verdict $? "unless --fresh replaces it" "$(said)"
long_start tiny.yaml
verdict $? "the record of a run that goes on has its step" "$(cat long.log "$folder/default-long/run.json")"
cox 0 runs && printed '^NAME  *KIND  *STATE ' '^tiny  *Job  *Succeeded  *30/30  .*[0-9] % .* ago  .*B$' '^rates  *Sweep  *Succeeded  *2/2  *loss [0-9.]* .* ago ' \
    '^long  *Job  *Running  *[0-9]*/1000000 .* [0-9.]* [kM]B *$'
verdict $? "all are listed" "$(said)"
cox 1 runs delete long --yes && grep -q 'long stays: it is in use' err && [[ -d $folder/default-long ]]
verdict $? "a run that goes on is not deleted" "$(said)"
long_kill
interrupted() {
    cox 0 runs && printed '^long  *Job  *Interrupted '
}
until_true 30 interrupted
verdict $? "a run whose cox was killed is shown as interrupted" "$(said)"

mkdir -p "$folder/photos" "$folder/broken" "$folder/demo/text"
echo 'not mine' >"$folder/photos/one.jpg"
: >"$folder/broken/objects.db"
echo '{"version":' >"$folder/broken/run.json"
cox 0 runs && printed '^tiny ' '^long ' && grep -q 'photos: it is not a state directory of cox run' err && grep -q 'broken/run.json is damaged' err &&
    [[ $(wc -l <err) == 2 ]]
verdict $? "a foreign and a damaged directory are named, and hide nothing" "$(said)"
cox 0 runs -o name && [[ $(cat out) == $'long\nother\nrates\ntiny' && ! -s err ]]
verdict $? "names for programs" "$(said)"
cox 0 runs -o json && perl -MJSON::PP -e 'local $/; my ($tiny) = grep { ($_->{name} // "") eq "tiny" } @{decode_json(<>)};
    exit !($tiny->{state} eq "Succeeded" && $tiny->{step} == 30 && $tiny->{bytes} > 1000 && $tiny->{accuracy} >= 0 && !$tiny->{inUse})' out
verdict $? "JSON for programs" "$(said)"
cox 0 runs -o wide --state "$folder/default-tiny" && printed '^tiny .* ~/.local/state/coxswain/default-tiny$' && [[ $(wc -l <out) == 2 ]]
verdict $? "a single state directory" "$(said)"

cox 0 runs compare tiny other && printed '^  *tiny  *other$' '^spec.coxswain.training.optimizer.learningRate  *0.1  *0.2$' '^state  *Succeeded  *Succeeded$' \
    '^held out  *[0-9.]* %  *[0-9.]* %$' && ! grep -q 'batchSize' out
verdict $? "two runs are compared" "$(said)"
cox 1 runs compare tiny othre && grep -q 'there is no run "othre"; did you mean other?' err
verdict $? "a mistyped name" "$(said)"
cox 2 genrate x && grep -q 'there is no command "genrate"; did you mean generate?' err && cox 2 frobnicate && ! grep -q 'did you mean' err
verdict $? "a mistyped command" "$(said)"
cox 2 runs remove tiny && cox 2 runs prune && grep -q -- '--older-than 7d' err && cox 2 runs prune --keep many && cox 2 runs --yes && cox 2 runs delete &&
    cox 2 runs prune --older-than 10 --yes && grep -q '"10": --older-than takes a time with its unit, such as 30m, 12h or 10d' err && [[ -d $folder/default-tiny ]] &&
    cox 2 ui tiny && grep -q 'cox ui: it takes no NAME; for a run of cox run on this machine: cox ui --state tiny$' err
verdict $? "wrong usage" "$(said)"

cox 0 completion bash && completed=$(PATH=$bin:$PATH bash -c '. ./out
    complete_words() { COMP_WORDS=(cox "$@"); COMP_CWORD=$#; _cox; echo "${COMPREPLY[@]}"; }
    complete_words ru; complete_words runs de; complete_words runs delete ot; complete_words runs -o w; complete_words runs prune --ke') &&
    [[ $completed == $'run runs\ndelete\nother\nwide\n--keep' ]]
verdict $? "completion knows them" "$completed"

cox 1 runs delete other && grep -q 'not confirmed' err && [[ -d $folder/default-other ]]
verdict $? "nothing is deleted without a word" "$(said)"
echo yes | "$bin/cox" runs delete other >out 2>err && printed '^other  Succeeded ' '1 run deleted, .* freed$' && [[ ! -e $folder/default-other && -f mine/file && -d mine/other ]]
verdict $? "a run is deleted, what --volume gave stays" "$(said)"
cox 0 run tiny.yaml --set metadata.name=second --volume "runs=$folder/default-tiny/volumes/default/runs" && cox 1 runs delete tiny --yes &&
    grep -q 'tiny stays: the run second was given a directory in it' err && [[ -s $folder/default-tiny/volumes/default/runs/tiny.safetensors ]]
verdict $? "a run whose files another run was given stays" "$(said)"
cox 1 runs delete tiny --yes --state "$folder/default-tiny" && grep -q 'tiny stays: the run second was given' err &&
    [[ -s $folder/default-tiny/volumes/default/runs/tiny.safetensors ]]
verdict $? "and when --state leaves the other run out" "$(said)"
lone=$work/elsewhere/lone
cox 0 run tiny.yaml --state "$lone" --set metadata.name=lone && cox 0 run tiny.yaml --state "$work/other/far" --set metadata.name=far --volume "runs=$lone/volumes/default/runs" &&
    cox 1 runs delete lone --yes --state "$work/elsewhere" && grep -q "lone stays: the run .*/other/far was given a directory in it" err &&
    [[ -s $lone/volumes/default/runs/lone.safetensors ]] && cox 0 run tiny.yaml --state "$lone" --set metadata.name=lone --fresh &&
    cox 0 runs --state "$lone" && printed '^lone  *Job  *Succeeded  *30/30  *[0-9]' &&
    cox 1 runs delete lone --yes --state "$work/elsewhere" && cox 1 run tiny.yaml --state "$lone" --set metadata.name=lone --fresh --delete-volumes &&
    grep -q -- '--delete-volumes: the run .*other/far was given a directory in .*lone/volumes' err && [[ -s $lone/volumes/default/runs/lone.safetensors ]]
verdict $? "and when the other has a state directory elsewhere" "$(said)"
cox 0 runs delete far --yes --state "$work/other" && cox 0 runs delete lone --yes --state "$work/elsewhere" && [[ ! -e $lone ]]
verdict $? "until that one is deleted" "$(said)"
mkdir -p "$work/odd/$(printf 'a\033[2Jb')"
: >"$(echo "$work"/odd/a*)/objects.db"
echo '{"version": 1, "name": "timeless", "namespace": "default", "kind": "TrainingJob", "state": "Succeeded"}' >"$(echo "$work"/odd/a*)/run.json"
cox 0 runs prune --keep 0 --older-than 0 --yes --state "$work/odd" && printed '^nothing to delete' && grep -q 'timeless stays: its record does not say when it ended' err
verdict $? "a run without the time of its end is not pruned" "$(said)"
cox 0 runs delete timeless --yes --state "$work/odd" && printed '^timeless ' && [[ $(cat out err) != *$'\033'* ]]
verdict $? "control characters in a path are not printed" "$(said)"
cox 1 runs delete photos --yes && [[ -f $folder/photos/one.jpg ]] && cox 0 runs delete "$folder/broken" --yes && [[ ! -e $folder/broken ]]
verdict $? "a foreign directory is never deleted, a damaged one is when it is named" "$(said)"
echo mine >"$folder/default-rates/mine"
cox 0 runs delete rates --yes && grep -q 'holds other files, which stay' err && [[ $(ls "$folder/default-rates") == mine ]]
verdict $? "files that are not its own stay" "$(said)"

cox 0 runs prune --older-than 1h --yes && printed '^nothing to delete' && [[ -d $folder/default-long ]]
verdict $? "what is not old enough is not pruned" "$(said)"
cox 0 runs prune --keep 1 --yes && [[ ! -e $folder/default-long && -d $folder/default-tiny && -d $folder/default-second ]]
verdict $? "all but the newest are pruned" "$(said)"
cox 0 runs prune --keep 0 --yes && [[ ! -e $folder/default-second && -d $folder/default-tiny ]] && grep -q 'tiny stays' err &&
    cox 0 runs prune --older-than 0 --yes && [[ ! -e $folder/default-tiny && -f $folder/photos/one.jpg ]]
verdict $? "pruning keeps what others use, too" "$(said)"

anew() {
    cox 0 run tiny.yaml --set metadata.name=anew "$@"
}
anew && anew --set spec.coxswain.training.optimizer.learningRate=0.5 --fresh &&
    cat out err | grep -q 'nothing is left to train: this job ends at step 30, and the checkpoint of step 30 is an earlier job'
verdict $? "other settings that train nothing, because an earlier job's checkpoint is at the end, are told" "$(said)"
