#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A TrainingSweep that trains a population, with real workers against the embedded control plane, while the operator is killed again and
# again: the worst trials go on from the checkpoints of the best ones with other values, and end with the bits of a job that was made by
# hand from the same checkpoint. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/sweep.sh"
cox_command=(timeout 60 "$bin/cox")
. "$root/tests/integration/cox.sh"

if ! command -v python3 >/dev/null; then
    echo "skip population: python3 is not installed"
    exit 0
fi
mkdir runs
plane_start --volume "runs=$work/runs"
operator_start
export KUBECONFIG=$work/state/kubeconfig

# state_of FOLDER: the SHA-256 of the weights and the optimizer's slots in its newest checkpoint
state_of() {
    sha256sum <"$(find "runs/$1" -path '*/step-*' -name rank-00000.safetensors | sort | tail -n 1)"
}

policy='"storage":[{"name":"runs","persistentVolumeClaim":{"claimName":"runs"}}],'
coxswain='"checkpoint":{"storage":"runs","everySteps":1000,"keep":1},' examples=2000
rates='"parameters":[{"path":"coxswain.training.optimizer.learningRate","logUniform":{"min":0.0001,"max":0.5}},
    {"path":"coxswain.training.optimizer.momentum","values":[0.5,0.8,0.9]}]'
echo 15 >delay
sweep crowd "\"algorithm\":{\"type\":\"PBT\",\"population\":4,\"seed\":2},\"maxTrials\":12,\"parallelism\":3,$rates" 30

decisions='"\n".join("{} {} {}".format(i, r.get("parent"), r["values"]) for i, r in enumerate(status.get("results", [])))'
rounds=0
until is_told crowd 'state(s) in ("Complete", "Failed")' || ((++rounds > 25)); do
    told crowd "$decisions" >>decided
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
    operator_kill
    operator_start
done
sweep_is crowd Complete 120 && is_told crowd 'len(t) == 12 and status["trials"]["succeeded"] == 12'
verdict $? "the population is trained to its end, whoever kills the operators" "$rounds kills; $(told crowd 'status')"
told crowd "$decisions" >>decided
[[ $(sort -u decided | cut -d ' ' -f 1 | uniq -d) == "" && $(sort -u decided | wc -l) == 12 ]]
verdict $? "no parent and no value changes" "$(sort -u decided)"
is_told crowd 'all(("parent" in r) == (i > 3) and (i < 4 or r["parent"] // 4 == i // 4 - 1) for i, r in enumerate(status["results"]))'
verdict $? "each trial goes on from one of the generation before" "$(told crowd 'status')"
is_told crowd 'all(any(r["parent"] != i for i, r in enumerate(status["results"][g:g + 4], g - 4)) for g in (4, 8))'
verdict $? "in each generation one is replaced" "$(told crowd 'status')"
is_told crowd 'all(float(status["results"][r["parent"]]["objective"]) == min(float(o["objective"]) for o in status["results"][4 * (i // 4) - 4:4 * (i // 4)]) and float(status["results"][i - 4]["objective"]) == max(float(o["objective"]) for o in status["results"][4 * (i // 4) - 4:4 * (i // 4)])
    for i, r in enumerate(status["results"]) if i > 3 and r["parent"] != i - 4)'
verdict $? "it is the worst, by the best" "$(told crowd 'status')"
is_told crowd 'all(j["spec"]["coxswain"]["training"]["steps"] == 30 * (i // 4 + 1) == j["status"]["progress"]["step"] for i, j in enumerate(t))'
verdict $? "each generation has as many steps as the template" "$(told crowd '[(j["spec"]["coxswain"]["training"], j["status"]["progress"]) for j in t]')"

# by_hand TRIAL NAME: a job of that trial's spec, whose own folder has its parent's checkpoint
by_hand() {
    local parent
    parent=$(told crowd "status['results'][$1]['parent']")
    mkdir "runs/$2"
    cp -r "runs/crowd-$parent-$uid"/step-* "runs/$2/"
    told crowd "json.dumps({'apiVersion': 'coxswain.dev/v1beta1', 'kind': 'TrainingJob', 'metadata': {'name': '$2'}, 'spec': {**t[$1]['spec'],
        'coxswain': {**{k: v for k, v in t[$1]['spec']['coxswain'].items() if k != 'init'}, 'checkpoint': {'storage': 'runs', 'path': '$2', 'everySteps': 1000}}}})" >"$2.json"
    api POST "$jobs_path" "$(cat "$2.json")" >answer.json
    wait_for "$2" state Succeeded 60
}

rm delay
uid=$(told crowd 's["metadata"]["uid"][:8]')
fork=$(told crowd 'next(i for i, r in enumerate(status["results"]) if i > 3 and r["parent"] != i - 4)')
by_hand "$fork" fork && [[ $(state_of "crowd-$fork-$uid") == "$(state_of fork)" && $(state_of fork) ]]
verdict $? "a replaced trial has the bits of a job made by hand from the same checkpoint with the same values" "$fork: $(state_of "crowd-$fork-$uid") $(state_of fork); $(head -c 600 answer.json)"
is_told crowd "t[$fork]['spec']['coxswain']['training']['optimizer']['learningRate'] != t[status['results'][$fork]['parent']]['spec']['coxswain']['training']['optimizer']['learningRate']"
verdict $? "and another rate than its parent"
same=$(told crowd 'next(i for i, r in enumerate(status["results"]) if i > 7 and r["parent"] == i - 4)')
by_hand "$same" same && [[ $(state_of "crowd-$same-$uid") == "$(state_of same)" && $(state_of same) ]]
verdict $? "and one that was not replaced, too" "$same: $(state_of "crowd-$same-$uid") $(state_of same)"

parent=$(told crowd "status['results'][$fork]['parent']")
cox 0 sweep get crowd && printed "^TRIAL .* FROM" && printed "^$fork *Succeeded .* $parent\( *best\)\? *$"
verdict $? "cox shows from which trial each one goes on" "$(said)"
cox 0 sweep export crowd && head -n 1 out | contains ',best,parent$' && grep -q "^$fork,.*,$parent$" out
verdict $? "and exports it" "$(said)"
best=$(told crowd 'status["best"]["trial"]')
cox 0 sweep best crowd && grep -q "path: $best-$uid$" out && grep -q "path: $best-$uid-best$" out && grep -q '^# .*begins with its checkpoint' out
verdict $? "the best job begins with the best trial's checkpoint" "$(said)"

coxswain=
sweep forgetful "\"algorithm\":{\"type\":\"PBT\",\"population\":2},\"maxTrials\":4,$rates" 10
sweep_is forgetful Failed && is_told forgetful 'reason("Failed") == "InvalidSpec" and "checkpoint: is missing" in message("Failed")'
verdict $? "without checkpoints there is no population" "$(told forgetful 'status')"
