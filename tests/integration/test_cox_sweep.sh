#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TrainingSweeps by cox: `cox run` of one in an embedded control plane of its own, interrupted and continued, and `cox sweep` with
# its commands meanwhile. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
export KUBECONFIG=$work/state/kubeconfig HOME=$work
cox_command=(timeout 240 "$bin/cox")
. "$root/tests/integration/cox.sh"
runner=

finish_also() {
    if [[ -n $runner ]]; then kill "$runner" 2>/dev/null; fi
}

# manifest NAME SPEC [STEPS]: a sweep of small jobs whose batches are as slow as the file `delay` says
manifest() {
    cat >"$1.yaml" <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: $1}
spec:
  $2
  template:
    coxswain:
      strategy: {type: OneDevice}
      model: {preset: mlp, width: 16}
      data: {format: Synthetic, examples: 400, validation: {last: 100}}
      training: {steps: ${3:-20}, batchSize: 50, optimizer: {type: SGD, learningRate: 0.1}}
    workers:
      template: {spec: {containers: [{name: trainer, env: [{name: COXSWAIN_READ_DELAY, value: $work/delay}]}]}}
YAML
}

# run_sweep WORD…: cox run in the background, with the state in $work/state and its output in $work/ran
run_sweep() {
    "$bin/cox" run "$@" --state state >ran 2>&1 </dev/null &
    runner=$!
}

ended_with() {
    local code=0
    wait "$runner" || code=$?
    runner=
    ((code == $1))
}

echo 200 >delay
manifest grid 'algorithm: {type: Grid}
  parallelism: 2
  parameters:
  - {path: coxswain.training.optimizer.learningRate, values: [0.001, 0.2]}
  - {path: coxswain.training.batchSize, integer: {min: 30, max: 31}}'

cox 2 sweep && cox 2 sweep fred && cox 2 sweep get a b && cox 2 sweep best && cox 2 sweep export x -o yaml &&
    grep -q 'it takes one of csv and json' err && cox 2 sweep best Grid && grep -q 'no sweep can be called "Grid"' err &&
    cox 2 sweep list && grep -qx 'cox sweep: there is no "list"; .cox sweep get. lists the sweeps' err &&
    cox 2 sweep gett && grep -qx 'cox sweep: there is no "gett"; did you mean "get"?' err && cox 2 sweep top && cox 2 sweep top a b && cox 2 sweep run && grep -q '^cox sweep run: it takes one FILE' err &&
    cox 0 sweep --help && printed '^usage: cox sweep' && cox 0 sweep best --help && printed 'Exit code: 0'
verdict $? "wrong usage is told" "$(said)"

manifest beyond 'parameters: [{path: workers.template.spec.containers.1.image, values: [a]}]'
cox 1 sweep run beyond.yaml --state beyond && grep -q 'path workers.template.spec.containers.1.image leads nowhere: workers.template.spec.containers has 1 element in the template, counted from 0; correct the path$' err && [[ ! -e beyond ]]
verdict $? "a path to an element past the end of a list is refused before anything starts" "$(said)"

manifest relu 'maxTrials: 2
  parameters: [{path: coxswain.model.layers.1.units, values: [8, 16]}]'
sed -i 's/model: {.*}/model: {inputShape: [784], layers: [{type: Dense, units: 10}, {type: ReLU}]}/' relu.yaml
cox 1 sweep run relu.yaml --state relu &&
    grep -q '^cox sweep run: spec.template, with the values of the first trial (units [0-9]*): spec.coxswain.model.layers\[1\].units: is for type Dense or Embedding only and would be ignored here; leave it out$' err && [[ ! -e relu ]]
verdict $? "a path to a field that the layer does not have, too" "$(said)"

manifest words 'algorithm: {type: Grid}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1, abc]}]'
cox 1 sweep run words.yaml --state words &&
    grep -q "^cox sweep run: words.yaml: spec.parameters\[0\].values\[1\]: coxswain.training.optimizer.learningRate: 'abc' does not fit; give a number" err && [[ ! -e words ]]
verdict $? "a value that the field does not take is refused before anything starts" "$(said)"

manifest typed 'parameters: [{path: coxswain.training.batchSize, values: [50]}]'
sed -i 's/examples: 400/examples: 400, standardise: true/' typed.yaml
cox 1 run typed.yaml --state typed && grep -qx 'cox run: typed.yaml: unknown field "spec.template.coxswain.data.standardise"; did you mean spec.template.coxswain.data.standardize?' err && [[ ! -e typed ]]
verdict $? "and so is a mistyped field of the template" "$(said)"

manifest words 'maxFailedTrials: 1
  algorithm: {type: Grid}
  parameters: [{path: coxswain.training.optimizer.type, values: [SGD, AdamW]}]'
sed -i 's/learningRate: 0.1}/learningRate: 0.1, momentum: 0.5}/' words.yaml
because='^words-1 failed: spec.coxswain.training.optimizer.momentum: is for type SGD only .*; with type AdamW$'
cox 0 run words.yaml --state words && printed "$because" && (unset KUBECONFIG && cox 0 sweep get words --state words) &&
    printed '^1 *Failed *AdamW' && grep -q '^words-1 failed: spec.coxswain.training.optimizer.momentum: ' err
verdict $? "values that make no valid job are the reason of a trial's failure" "$(said)"
(unset KUBECONFIG && cox 0 why words --state words) && printed '^words waits for nothing: it is complete, and 1 of 2 trials succeeded, 1 failed$' "$because" && ! printed '^words-0' &&
    (unset KUBECONFIG && cox 0 why words-1 --state words) && printed "$because" && [[ $(wc -l <out) == 1 ]] &&
    (unset KUBECONFIG && cox 1 why words-7 --state words) && grep -q '"words-7" not found' err
verdict $? "cox why of the sweep says which trial, with which values, and what is wrong" "$(said)"
manifest heads 'parallelism: 1
  maxFailedTrials: 1
  algorithm: {type: Grid}
  parameters: [{path: coxswain.model.width, values: [16, 17]}]'
sed -i 's/model: {.*}/model: {preset: gpt-bytes, depth: 1, heads: 2, context: 8}/; s/validation: {last: 100}/validation: {last: 10}/' heads.yaml
cox 0 run heads.yaml --state heads && (unset KUBECONFIG && cox 0 why --state heads) &&
    printed '^heads waits for nothing: it is complete, and 1 of 2 trials succeeded, 1 failed$' '^heads-1 failed: .*a width of 17 cannot be shared by 2 heads.*; with width 17$' && [[ $(wc -l <out) == 2 ]]
verdict $? "also of values that only the worker finds wrong" "$(said)"
manifest pauses 'parallelism: 1
  algorithm: {type: Grid}
  earlyStopping: {type: ASHA, minSteps: 5, reductionFactor: 2, action: Pause}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.01, 0.1, 0.2]}]'
sed -i 's/^    coxswain:$/    storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]\n&\n      checkpoint: {storage: runs}/' pauses.yaml
cox 0 run pauses.yaml --state pauses && printed '^trials 0/3 done, .*1 paused.*  best validationLoss [0-9.]* (pauses-[0-2] after step [0-9]*)' '^pauses-0 pauses: validationLoss [0-9.]* after step 5 with learningRate 0.01$' ' paused trials was measured after fewer steps'
verdict $? "pauses are told" "$(said)"
(unset KUBECONFIG && cox 0 get --state pauses && printed '^pauses-0 *Suspended ' && cox 0 why pauses-0 --state pauses && printed '^pauses-0 waits for nothing: its sweep pauses is over, and it had paused after step 5$')
verdict $? "a trial that stays paused has not been interrupted" "$(said)"
manifest wild 'algorithm: {type: Grid}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [1000, 0.0001]}]'
sed -i 's/model: {.*}/model: {inputShape: [784], layers: [{type: Dense, units: 64}, {type: Dense, units: 64}, {type: Dense, units: 10}]}/' wild.yaml
because='worker 0: the \(loss\|gradient norm\) of step [0-9]* is \(nan\|inf\); lower training.optimizer.learningRate, lengthen the warm-up or set training.gradientClipNorm (pod wild-0-worker-0-1, exit code 71: the loss is not finite)'
cox 0 run wild.yaml --state wild && printed "^wild-0 diverged: $because; with learningRate 1000$" && (unset KUBECONFIG && cox 0 sweep get wild --state wild && printed '^0 *Diverged ' &&
    cox 0 get --state wild && printed '^wild-0 *Diverged ' '^wild-1 *Succeeded ' && cox 0 why wild-0 --state wild && printed "^wild-0 waits for nothing: it has diverged: $because$" &&
    cox 0 describe wild-0 --state wild && printed '^State *Diverged, 0/1 ready$')
verdict $? "a trial that diverges is told as diverged by each command, in one sentence" "$(said)"
cat >silent.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: silent}
spec:
  maxTrials: 1
  objective: {metric: score, goal: Maximize}
  earlyStopping: {type: Median, minSteps: 1}
  parameters: [{env: RATE, values: [a]}]
  template:
    image: none
    pytorch: {}
    workers: {template: {spec: {containers: [{name: trainer, command: ["true"]}]}}}
YAML
cox 1 run silent.yaml --state silent && grep -q '^cox run: warning: earlyStopping: no trial is stopped or paused, because pytorch has no progress: say there' err &&
    (unset KUBECONFIG && cox 0 sweep get silent --state silent && printed '^0 *Failed ' && cox 0 why silent --state silent && printed '^silent-0 succeeded, but reports no score; with RATE a$')
verdict $? "a script that reports nothing fails, and there is a warning that it cannot be stopped early" "$(said)"
cat >failing.yaml <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: failing}
spec:
  maxTrials: 1
  objective: {metric: score, goal: Maximize}
  parameters: [{env: RATE, values: [a]}]
  template:
    image: none
    pytorch: {}
    workers: {template: {spec: {containers: [{name: trainer, command: [sh, -c, "echo start >>$PWD/starts; exit 1"]}]}}}
YAML
cox 1 run failing.yaml --state failing && [[ $(wc -l <starts) == 1 ]] && rm starts &&
    cox 1 run failing.yaml --state failing --fresh --set spec.template.runPolicy.backoffLimit=1 && [[ $(wc -l <starts) == 2 ]]
verdict $? "a script that fails is not started again, unless the template has a backoffLimit" "$(said) $(wc -l starts)"
manifest weights 'parallelism: 1
  algorithm: {type: Grid}
  budget: {workerHours: 0.00001}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.01, 0.1, 0.2]}]'
sed -i 's/^    coxswain:$/    storage: [{name: runs, persistentVolumeClaim: {claimName: runs}}]\n&\n      checkpoint: {storage: runs, keepBest: true}\n      export: {storage: runs, path: w.safetensors, weights: Best}/' weights.yaml
cox 0 run weights.yaml --state weights && printed '^weights is complete: 1 of 1 trials succeeded; the budget of 1e-05 worker-hours is used, so no more trials began$'
verdict $? "trials may export their best weights, and a budget that is used is told" "$(said)"

run_sweep grid.yaml
has_best() { cox 0 sweep get grid && printed ' best$'; }
until_true 120 has_best && echo 2000 >delay # the other trials are still under way when the sweep is stopped
verdict $? "cox run starts a sweep, and cox sweep get marks its best trial" "$(said; cat ran)"
printed '^TRIAL *STATE *learningRate *batchSize *validationLoss *\(STEP\)\{0,1\}$' '^0 *[A-Z][a-z]* *0.001 *30'
verdict $? "the table has the values of the trials" "$(said)"
cox 0 sweep top grid --once && printed '^grid  Grid, 2 trials at a time  Running' ' [1-3]/4 done' '^best  grid-[0-3]: validationLoss ' '^trial [1-3]  ' && cox 1 sweep top none &&
    grep -q '"none" not found' err && cox 0 sweep top grid && printed '^grid  Grid'
verdict $? "top shows how many trials are done, the best one, and those that run" "$(said)"
cox 0 sweep get && printed '^NAME *STATE *TRIALS' '^grid *Running *4' && cox 0 sweep get -A && printed '^default *grid' &&
    cox 0 sweep get -o name && printed '^trainingsweep.coxswain.dev/grid$' && cox 0 sweep get grid -o yaml &&
    printed '^kind: TrainingSweep' && cox 0 sweep get -l team=none && grep -q 'no training sweeps in namespace default' err
verdict $? "sweeps are listed" "$(said)"
cox 0 sweep stop grid && printed '^grid is being stopped'
verdict $? "stop stops it" "$(said)"
is_stopped() { cox 0 sweep get && printed '^grid *Suspended'; }
cox 0 wait grid --for Suspended --timeout 60 && is_stopped && cox 3 wait grid --timeout 1 && grep -qx 'cox wait: grid: timed out' err && cox 0 describe grid && printed '^grid .* Suspended$'
verdict $? "the sweep is suspended, which wait waits for" "$(said)"
cox 0 sweep best grid && printed '^# Trial grid-[0-3], the best of the sweep grid: validationLoss ' '^kind: TrainingJob$' \
    '^  name: grid-best$' '^        learningRate: 0\.' '^      batchSize: 3[01]$' && cox 0 sweep best grid -o json && printed '"grid-best"'
verdict $? "the best is a manifest" "$(said)"
cox 1 sweep best none && grep -q '"none" not found' err && cox 1 sweep stop none && cox 1 sweep export none
verdict $? "a sweep that does not exist is exit code 1" "$(said)"

kill -TERM "$runner"
ended_with 130 && grep -q '^Suspended with [12] of 4 trials done\. The state is kept in .*; to resume it:$' ran
verdict $? "an interrupted run says how far it came" "$(cat ran)"
(unset KUBECONFIG && cox 0 sweep get --state state && printed '^grid *Suspended *4 *0 ' && cox 0 runs --state state && printed '^grid *Sweep *Suspended *[12]/4 ' && cox 0 sweep get grid --state state && ! printed ' Running ' &&
    cox 0 sweep top grid --state state && printed '^grid  Grid, 2 trials at a time  Suspended$' ' [12]/4 done' && ! printed ' left' && ! printed ' Running ')
verdict $? "and nothing says that it still runs" "$(said)"
mv ran first
run_sweep grid.yaml
until_true 60 grep -qx 'cox run: grid was suspended, and is resumed' ran && cox 0 runs --state state && printed '^grid *Sweep *Running '
verdict $? "run again, it is resumed" "$(said; cat ran)"
cox 0 sweep stop grid && until_true 60 is_stopped && cox 0 runs --state state && printed '^grid *Sweep *Suspended ' && cox 0 sweep resume grid && printed '^grid goes on$'
verdict $? "and resume lets it go on, too" "$(said; cat ran)"
rm delay
ended_with 0 && grep -q '^grid is complete: 4 of 4 trials succeeded$' ran &&
    grep -q '^  best  *grid-[0-3]: validationLoss [0-9.e-]*$' ran && grep -q '^ *coxswain.training.batchSize  *3[01]$' ran
verdict $? "at its end it says what is best" "$(cat ran)"
[[ $(cat first ran | grep -c '^grid-[0-3]: validationLoss .* with learningRate 0') == 4 ]] && grep -qx '[12] of 4 trials were done before this command' ran && grep -q '^trials 4/4 done  best validationLoss' ran
verdict $? "and the result of each trial that ended since" "$(cat first ran)"
[[ $(grep -c '^[0-3],grid-[0-3],Succeeded,0\.[0-9]*,3[01],' state/trials.csv) == 4 && $(grep -c ',true$' state/trials.csv) == 1 ]]
verdict $? "the trials are kept as a table" "$(cat state/trials.csv)"
next=$(sed -n '/^To train the best values/{n;p}' ran)
cox 0 run "${next##* }" --state other && printed '^grid-best is done'
verdict $? "the command that it names trains the best values" "$next; $(said)"
cox 0 run grid.yaml --state state && printed '^grid is complete: 4 of 4' && (($(grep -c '^grid-[0-3]: ' out) == 4)) &&
    printed '^grid had finished before this command; no trial was run now\.$' '^To run it anew:$' \
        '^  .*cox run grid.yaml --state state --fresh$' && ! grep -q 'had finished' ran
verdict $? "run again, it says that it had finished and how to run it anew, and shows the result again" "$(said)"
manifest more 'maxTrials: 2
  algorithm: {type: TPE, startupTrials: 1}
  parameters: [{path: coxswain.training.optimizer.learningRate, uniform: {min: 0.001, max: 0.2}}]'
cox 0 run more.yaml --state more && cox 0 run more.yaml --state more && printed '^To let it go on, with a higher limit:$' '^  .*cox run more.yaml --state more --set spec.maxTrials=N$' &&
    earlier=$(grep '^[01],' more/trials.csv | cut -d, -f1-6) && cox 0 run more.yaml --state more --set spec.maxTrials=4 &&
    printed '^more is complete: 4 of 4' && ! printed 'was run now' && ! printed '^more-[01]: ' && printed '^2 of 4 trials were done before this command$' && [[ $(grep '^[01],' more/trials.csv | cut -d, -f1-6) == "$earlier" ]]
verdict $? "a sweep that is complete goes on with a higher maxTrials" "$(said; cat more/trials.csv)"
manifest few 'maxTrials: 9
  parameters: [{path: coxswain.training.batchSize, values: [30, 31]}]'
cox 0 run few.yaml --state few && printed '^few is complete: 2 of 2 trials succeeded$' '^  The parameters have no other combination of values, so it ended before maxTrials 9.$' &&
    [[ $(cut -d, -f4 few/trials.csv | sort | tr '\n' ' ') == '30 31 coxswain.training.batchSize ' ]] &&
    cox 0 run few.yaml --state few && ! grep -q 'maxTrials=N' out
verdict $? "one whose values were all tried ends, and repeats none" "$(said; cat few/trials.csv)"
kept() {
    cmp run.json state/run.json && [[ $(grep -c Succeeded state/trials.csv) == 4 && -s state/best.yaml && ! -e state/check ]]
}
cp state/run.json .
sed 's/parallelism: 2/parallelism: 0/' grid.yaml >refused.yaml
cox 1 run refused.yaml --state state --fresh && grep -q 'spec.parallelism: 0 should be' err && kept &&
    sed 's/0.001, 0.2/0, -1/' grid.yaml >refused.yaml && cox 1 run refused.yaml --state state --fresh --delete-volumes &&
    grep -q 'values\[0\]: coxswain.training.optimizer.learningRate: 0 is out of bounds' err && kept &&
    sed 's/0.001, 0.2/0.1/; s/coxswain.training.optimizer.learningRate/coxswain.model.layers.9.units/' grid.yaml >refused.yaml &&
    cox 1 run refused.yaml --state state --fresh && grep -q 'layers' err && kept
verdict $? "a sweep that is refused, or whose first trials are, deletes nothing with --fresh" "$(said)"
cox 0 run grid.yaml --state state --set spec.parallelism=4 && cox 1 run grid.yaml --state state --set spec.template.coxswain.training.steps=21 &&
    grep -q 'The earlier run with this name has other settings' err
verdict $? "a sweep of that name with another template is refused" "$(said)"

(unset KUBECONFIG && cox 0 sweep top --state state && printed '^grid  Grid' ' 4/4 done' && cox 0 sweep top grid --state state && printed ' 4/4 done')
verdict $? "top shows a run that is over" "$(said)"

# In a cluster that has an operator already.
plane_start
operator_start
cox 0 run grid.yaml --kubeconfig "$KUBECONFIG" && printed '^grid is complete' "sweep best grid --namespace default --kubeconfig .* | .* run - --kubeconfig" &&
    printed '^grid had finished before this command' 'delete it first: kubectl delete ts grid --namespace default$'
verdict $? "in a cluster the next command asks it for the best" "$(said)"
cox 0 sweep export grid && [[ $(head -n 1 out) == trial,name,state,coxswain.training.optimizer.learningRate,coxswain.training.batchSize,objective,step,seconds,best ]] &&
    (($(wc -l <out) == 5)) && cox 0 sweep export grid -o json && python3 -c 'import json, sys
trials = json.load(open("out"))
sys.exit(not (sum(t["best"] for t in trials) == 1 and all(0 < t["objective"] and 0 < t["step"] and 0 < t["seconds"] for t in trials) and any(t["seconds"] % 1 for t in trials) and [t["parameters"]["coxswain.training.batchSize"] for t in trials] == [30, 31] * 2))'
verdict $? "export writes csv and json" "$(said)"
cox 0 sweep run grid.yaml --kubeconfig "$KUBECONFIG" && printed '^grid had finished before this command' && sed 's/TrainingSweep/TrainingJob/' grid.yaml >job.yaml &&
    cox 1 sweep run job.yaml && grep -q '^cox sweep run: grid is a TrainingJob, not a TrainingSweep: run it with .cox run.$' err && cox 0 sweep top grid && printed '^grid .* Complete'
verdict $? "cox sweep run runs sweeps, and refuses jobs" "$(said)"
cox 1 sweep stop grid && grep -q 'sweep grid is over: there is nothing to stop' err
verdict $? "what is over is not stopped" "$(said)"
cox 0 sweep export grid -o json && cp out trials.json
for trial in 0 1 2 3; do api DELETE "$jobs_path/grid-$trial" >/dev/null; done
lists_none() { cox 0 get && (($(grep -c '^grid-' out) == 0)); }
until_true 60 lists_none && cox 0 sweep get grid && (($(grep -c ' best$' out) == 1)) && (($(wc -l <out) == 5)) && cox 0 sweep export grid -o json &&
    python3 -c 'import json, sys
before, after = (json.load(open(name)) for name in ("trials.json", "out"))
for trial in before: trial["seconds"] = trial["step"] = None
sys.exit(before != after)'
verdict $? "all trials are listed with their values when their jobs are gone" "$(said; cat trials.json)"

manifest hopeless 'algorithm: {type: Grid}
  maxFailedTrials: 0
  parameters: [{path: coxswain.data.validation.last, values: [400, 100]}]'
cox 1 run hopeless.yaml --kubeconfig "$KUBECONFIG" && printed '^hopeless has failed: ' '^hopeless-0 failed: .*; with last 400$'
verdict $? "a sweep that fails is exit code 1" "$(said)"
cox 1 run hopeless.yaml --state failed && printed '^hopeless has failed: ' '^When the cause is corrected, run the sweep again:$' \
    '^  .*cox run hopeless.yaml --state failed --fresh$' && ! grep -q 'run the job again' out &&
    cox 1 run hopeless.yaml --state failed && printed '^hopeless had failed before this command' && ! grep -q 'When the cause' out
verdict $? "and says how to run the sweep again" "$(said)"
cox 0 run hopeless.yaml --state failed --set spec.maxFailedTrials=1 && printed '^hopeless is complete: 1 of 2 trials succeeded'
verdict $? "one that had too many failures goes on when more are allowed" "$(said)"
sed 's/validation.last/validation.lats/' hopeless.yaml >mistyped.yaml
cox 1 run mistyped.yaml --state mistyped && grep -q 'there is no field lats; did you mean last?' err && [[ ! -e mistyped ]]
verdict $? "a path that no job has is refused before anything starts" "$(said)"
manifest forgetful 'maxTrials: 4
  earlyStopping: {type: ASHA, minSteps: 5, action: Pause}
  parameters: [{path: coxswain.training.optimizer.learningRate, values: [0.1]}]'
cox 1 run forgetful.yaml --state forgetful && grep -q 'spec.template.coxswain.checkpoint: is missing, and with earlyStopping.action Pause trials go on from there; say where they are saved$' err &&
    [[ ! -e forgetful ]]
verdict $? "pauses without checkpoints are refused before anything starts" "$(said)"
sed -e '/earlyStopping/d; s/maxTrials: 4/maxTrials: 4\n  algorithm: {type: PBT, population: 2}/' forgetful.yaml >crowd.yaml
cox 1 run crowd.yaml --state crowd && grep -q 'checkpoint: is missing, and with PBT trials go on from there; say where they are saved$' err && [[ ! -e crowd ]]
verdict $? "and so is a population without them" "$(said)"
sed -e '/earlyStopping/d; s/maxTrials: 4/&\n  objective: {metric: validationAccuracy, goal: Maximize}/; s/model: .*/model: {preset: gpt-bytes, width: 16, depth: 1, heads: 1, context: 8}/' \
    -e 's/ data: .*/ data: {format: Bytes, train: {text: \/corpus.txt}, validation: {last: 2}}/' forgetful.yaml >words.yaml
cox 1 run words.yaml --state unmeasured && grep -q 'spec.objective.metric: the jobs of the template do not report validationAccuracy; take validationLoss' err && [[ ! -e unmeasured ]]
verdict $? "and an accuracy of jobs without classes" "$(said)"
cox 1 sweep best hopeless && grep -q 'sweep hopeless has no best trial: none has succeeded$' err
verdict $? "and has no best trial" "$(said)"
cox 1 run grid.yaml --kubeconfig "$KUBECONFIG" --set spec.template.coxswain.trainnig=1 && grep -q 'there is no field trainnig; did you mean training? The fields are' err &&
    cox 1 run grid.yaml --state third --volume data=/tmp && grep -q 'the job has no claim' err && cat grid.yaml >two.yaml && echo --- >>two.yaml &&
    cat hopeless.yaml >>two.yaml && cox 1 run two.yaml && grep -q 'more than one TrainingJob or TrainingSweep' err
verdict $? "what is wrong with a manifest is told" "$(said)"

cox 0 completion bash && completed=$(PATH=$bin:$PATH bash -c '. ./out
    complete_words() { COMP_WORDS=(cox "$@"); COMP_CWORD=$#; _cox; echo "${COMPREPLY[@]}"; }
    complete_words swe; complete_words sweep re; complete_words sweep ru; complete_words sweep run --fr; complete_words sweep run hopel; complete_words sweep best h; complete_words sweep export grid -o c
    complete_words sweep get --all') && [[ $completed == $'sweep\nresume\nrun\n--fresh\nhopeless.yaml\nhopeless\ncsv\n--all-namespaces' ]]
verdict $? "completion knows the commands, the names and the forms of sweeps" "$completed"

unset KUBECONFIG
for example in "$root"/deploy/examples/sweeps/*.yaml; do
    shorter=(--set spec.template.coxswain.training.steps=20)
    if grep -q '^ *pytorch: ' "$example"; then
        if ! python3 -c 'import torch' 2>/dev/null; then
            echo "skip the example $(basename "$example"): python3 has no PyTorch"
            continue
        fi
        shorter=()
    fi
    if grep -q '^ *type: Hyperband' "$example"; then # with fewer trials than a round has it is refused
        shorter+=(--set spec.earlyStopping.reductionFactor=2 --set spec.earlyStopping.brackets=2)
    fi
    if grep -q '^ *type: PBT' "$example"; then # as with fewer than two generations
        shorter+=(--set spec.algorithm.population=2)
    fi
    cox 0 run "$example" --state "$(basename "$example" .yaml)" --set spec.maxTrials=4 "${shorter[@]}" &&
        printed 'is complete: 4 of 4 trials succeeded'
    verdict $? "the example $(basename "$example") runs on one machine" "$(said)"
    if grep -q '^ *type: PBT' "$example"; then
        next=$(sed -n '/^To go on from the best trial/{n;p}' out)
        read -ra words <<<"${next#* run }"
        cox 0 run "${words[@]}" --state further && printed '^learning-rate-population-best is done' && grep -q 'goes on from step [24]0 of another job' out err
        verdict $? "the command that it names goes on from the best trial" "$next; $(said)"
    fi
done
