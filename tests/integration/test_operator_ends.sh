#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The operator of `cox run` is killed while a job trains: cox starts it again, and the job ends with the same checkpoint. An operator
# that ends again and again is not started any more. When the control plane is killed, no worker is left, and the command that cox run
# prints ends the job with the same checkpoint, too. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/cox.sh"
. "$root/tests/integration/runs.sh"

cat >job.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: calm}
spec:
  workers: {replicas: 2}
  storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 2000}
    training: {steps: 1200, batchSize: 64, seed: 5, optimizer: {type: AdamW, learningRate: 0.001}}
    checkpoint: {storage: runs, everySteps: 50}
YAML

# operator_of PID: the operator of that cox run
operator_of() {
    pgrep -P "$1" -f coxswain-operator
}

# weights NAME: the digest of its last checkpoint's tensors
weights() {
    find "$folder/default-$1" -path '*step-*1200.*' -name 'rank-*.safetensors' -exec sha256sum {} + | cut -d' ' -f1 | sort
}

cox 0 run job.yaml && [[ -n $(weights calm) ]]
verdict $? "a job that nothing disturbs" "$(said)"

"$bin/cox" run job.yaml --set metadata.name=disturbed >disturbed.log 2>&1 &
runner=$!
until_true 60 grep -qs '"step": [1-9]' "$folder/default-disturbed/run.json"
first=$(operator_of "$runner")
kill -KILL "$first"
is_replaced() {
    second=$(operator_of "$runner") && [[ $second != "$first" ]]
}
until_true 30 is_replaced
verdict $? "an operator that was killed is started again" "$(cat disturbed.log)"
wait "$runner"
status=$?
runner=
[[ $status == 0 ]] && grep -q 'coxswain-operator was killed by signal 9 (see .*it was restarted, and the job continues' disturbed.log
verdict $? "which is said, and the job succeeds" "$status, $(cat disturbed.log)"
[[ $(weights disturbed) == "$(weights calm)" ]]
verdict $? "with the same checkpoint" "$(weights disturbed), $(weights calm)"

# told_or_over COUNT: cox run has told of more restarts than that, or has ended
told_or_over() {
    (($(grep -c 'it was restarted, and' long.log) > $1)) || ! kill -0 "$runner" 2>/dev/null
}

long_start job.yaml
for ((i = 0; i < 6; i++)); do
    until_true 30 operator_of "$runner" >/dev/null || break
    kill -KILL "$(operator_of "$runner")"
    until_true 30 told_or_over "$i" || break
done
wait "$runner"
status=$?
runner=
[[ $status == 1 ]] && grep -q 'coxswain-operator was killed by signal 9 .*it was already restarted 5 times within 10 minutes' long.log &&
    grep -q 'its state is kept; to go on:$' long.log && tail -n 1 long.log | contains '^  .*/cox run job.yaml '
verdict $? "one that ends again and again ends the command" "$status, $(tail -n 5 long.log)"

# workers: the processes of this script's runs that train; zombies have no environment
workers() {
    local files
    mapfile -t files < <(pgrep -x coxswain-worker | sed 's|.*|/proc/&/environ|')
    grep -lazxsF "HOME=$work" "${files[@]}" /dev/null | cut -d / -f 3 | sort
}

no_workers() {
    [[ -z $(workers) ]]
}

# standalone_of PID: the control plane of that cox run
standalone_of() {
    pgrep -P "$1" -f coxswain-standalone
}

# saved_after STEP: the run "cut" has a checkpoint of a later step, or has ended
saved_after() {
    local saved
    saved=$(find "$folder/default-cut/volumes/default/runs/cut" -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*step-0*\([0-9]*\).*/\1/' | sort -n | tail -n 1)
    ((${saved:-0} > $1)) || ! kill -0 "$runner" 2>/dev/null
}

# cut_run COMMAND: runs that, kills its control plane after a checkpoint of a step later than $after, and waits for its end. Sets
# status, trained (the workers before) and the next command.
cut_run() {
    bash -c "exec $1" >cut.log 2>&1 &
    runner=$!
    until_true 60 saved_after "$after"
    trained=$(workers)
    kill -KILL "$(standalone_of "$runner")"
    wait "$runner"
    status=$?
    runner=
    until_true 2 no_workers
    left=$(workers)
    next=$(tail -n 1 cut.log)
}

next="'$bin/cox' run job.yaml --set metadata.name=cut"
killed=() # the workers of the runs before
for after in 50 400; do
    cut_run "$next"
    [[ $status == 1 ]] && grep -q '^cox run: coxswain-standalone was killed by signal 9 (see .*coxswain-standalone.log)$' cut.log &&
        grep -q '^The job was interrupted and its state is kept; to go on:$' cut.log && [[ $next == "  "*"/cox run job.yaml --set metadata.name=cut" ]]
    verdict $? "a control plane that was killed after step $after ends the command, which prints how to go on" "$status, $(tail -n 5 cut.log)"
    [[ $(wc -w <<<"$trained") == 2 && -z $left ]]
    verdict $? "none of its two workers is left" "before: $trained, after: $left"
    ! grep -qxF "$(printf '%s\n' "${killed[@]}" none)" <<<"$trained"
    verdict $? "and none of an earlier run trained beside them" "$trained, earlier ${killed[*]}"
    mapfile -t -O "${#killed[@]}" killed <<<"$trained"
done
bash -c "exec $next" >cut.log 2>&1
status=$?
resumed=$(sed -n 's/.*resumes from the checkpoint of step \([0-9]*\)$/\1/p' cut.log)
[[ $status == 0 ]] && ((resumed > 400 && resumed < 1200))
verdict $? "the printed command goes on from the last checkpoint, and the job succeeds" "$status, $(cat cut.log)"
[[ -n $(weights cut) && $(weights cut) == "$(weights calm)" ]]
verdict $? "with the same weights as without kills, bit for bit" "$(weights cut), $(weights calm)"
until_true 5 no_workers
verdict $? "and no worker is left" "$(workers)"
