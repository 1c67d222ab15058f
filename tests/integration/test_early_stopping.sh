#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trials of TrainingSweeps that are stopped before their end, with real workers against the embedded control plane: by ASHA and by
# the median, and while the operator is killed again and again. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/sweep.sh"
cox_command=(timeout 60 "$bin/cox")
. "$root/tests/integration/cox.sh"

if ! command -v python3 >/dev/null; then
    echo "skip early stopping: python3 is not installed"
    exit 0
fi
plane_start
operator_start
export KUBECONFIG=$work/state/kubeconfig

# A test on the validation data every ten steps. The first rate learns, the others next to nothing.
coxswain='"evaluation":{"everySteps":10},' examples=2000
rates='"parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.1,0.0003,0.0002,0.0001]}]'
echo 50 >delay

sweep asha "\"algorithm\":{\"type\":\"Grid\"},\"parallelism\":2,\"earlyStopping\":{\"type\":\"ASHA\",\"minSteps\":20,\"reductionFactor\":2},$rates" 150
sweep_is asha Complete 60 && is_told asha 'status["results"][0]["state"] == "Succeeded" and status["best"]["trial"] == "asha-0"'
verdict $? "the trial that learns comes to its end" "$(told asha 'status')"
is_told asha '[r["state"] for r in status["results"]][2:] == ["Stopped"] * 2 and status["trials"]["stopped"] >= 2 and status["trials"]["succeeded"] + status["trials"]["stopped"] == 4'
verdict $? "those that came to a rung after a better one are stopped" "$(told asha 'status')"
is_told asha 'all(r["step"] < 150 and r["step"] % 10 == 0 and float(r["objective"]) == float(r["rungs"].split(",")[-1]) for r in status["results"] if r["state"] == "Stopped")'
verdict $? "the results say when, and what they had" "$(told asha 'status["results"]')"
is_told asha 'all(j["spec"]["suspend"] for j, r in zip(t, status["results"]) if r["state"] == "Stopped")' && until_true 60 no_pods_of asha-2 &&
    until_true 60 no_pods_of asha-3 && is_told asha 'state(t[2]) == "Suspended"'
verdict $? "their jobs are suspended and have no pods" "$(told asha '[(state(j), j["spec"]) for j in t]')"
api GET apis/events.k8s.io/v1/namespaces/default/events >events && grep -q 'asha-2 has validationLoss [0-9.]* after step [0-9]*: [0-9] of the [0-9] trials' events
verdict $? "events tell why" "$(grep -o '"TrialStopped".*' events | head -c 1000)"
cox 0 sweep get asha && (($(grep -c ' Stopped ' out) >= 2)) && printed '^3 *Stopped *0.0001 *[0-9.]* *[0-9]*$' && cox 0 sweep export asha && printed '^3,asha-3,Stopped,0.0001,[0-9.]*,[0-9]*,[0-9.]*,false$'
verdict $? "cox shows them" "$(said)"

before=$(told asha 'status["trials"], status["results"], status["best"]')
echo 5 >delay
cox 0 resume asha-2 && until_true 60 is_told asha 'state(t[2]) == "Succeeded"' && [[ $(told asha 'status["trials"], status["results"], status["best"]') == "$before" ]]
verdict $? "a job that was stopped can be resumed, and counts no more" "$before; $(told asha '[state(j) for j in t], status')"
echo 50 >delay

sweep median "\"algorithm\":{\"type\":\"Grid\"},\"parallelism\":2,\"earlyStopping\":{\"type\":\"Median\",\"minSteps\":20,\"startupTrials\":1},$rates" 150
sweep_is median Complete 60 && is_told median 'status["results"][0]["state"] == "Succeeded" and status["results"][3]["state"] == "Stopped" and status["best"]["trial"] == "median-0"'
verdict $? "the median stops the worst" "$(told median 'status')"

# The operator is killed again and again: what was decided stays decided.
echo 20 >delay
sweep storm '"maxTrials":12,"parallelism":3,"algorithm":{"type":"TPE","startupTrials":2,"seed":9},"earlyStopping":{"type":"ASHA","minSteps":10,"reductionFactor":3},
    "parameters":[{"path":"coxswain.training.optimizer.learningRate","logUniform":{"min":0.0001,"max":0.2}}]' 60
: >decided
rounds=0
until is_told storm 'state(s) in ("Complete", "Failed")' || ((++rounds > 25)); do
    told storm '"\n".join(f"{i} {k} {v}" for i, r in enumerate(status.get("results", [])) if r["state"] != "Running" for k, v in sorted(r.items()))' >>decided
    sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
    operator_kill
    operator_start
done
sweep_is storm Complete 60 && is_told storm 'len(t) == 12 and sum(status["trials"][k] for k in ("succeeded", "stopped")) == 12 and status["trials"]["stopped"] > 0'
verdict $? "a sweep that stops trials outlives its operators" "$rounds kills; $(told storm 'status')"
told storm '"\n".join(f"{i} {k} {v}" for i, r in enumerate(status["results"]) for k, v in sorted(r.items()))' >>decided
[[ -z $(sort -u decided | cut -d ' ' -f 1,2 | uniq -d) ]]
verdict $? "no result changes" "$(sort -u decided)"
is_told storm 'all((state(j) == "Suspended") == (r["state"] == "Stopped") for j, r in zip(t, status["results"]))'
verdict $? "those that were stopped, and no others, are suspended" "$(told storm '[(state(j), r) for j, r in zip(t, status["results"])]')"
is_told storm 'status["best"]["trial"] in [j["metadata"]["name"] for j, r in zip(t, status["results"]) if r["state"] == "Succeeded"]'
verdict $? "the best has succeeded" "$(told storm 'status')"
