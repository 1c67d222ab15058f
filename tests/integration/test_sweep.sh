#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# TrainingSweeps with real workers against the embedded control plane: a grid, random values, trials that fail, specs that make no
# trials, suspend and resume, names that are taken, deleted trials, and SIGKILL of the operator in the midst of it. Prints
# ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/sweep.sh"

if ! command -v python3 >/dev/null; then
    echo "skip sweep: python3 is not installed"
    exit 0
fi
plane_start
operator_start

grid='"algorithm":{"type":"Grid"},"parallelism":2,"parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.001,0.2]},{"path":"coxswain.training.batchSize","integer":{"min":30,"max":31}}]'
sweep grid "$grid"
sweep_is grid Complete && is_told grid '[(rate(j), batch(j)) for j in t] == [(0.001, 30), (0.001, 31), (0.2, 30), (0.2, 31)]'
verdict $? "a grid tries every combination" "$(told grid '[(rate(j), batch(j)) for j in t], status')"
is_told grid 'status["trials"] == dict(total=4, running=0, succeeded=4, failed=0, diverged=0, stopped=0, paused=0)'
verdict $? "and counts its trials" "$(told grid 'status["trials"]')"
is_told grid 'status["best"]["trial"] == min(t, key=metric)["metadata"]["name"] and float(status["best"]["objective"]) == min(map(metric, t))'
verdict $? "the best has the lowest loss" "$(told grid 'status["best"], [metric(j) for j in t]')"
is_told grid '[float(p["value"]) for p in status["best"]["parameters"]] == [rate(min(t, key=metric)), batch(min(t, key=metric))]'
verdict $? "and its parameters" "$(told grid 'status["best"]')"
KUBECONFIG=$work/state/kubeconfig "$bin/cox" get >got 2>&1 && [[ $(grep -c '^grid-[0-3] .*Succeeded' got) == 4 ]]
verdict $? "cox get lists the trials" "$(cat got)"
api DELETE "$sweeps_path/grid" >/dev/null
gone() { [[ $(api GET "$jobs_path?labelSelector=coxswain.dev/sweep-name%3D$1" | grep -c "\"name\": *\"$1-") == 0 ]]; }
until_true 30 gone grid
verdict $? "they go with their sweep"

sweep short '"ttlSecondsAfterFinished":1,"maxTrials":2,"parameters":[{"path":"coxswain.training.batchSize","integer":{"min":30,"max":31}}]'
deleted() { [[ $(api GET "$sweeps_path/$1") == *'"NotFound"'* ]]; }
until_true 90 deleted short && until_true 30 gone short &&
    api GET apis/events.k8s.io/v1/namespaces/default/events | contains '2 of 2 trials succeeded; the best is short-'
verdict $? "a sweep that has ended is deleted when its TTL has passed, with its jobs" "$(api GET "$sweeps_path/short" | head -c 500)"

random='"maxTrials":4,"parallelism":2,"algorithm":{"seed":3},"parameters":[{"path":"coxswain.training.optimizer.learningRate","logUniform":{"min":0.01,"max":0.1}}]'
runs() { is_told "$1" "[state(j) for j in t] == ['Running'] * $2"; }
echo 1000 >delay
sweep random "$random"
until_true 60 runs random 2 && sleep 1 && runs random 2
verdict $? "two trials run at a time" "$(told random '[state(j) for j in t], status')"
rm delay
sweep_is random Complete && is_told random 'len(t) == 4 and all(0.01 <= rate(j) <= 0.1 for j in t) and len(set(map(rate, t))) == 4'
verdict $? "random values lie in their range" "$(told random '[rate(j) for j in t]')"
rates=$(told random '[rate(j) for j in t]')
sweep again "$random"
sweep_is again Complete && [[ $(told again '[rate(j) for j in t]') == "$rates" ]]
verdict $? "another sweep with that seed has the same" "$rates and $(told again '[rate(j) for j in t]')"

# Every trial that runs has the values that the status kept for it, and later ones lie where the loss was low.
sweep learning '"maxTrials":12,"parallelism":2,"algorithm":{"type":"TPE","seed":3,"startupTrials":4},"parameters":[{"path":"coxswain.training.optimizer.learningRate","logUniform":{"min":0.0001,"max":0.1}},{"path":"coxswain.training.batchSize","values":[50,40]}]'
sweep_is learning Complete 120 && is_told learning '[[rate(j), [50, 40].index(batch(j))] for j in t] == [[float(v) for v in r["values"].split(",")] for r in status["results"]]'
verdict $? "TPE: trials have the values that the status keeps" "$(told learning '[(rate(j), batch(j)) for j in t], status')"
is_told learning '[float(r["objective"]) for r in status["results"]] == [metric(j) for j in t] and len(set(map(rate, t))) == 12'
verdict $? "and their results" "$(told learning '[metric(j) for j in t], status')"

sweep broken '"algorithm":{"type":"Grid"},"maxFailedTrials":2,"parameters":[{"path":"coxswain.data.validation.last","values":[100,400,50]}]'
sweep_is broken Complete && is_told broken '[state(j) for j in t] == ["Succeeded", "Failed", "Succeeded"] and status["trials"]["failed"] == 1'
verdict $? "a sweep goes on after a trial that fails" "$(told broken '[state(j) for j in t], status')"
api GET apis/events.k8s.io/v1/namespaces/default/events | contains '"TrialFailed"'
verdict $? "and an event tells of it" "$(api GET apis/events.k8s.io/v1/namespaces/default/events | tail -c 1000)"
sweep wild '"algorithm":{"type":"Grid"},"maxFailedTrials":0,"parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[1000,999,0.01]},{"path":"coxswain.training.optimizer.weightDecay","values":[1]}]'
sweep_is wild Complete && is_told wild '[r["state"] for r in status["results"]] == ["Diverged", "Diverged", "Succeeded"] and status["trials"]["diverged"] == 2 and status["trials"]["failed"] == 0 and [j["status"]["conditions"][0]["reason"] for j in t[:2]] == ["Diverged"] * 2'
verdict $? "trials that diverge do not count as failed" "$(told wild '[state(j) for j in t], [j["status"]["conditions"][0] for j in t], status')"
KUBECONFIG=$work/state/kubeconfig "$bin/cox" sweep get wild >got 2>&1 && [[ $(grep -c '^[01] .*Diverged' got) == 2 ]]
verdict $? "cox shows them" "$(cat got)"
sweep hopeless '"algorithm":{"type":"Grid"},"maxFailedTrials":0,"parameters":[{"path":"coxswain.data.validation.last","values":[400,100,50]}]'
sweep_is hopeless Failed && is_told hopeless 'reason("Failed") == "TooManyFailedTrials" and len(t) == 1'
verdict $? "more failures than allowed end it" "$(told hopeless 'status')"

# The last evaluation of a rate that is too high is worse than an earlier one, whose weights are kept.
policy='"storage":[{"name":"runs","persistentVolumeClaim":{"claimName":"runs"}}],' \
    coxswain='"checkpoint":{"storage":"runs","keepBest":true},"evaluation":{"everySteps":1},' \
    sweep kept '"algorithm":{"type":"Grid"},"objective":{"value":"Best"},"parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.01,3]}]'
best='float(next(m["value"] for m in j["status"]["progress"]["metrics"] if m["name"] == "bestValidationLoss"))'
sweep_is kept Complete && is_told kept "[float(r['objective']) for r in status['results']] == [$best for j in t]" &&
    is_told kept "any($best < metric(j) for j in t) and all($best <= metric(j) for j in t)"
verdict $? "the objective is that of the best evaluation" "$(told kept '[j["status"]["progress"]["metrics"] for j in t], status')"

# Raised limits, with the operator killed meanwhile: what is over stays, the rest is run.
before=$(told random 'sorted((j["metadata"]["name"], j["metadata"]["uid"]) for j in t)')
api PATCH "$sweeps_path/random" '{"spec":{"maxTrials":6}}' >/dev/null
operator_kill
operator_start
operator_kill
operator_start
until_true 60 is_told random "state(s) == 'Complete' and len(t) == 6 and sorted((j['metadata']['name'], j['metadata']['uid']) for j in t)[:4] == $before and status['trials']['succeeded'] == 6 and 'completionTime' in status"
verdict $? "a complete sweep goes on when maxTrials is raised" "$before; $(told random 'status')"
api PATCH "$sweeps_path/hopeless" '{"spec":{"maxFailedTrials":1}}' >/dev/null
until_true 60 is_told hopeless 'state(s) == "Complete" and status["trials"]["succeeded"] == 2 and status["trials"]["failed"] == 1 and len(t) == 3'
verdict $? "a failed one goes on when maxFailedTrials is raised" "$(told hopeless 'status')"
echo 1000 >delay
sweep spent '"maxTrials":4,"budget":{"workerHours":0.0001},"parameters":[{"path":"coxswain.training.optimizer.learningRate","logUniform":{"min":0.01,"max":0.1}}]'
sweep_is spent Complete && is_told spent 'reason("Complete") == "BudgetUsed" and len(t) < 4'
rm delay
api PATCH "$sweeps_path/spent" '{"spec":{"budget":{"workerHours":1}}}' >/dev/null
until_true 60 is_told spent 'reason("Complete") == "TrialsDone" and status["trials"]["succeeded"] == 4'
verdict $? "and one whose budget was used when the budget is raised" "$(told spent 'status')"

sweep typed '"maxTrials":3,"parameters":[{"path":"coxswain.training.optimiser.learningRate","values":[0.1]}]'
sweep_is typed Failed && is_told typed 'reason("Failed") == "InvalidTemplate" and "coxswain.training.optimiser" in message("Failed") and t == []'
verdict $? "a path with a typing error is named" "$(told typed 'status')"
sweep zero '"maxTrials":3,"parameters":[{"path":"coxswain.training.batchSize","values":[0]}]'
sweep_is zero Failed && is_told zero 'reason("Failed") == "InvalidSpec" and "spec.coxswain.training.batchSize" in message("Failed")'
verdict $? "and so are values that make no job" "$(told zero 'status')"
sweep beyond '"maxTrials":2,"parameters":[{"path":"workers.template.spec.containers.1.image","values":["a"]}]'
sweep_is beyond Failed && is_told beyond 'reason("Failed") == "InvalidSpec" and "path workers.template.spec.containers.1.image leads nowhere: workers.template.spec.containers has 1 element in the template" in message("Failed") and t == []'
verdict $? "a path to an element past the end of a list is refused before any trial" "$(told beyond 'status')"
sweep unsaid '"maxTrials":1,"objective":{"metric":"accuracy","goal":"Maximize"},"parameters":[{"path":"coxswain.training.batchSize","values":[50]}]'
sweep_is unsaid Failed && is_told unsaid 'reason("Failed") == "NoTrialSucceeded"'
verdict $? "a metric that no trial reports" "$(told unsaid 'status')"
sweep refused '"parameters":[{"path":"coxswain.training.batchSize","values":[50]}]' >why
grep -q 'spec.maxTrials.*draw trials without end' why
verdict $? "the control plane refuses what the definition forbids" "$(cat why)"

# Suspended in the midst: its trials lose their pods, and it goes on where it was.
echo 1000 >delay
sweep paused '"algorithm":{"type":"Grid"},"parallelism":2,"parameters":[{"path":"coxswain.training.batchSize","values":[50,60,70]}]'
until_true 60 runs paused 2
verdict $? "two trials run" "$(told paused '[state(j) for j in t], status')"
api PATCH "$sweeps_path/paused" '{"spec":{"suspend":true}}' >/dev/null
sweep_is paused Suspended && until_true 60 no_pods_of paused-0 && until_true 60 no_pods_of paused-1 &&
    is_told paused '[state(j) for j in t] == ["Suspended"] * 2'
verdict $? "suspend ends their pods" "$(told paused '[state(j) for j in t], status')"
rm delay
api PATCH "$sweeps_path/paused" '{"spec":{"suspend":false}}' >/dev/null
sweep_is paused Complete && is_told paused 'status["trials"]["succeeded"] == 3'
verdict $? "resumed, it comes to its end" "$(told paused '[state(j) for j in t], status')"

# A job of somebody else has the name of a trial.
job taken-1 '{}' 1 'sleep 600'
sweep taken '"algorithm":{"type":"Grid"},"parameters":[{"path":"coxswain.training.batchSize","values":[50,60]}]'
waits() { is_told taken 'reason("Running") == "TrialNotCreated" and "taken-1 exists" in message("Running")'; }
until_true 60 waits
verdict $? "a name that is taken is told" "$(told taken 'status')"
api DELETE "$jobs_path/taken-1" >/dev/null
sweep_is taken Complete 120
verdict $? "and once it is free the sweep goes on" "$(told taken 'status')"

echo 1000 >delay
sweep thinned '"algorithm":{"type":"Grid"},"parallelism":2,"parameters":[{"path":"coxswain.training.batchSize","values":[50,60]}]'
until_true 60 runs thinned 2
api DELETE "$jobs_path/thinned-0" >/dev/null
rm delay
sweep_is thinned Complete && is_told thinned 'status["trials"]["failed"] == 1 and [j["metadata"]["name"] for j in t] == ["thinned-1"]'
verdict $? "a trial that is deleted counts as failed and is not made again" "$(told thinned 'status')"

# Jobs that are deleted as soon as they have ended, while writes to the sweep take long.
operator_kill
echo '[{"method": "PATCH", "path": "/trainingsweeps/", "fault": "delay", "delayMs": 1500}]' >rules.json
"$bin/tests/faultproxy" --kubeconfig state/kubeconfig --rules rules.json --out through 2>proxy.log &
proxy=$!
until_true 20 test -s through
operator_start through
policy='"runPolicy":{"ttlSecondsAfterFinished":0},' sweep fleeting \
    '"algorithm":{"type":"Random","seed":3},"maxTrials":12,"maxFailedTrials":0,"parallelism":4,"parameters":[{"path":"coxswain.training.batchSize","integer":{"min":20,"max":60}}]' 4
sweep_is fleeting Complete 120 && is_told fleeting 'status["trials"] == dict(total=12, running=0, succeeded=12, failed=0, diverged=0, stopped=0, paused=0) and "objective" in status["best"]'
verdict $? "a trial counts whose job is deleted as soon as it has ended" "$(told fleeting 'status')"
operator_kill
kill "$proxy"
operator_start

# The operator is killed again and again: no trial is made twice, none is left out, and no value is drawn anew.
echo 50 >delay
sweep storm '"maxTrials":10,"parallelism":3,"algorithm":{"type":"TPE","startupTrials":2,"seed":9},"parameters":[{"path":"coxswain.training.batchSize","integer":{"min":20,"max":60}}]'
: >seen
rounds=0
until is_told storm 'state(s) in ("Complete", "Failed")' || ((++rounds > 20)); do
    told storm '" ".join(j["metadata"]["name"] + "/" + j["metadata"]["uid"] for j in t)' | tr ' ' '\n' >>seen
    sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
    operator_kill
    operator_start
done
sweep_is storm Complete && is_told storm 'len(t) == 10 and status["trials"] == dict(total=10, running=0, succeeded=10, failed=0, diverged=0, stopped=0, paused=0)'
verdict $? "a sweep outlives its operators" "$rounds kills; $(told storm '[state(j) for j in t], status')"
told storm '" ".join(j["metadata"]["name"] + "/" + j["metadata"]["uid"] for j in t)' | tr ' ' '\n' >>seen
[[ $(grep -c . < <(sort -u seen)) == 10 ]]
verdict $? "each trial was made once" "$(sort -u seen | tr '\n' ' ')"
is_told storm '[batch(j) for j in t] == [int(r["values"]) for r in status["results"]]'
verdict $? "with the values that were drawn first" "$(told storm '[batch(j) for j in t], status')"
is_told storm 'status["best"]["trial"] == min(t, key=metric)["metadata"]["name"]'
verdict $? "and the best of all is found" "$(told storm 'status["best"], [metric(j) for j in t]')"
