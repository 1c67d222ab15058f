#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The operator of `cox run` is killed while a job trains: cox starts it again, and the job ends with the same checkpoint. An operator
# that ends again and again is not started any more. Prints ok/not ok lines (see tests/run).
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
