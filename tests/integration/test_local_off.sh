#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Time in which `cox run` is off counts neither for a sweep's budget nor for activeDeadlineSeconds: after an interruption, and after all of
# its processes were killed, as when the machine is off. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/cox.sh"
. "$root/tests/integration/runs.sh"

: >record
cat >script <<'SH'
echo begins >>"$WORK/record"
while [ -e "$WORK/stay" ]; do sleep 0.1; done
sleep 4
echo ends >>"$WORK/record"
echo '{"metrics":{"score":1}}' >"${COXSWAIN_TERMINATION_LOG:-/dev/termination-log}"
SH

template() {
    cat <<YAML
image: any
pytorch: {}
workers: {template: {spec: {containers: [{name: trainer, command: [sh, $work/script], env: [{name: WORK, value: $work}]}]}}}
YAML
}

cat >sweep.yaml <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: sweep}
spec:
  parallelism: 2
  algorithm: {type: Grid}
  objective: {metric: score, goal: Maximize}
  parameters: [{env: VALUE, values: [1, 2, 3, 4]}]
  budget: {workerHours: 0.0166667} # a minute
  template:
$(template | sed 's/^/    /')
YAML
cat >job.yaml <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: job}
spec:
  runPolicy: {activeDeadlineSeconds: 30}
$(template | sed 's/^/  /')
YAML

# has_begun SCRIPTS
has_begun() {
    (($(grep -c begins record) >= $1))
}

start() {
    "$bin/cox" run "$1" >ran 2>&1 </dev/null &
    runner=$!
}

touch stay
start sweep.yaml
until_true 60 has_begun 2
kill -INT "$runner"
wait "$runner"
runner=
! grep -q ends record
verdict $? "two trials are interrupted" "$(cat record ran)"

# Meanwhile a job, of which all processes are killed. Its control plane has noted by then that it was alive.
: >record
start job.yaml
until_true 60 has_begun 1
sleep 6
mapfile -t children < <(pgrep -P "$runner")
kill -KILL "${children[@]}" "$runner"
wait "$runner" 2>/dev/null
runner=
rm stay
((${#children[@]} == 2)) && ! grep -q ends record
verdict $? "a job is killed with its control plane" "$(cat record ran)"
sleep 30

cox 0 run job.yaml && (($(grep -c begins record) == 2))
verdict $? "its deadline, which has passed meanwhile, leaves out the time without pods" "$(said; cat record)"
: >record
cox 0 run sweep.yaml && (($(grep -c ends record) == 4)) && ! printed 'BudgetUsed'
verdict $? "nor is it taken from the budget of the sweep, all of whose trials run" "$(said; cat record)"
cox 0 sweep export sweep -o csv && awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "seconds") at = i }
    NR > 1 && !(at && $at > 3 && $at < 25) { exit bad = 1 } END { exit bad || NR != 5 }' out
verdict $? "the seconds of its trials leave it out, too" "$(said)"
