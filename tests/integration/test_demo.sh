#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cox as a person uses it: a job from start to end, one that fails, an interruption and the resume command that is printed
# for it, a cluster that is already there, bad input, and data from a mirror. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
mirror=

finish_also() {
    if [[ -n $mirror ]]; then kill "$mirror" 2>/dev/null; fi
}

. "$root/tests/integration/digits.sh"
export XDG_STATE_HOME=$work/xdg XDG_CACHE_HOME=$work/cache
unset COXSWAIN_DATA COXSWAIN_MIRROR

# job NAME EPOCHS
job() {
    cat >"$1.yaml" <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {replicas: 2}
  storage:
    - {name: digits, persistentVolumeClaim: {claimName: digits}, readOnly: true}
    - {name: runs, persistentVolumeClaim: {claimName: runs}}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data:
      format: IDX
      storage: digits
      train: {images: images, labels: labels}
      validation: {last: 100}
    training: {epochs: $2, batchSize: 50, optimizer: {type: SGD, learningRate: "0.05"}, seed: 7}
    checkpoint: {storage: runs, path: $1, everySteps: 20, keep: 2}
    export: {storage: runs, path: $1.safetensors}
YAML
}

# cox NAME WORD…: with its output in NAME.out
cox() {
    local name=$1
    shift
    "$bin/cox" "$@" >"$name.out" 2>&1 </dev/null
}

why() {
    tail -n 3 "$1.out" | tr '\n' ' '
}

nothing_runs() {
    ! pgrep -f "$work" >/dev/null
}

mkdir data runs
make_digits && mv images labels data/

# ---- a job from start to end

job small 4
cox small run small.yaml --volume "digits=$work/data" --volume "runs=$work/runs" --state "$work/small"
verdict $? "a job succeeds with exit code 0" "$(why small)"
grep -q 'small is done: [0-9.]* % right on 100 held-out examples' small.out
verdict $? "the summary says how well" "$(why small)"
for what in checkpoints TensorBoard weights; do
    test -e "$(sed -n "s/^  $what  *//p" small.out)" || break
done
verdict $? "the printed paths exist" "$what: $(grep "$what" small.out)"
[[ $(grep -c 'weights  ' small.out) == 1 ]] && ! grep -q /coxswain/storage small.out
verdict $? "paths are this machine's, and said once"
until_true 5 nothing_runs
verdict $? "nothing of it runs afterwards" "$(pgrep -af "$work")"

# ---- one that fails

job broken 4
cox broken run broken.yaml --volume "digits=$work/data" --state "$work/broken" --set spec.coxswain.training.optimizer.weightDecay=1000
[[ $? == 1 ]] && grep -q 'broken has failed: worker [01]: .*lower training.optimizer.learningRate.*exit code 71' broken.out
verdict $? "a failing job ends with 1, its reason and its pod's error line" "$(why broken)"

# ---- interrupted and resumed

job long 4000
for signal in INT TERM; do
    "$bin/cox" run long.yaml --volume "digits=$work/data" --volume "runs=$work/runs" --state "$work/long" \
        >"$signal.out" 2>&1 </dev/null &
    runner=$!
    until_true 20 grep -q '^step [1-9]' "$signal.out" && sleep 1
    kill -s "$signal" "$runner"
    wait "$runner"
    [[ $? == 130 ]] && grep -q 'Interrupted after step' "$signal.out"
    verdict $? "SIG$signal ends it in order, with 130" "$(why "$signal")"
    until_true 5 nothing_runs
    verdict $? "SIG$signal leaves no process" "$(pgrep -af "$work")"
done
resume=$(tail -n 1 INT.out)
bash -c "exec $resume" >resumed.out 2>&1 </dev/null &
runner=$!
until_true 20 grep -q 'resumes from the checkpoint of step [1-9]' resumed.out
verdict $? "the printed command goes on from there" "$resume: $(why resumed)"
kill "$runner"
wait "$runner"

# ---- a cluster that is there

plane_start --volume "digits=$work/data" --volume "runs=$work/runs"
operator_start
cox cluster run small.yaml --kubeconfig state/kubeconfig &&
    grep -q 'small is done' cluster.out && field_is small state Succeeded
verdict $? "a job runs in a cluster that is already there" "$(why cluster)"
sed 's/epochs: 4/epochs: -4/; s/{name: small}/{name: wrong}/' small.yaml >wrong.yaml
cox wrong run wrong.yaml --kubeconfig state/kubeconfig
[[ $? == 1 ]] && grep -q 'spec.coxswain.training.epochs' wrong.out
verdict $? "a bad job gets the server's causes" "$(why wrong)"
cp state/kubeconfig gone
plane_stop
cox unreachable run small.yaml --kubeconfig gone
[[ $? == 1 ]] && grep -q 'cox run: .*127.0.0.1' unreachable.out
verdict $? "an API that does not answer is said to be so" "$(why unreachable)"

# ---- wrong usage

cox unknown dance
[[ $? == 2 ]] && grep -q 'no command "dance"' unknown.out
verdict $? "an unknown command" "$(why unknown)"
cox missing run nowhere.yaml
[[ $? == 1 ]] && grep -q 'cox run: .*nowhere.yaml: No such file' missing.out
verdict $? "a file that is not there" "$(why missing)"
printf 'kind: TrainingJob\nspec: {a: [1\nb: 2\n' >torn.yaml
cox torn run torn.yaml
[[ $? == 1 ]] && grep -q 'torn.yaml: .*line 3' torn.out
verdict $? "YAML that cannot be read, with its line" "$(why torn)"
cox help --help && grep -q 'cox demo' help.out
verdict $? "help on stdout with 0"
