#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `cox run` where an earlier run has been: what --fresh forgets and what it keeps, a state directory that is in use or is none,
# and a job that has changed. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
runner=

finish_also() {
    if [[ -n $runner ]]; then kill "$runner" 2>/dev/null; fi
}

export HOME=$work
runs=$work/state/volumes/default/runs

# script.sh is what the job's pod does
cat >job.yaml <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: again}
spec:
  workers: {replicas: 1, template: {spec: {containers: [{name: trainer, readinessProbe: null, command: [/bin/sh, $work/script.sh]}]}}}
  storage:
    - {name: runs, persistentVolumeClaim: {claimName: runs}}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: "0.1"}}
    checkpoint: {storage: runs, everySteps: 5}
YAML

# run CODE [OPTION…]: of job.yaml, in the state directory `state`; it ends with CODE and has said what is in `out` and `err`
run() {
    local wanted=$1
    shift
    timeout 240 "$bin/cox" run job.yaml --state state "$@" >out 2>err </dev/null
    [[ $? == "$wanted" ]]
}

said() {
    tail -n 5 out err | tr '\n' ' '
}

# Where nobody may mount, the volume is elsewhere than under /coxswain.
# shellcheck disable=SC2016 # for the pod's shell
echo 'mkdir -p ${COXSWAIN_STORAGE#runs=}/again/step-00000005.attempt-1.incarnation-1; echo trained' >script.sh
run 0 && [[ -d $runs/again/step-00000005.attempt-1.incarnation-1 ]] && ! grep -q 'earlier run' err && ! grep -q 'nothing was trained' out
verdict $? "a first run" "$(said)"
run 0 && grep -q 'again is done' out && ! grep -q 'earlier run' err && grep -q '^again had finished before this command; nothing was trained now' out &&
    grep -q '^  .* run job.yaml --state state --fresh --delete-volumes$' out
verdict $? "once more, and it is done already" "$(said)"
mkdir -p state/volumes/default/digits
run 0 && ! grep -q -- --delete-volumes out err && grep -q -- '--fresh --set spec.coxswain.checkpoint.path=ANOTHER$' out && rmdir state/volumes/default/digits
verdict $? "beside a volume with data it is not suggested to delete all volumes" "$(said)"

run 1 --set spec.coxswain.training.optimizer.learningRate=0.2 && grep -q 'spec.coxswain: .*is immutable' err &&
    grep -q -- ' run .*learningRate=0.2 .*--set metadata.name=ANOTHER$' err &&
    grep -q -- '=0.2 .*--fresh$' err && grep -q -- '=0.2 .*--fresh --delete-volumes$' err
verdict $? "a job that has changed is told from the earlier one, with what to do" "$(said)"
! grep -q 'delete the job' err && run 1 --set spec.coxswain.training.optimizer.learningRate=0.2 --set metadata.name=again &&
    grep -q -- 'learningRate=0.2 --state state --set metadata.name=ANOTHER$' err && grep -q -- '--set metadata.name=again .*--fresh$' err
verdict $? "the command that names it anew names it once" "$(said)"
run 1 --set spec.coxswain.checkpoint.everySteps=null && grep -q 'spec.coxswain: .*is immutable' err
verdict $? "a job from which a field was removed is told from the earlier one, too" "$(said)"
sed 's/everySteps/everyStep/' job.yaml >mistyped.yaml
mistyped() {
    ! timeout 60 "$bin/cox" run mistyped.yaml "$@" >out 2>err </dev/null && grep -q 'unknown field "spec.coxswain.checkpoint.everyStep"' err
}
mistyped --state state && mistyped --state fresh-state
verdict $? "a field that no job has is refused, of a new one too" "$(said)"
mkdir their-state && mistyped --state their-state && [[ -e state/run.json && -e their-state && ! -e fresh-state ]]
verdict $? "and leaves no state directory of its own" "$(ls -d ./*state* fresh-state/* 2>&1)"
run 0 --set spec.coxswain.training.optimizer.learningRate=0.2 --set metadata.name=other && ! grep -q 'earlier run' err
verdict $? "it runs under another name" "$(said)"

echo mine >state/mine
run 0 --set spec.coxswain.training.optimizer.learningRate=0.2 --fresh &&
    grep -q 'again goes on from the checkpoints of an earlier run, up to step 5, in .*runs/again; to begin at step 0: --fresh' err &&
    [[ -d $runs/again/step-00000005.attempt-1.incarnation-1 && -e state/mine ]]
verdict $? "or anew, with the checkpoints that there are, which is told" "$(said)"
run 0 --set metadata.name=third --set spec.coxswain.checkpoint.path=again --volume "runs=$runs" &&
    grep -q 'third goes on from the checkpoints .* to begin at step 0: .*--set spec.coxswain.checkpoint.path=ANOTHER' err
verdict $? "a job with a new name is told that it goes on from existing checkpoints" "$(said)"

# A manifest that the API server refuses deletes nothing.
untouched() {
    ! grep -q 'deleting' err && cmp run.json state/run.json && [[ -d $runs/again/step-00000005.attempt-1.incarnation-1 && ! -e state/check ]] &&
        "$bin/cox" runs --state state >out 2>&1 && grep -q ' Succeeded ' out
}
cp state/run.json .
mistyped --state state --fresh && untouched && mistyped --state state --fresh --delete-volumes && untouched
verdict $? "--fresh with an unknown field deletes nothing" "$(said)"
run 1 --fresh --delete-volumes --set spec.coxswain.training.optimizer.learningRate=0 && grep -q 'learningRate: 0 is out of bounds' err && untouched
verdict $? "nor with a value out of bounds" "$(said)"
mkdir -p state/check && touch state/check/pki && run 1 --fresh --set spec.workers.replicas=-1 && grep -q 'replicas: -1' err && untouched
verdict $? "also after a check that was killed" "$(said)"

run 2 --delete-volumes && grep -q -- '--delete-volumes goes with --fresh' err && [[ -d $runs/again ]]
verdict $? "--delete-volumes alone deletes nothing" "$(said)"
# shellcheck disable=SC2016 # for the pod's shell
echo 'ls ${COXSWAIN_STORAGE#runs=} >$0.listed; echo trained' >script.sh
run 0 --fresh --delete-volumes && grep -q 'deleting the volumes in .*state/volumes: default/runs$' err &&
    [[ -e script.sh.listed && ! -s script.sh.listed && -e state/mine ]]
verdict $? "with --fresh it says what it deletes, and nothing of it is found" "$(said) $(cat script.sh.listed)"

echo 'exit 65' >script.sh
run 1 --fre --delete-v && grep -q '^  .* run job.yaml --state state --fresh$' out
verdict $? "the command that begins anew has what was asked for otherwise, and not twice that" "$(said)"

# Checkpoints of another model are met again by the same command: what is printed does without them.
# shellcheck disable=SC2028 # for the pod's shell
echo 'echo "exit 66 (a checkpoint is required and none is usable): checkpoint of step 5 does not fit this job (use another checkpoint.path to start anew): w" >&2; exit 66' >script.sh
run 1 --fresh && grep -q '^  .* --fresh --delete-volumes$' out && grep -q '^  .* --fresh --set spec.coxswain.checkpoint.path=ANOTHER$' out &&
    ! grep -q -- '--fresh$' out
verdict $? "where the checkpoints do not fit, the printed commands do without them" "$(said)"
run 1 && grep -q '^again had failed before this command; nothing was trained now' out && grep -q '^  .* --fresh --delete-volumes$' out
verdict $? "a job that has failed already is not said to have trained" "$(said)"
# shellcheck disable=SC2028 # for the pod's shell
echo 'echo "exit 66 (a checkpoint is required and none is usable): init.path /runs/other: checkpoint of step 5 does not fit this job (a job can go on only from one of the same model and optimizer): w" >&2; exit 66' >script.sh
run 1 --fresh && ! grep -q -- '--delete-volumes\|checkpoint.path=ANOTHER' out && grep -q -- '--fresh$' out
verdict $? "where it is another job's checkpoint that does not fit, no volumes are to be deleted" "$(said)"
run 1 --fresh --volume "runs=$work/theirs" && grep -q 'open the directory: No such file' err && ! grep -q 'again is' out
verdict $? "a directory that is missing is told before a pod starts" "$(said)"
run 1 --fresh --volume "run=$work" && grep -q 'has no claim "run" but runs; did you mean runs?' err && ! grep -q 'again is' out
verdict $? "a claim that the job does not have is reported before a pod starts, too" "$(said)"
run 2 --volume "runs=$work" --kubeconfig state/kubeconfig && grep -q -- '--volume goes without --kubeconfig' err
verdict $? "a cluster takes no directory" "$(said)"

mkdir -p theirs/volumes/of/mine theirs/pods
echo mine >theirs/thesis.tex
timeout 60 "$bin/cox" run job.yaml --state theirs --fresh --delete-volumes >out 2>err </dev/null
[[ $? == 1 ]] && grep -q 'theirs is not a state directory of Coxswain' err && ! grep -q deleting err && [[ -e theirs/thesis.tex && -d theirs/volumes/of/mine && -d theirs/pods && ! -e theirs/objects.db ]]
verdict $? "a directory that is no state directory is refused and left alone" "$(said)"

echo 'exit 0' >script.sh
grep -v '^ *#' job.yaml | timeout 240 "$bin/cox" run - --state piped >out 2>err && grep -q 'again is done' out
verdict $? "a manifest may come out of a pipe" "$(said)"

echo "touch $work/asleep; sleep 300" >script.sh
timeout 240 "$bin/cox" run job.yaml --state piped --fresh >out 2>err </dev/null &
sleeper=$!
until_true 60 test -e asleep
pkill -INT -P "$sleeper" # of timeout, in the background, it has no terminal
wait "$sleeper"
grep -q 'Interrupted; the last step is not known' out
verdict $? "after an interrupt before the first step, no step is named" "$(said)"

# Somebody deletes the job meanwhile.
rm asleep
timeout 240 "$bin/cox" run job.yaml --state piped --fresh >out 2>err </dev/null &
sleeper=$!
until_true 60 test -e asleep
"$bin/cox" delete again --kubeconfig piped/kubeconfig >deleted 2>&1
wait "$sleeper"
[[ $? == 1 ]] && grep -q '^again was deleted before it was over' out && ! grep -q 'When the cause is corrected' out
verdict $? "a run ends when its job is deleted" "$(said) $(cat deleted)"

# A command that reads what an earlier run has left has a control plane of its own until it has its answer.
echo 'echo trained' >script.sh
run 0 --fresh
"$bin/coxswain-standalone" --state state --no-node >reader.log 2>&1 &
reader=$!
until_true 60 test -s state/kubeconfig
timeout 240 "$bin/cox" run job.yaml --state state --fresh >out 2>err </dev/null &
runner=$!
sleep 1
kill -0 "$runner"
waits=$?
kill "$reader"
wait "$runner" && [[ $waits == 0 ]] && grep -q 'again is done' out
verdict $? "a run waits for a command that reads from its directory" "$(said) $(tail -n 1 reader.log)"
runner=
touch reading
while [[ -e reading ]]; do "$bin/cox" get again --state state; done >got 2>&1 </dev/null &
reader=$!
run 0 --fresh && run 0 --fresh --delete-volumes && run 0
verdict $? "a run starts while its directory is read again and again" "$(said)"
rm reading
wait "$reader"
grep -q '^NAME' got
verdict $? "and is shown meanwhile" "$(sort got | uniq -c | head -n 5)"

# Until `end` is there.
echo "touch $work/begun; until [ -e $work/end ]; do sleep 0.1; done" >script.sh
timeout 300 "$bin/cox" run job.yaml --state state --fresh >running 2>&1 </dev/null &
runner=$!
until_true 60 test -e begun
verdict $? "preparation" "$(cat running)"
run 1 --fresh --delete-volumes && grep -q 'another control plane uses the state directory state: that of process [0-9]*, .*/cox run job.yaml --state state' err && ! grep -q deleting err && run 1 && grep -q 'another control plane' err &&
    [[ -s state/kubeconfig && -s state/objects.db && -d $runs ]] && kill -0 "$runner"
verdict $? "a run that goes on keeps its state" "$(said)"
touch end
wait "$runner" && grep -q 'again is done' running
verdict $? "and comes to its end" "$(tail -n 3 running)"
runner=
