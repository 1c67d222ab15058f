#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trials of TrainingSweeps that pause at a rung and go on later from their checkpoints, with real workers against the embedded control
# plane, while the operator is killed again and again: what a trial comes to has the bits of a job that never paused. Prints ok/not ok
# lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/sweep.sh"
cox_command=(timeout 60 "$bin/cox")
. "$root/tests/integration/cox.sh"

if ! command -v python3 >/dev/null; then
    echo "skip promotion: python3 is not installed"
    exit 0
fi
mkdir runs
plane_start --volume "runs=$work/runs"
operator_start
export KUBECONFIG=$work/state/kubeconfig

steps=150
storage='"storage":[{"name":"runs","persistentVolumeClaim":{"claimName":"runs"}}],'
checkpoint='"checkpoint":{"storage":"runs","everySteps":1000,"keep":1},"evaluation":{"everySteps":10},'

# weights_of TRIAL: the SHA-256 of the weights and the optimizer's slots in the last checkpoint, whose folder is TRIAL-UID
weights_of() {
    sha256sum <"$(find "runs/$1"-* -path "*/step-*$steps.*" -name rank-00000.safetensors)"
}

# same_weights TRIAL OTHER
same_weights() {
    local one other
    one=$(weights_of "$1") && other=$(weights_of "$2") && [[ $one && $one == "$other" ]]
}

# The first to come to a rung always pauses there. Of six trials three come to the second rung and one to the third, so the last
# rungs are reached by trials that have paused.
policy=$storage coxswain=$checkpoint examples=2000
echo 100 >delay
sweep halving '"algorithm":{"type":"Grid"},"parallelism":2,"earlyStopping":{"type":"ASHA","minSteps":20,"reductionFactor":2,"action":"Pause"},
    "parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.0001,0.05,0.0002,0.1,0.0003,0.2]}]' $steps
until_true 60 is_told halving 'any(r["state"] == "Paused" for r in status.get("results", []))' && cox 0 sweep get halving && printed '^[0-5] *Paused *0.[0-9]* *[0-9.]* *[0-9]*$'
verdict $? "a trial pauses, and cox shows it" "$(told halving 'status'); $(said)"

rounds=0
until is_told halving 'state(s) in ("Complete", "Failed")' || ((++rounds > 15)); do
    told halving '"\n".join(f"{i} {k} {v}" for i, r in enumerate(status.get("results", [])) for k, v in enumerate(r.get("rungs", "").split(",")) if v)' >>decided
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
    operator_kill
    operator_start
done
sweep_is halving Complete 120 && is_told halving 'len(t) == 6 and status["trials"]["succeeded"] >= 1 and status["trials"]["succeeded"] + status["trials"]["paused"] == 6'
verdict $? "the sweep comes to its end, whoever kills its operators" "$rounds kills; $(told halving 'status')"
told halving '"\n".join(f"{i} {k} {v}" for i, r in enumerate(status["results"]) for k, v in enumerate(r.get("rungs", "").split(",")) if v)' >>decided
[[ -s decided && -z $(sort -u decided | cut -d ' ' -f 1,2 | uniq -d) ]]
verdict $? "no value at a rung changes" "$(sort -u decided)"
is_told halving 'all((state(j) == "Suspended") == (r["state"] == "Paused") for j, r in zip(t, status["results"]))'
verdict $? "those that are paused, and no others, are suspended" "$(told halving '[(state(j), r) for j, r in zip(t, status["results"])]')"
is_told halving 'rate(t[int(status["best"]["trial"].split("-")[1])]) >= 0.05'
verdict $? "a rate that learns wins" "$(told halving 'status')"

is_told halving 'all(r.get("step", 20) in (20, 40, 80) for r in status["results"]) and any("step" in r for r in status["results"])'
verdict $? "and they pause exactly at a rung" "$(told halving 'status["results"]')"

winner=$(told halving 'status["best"]["trial"]')
rate=$(told halving "rate(t[int('$winner'.split('-')[1])])")
is_told halving "t[int('$winner'.split('-')[1])]['status']['controllerState'].get('suspendedMilliseconds', 0) > 0"
verdict $? "it had paused" "$winner; $(told halving '[(state(j), j["status"].get("controllerState")) for j in t]')"

# The same job without a pause.
rm delay
sweep straight "\"algorithm\":{\"type\":\"Grid\"},\"parameters\":[{\"path\":\"coxswain.training.optimizer.learningRate\",\"values\":[$rate]}]" $steps
sweep_is straight Complete && same_weights "$winner" straight-0
verdict $? "its weights are, bit by bit, those of a job that never paused" "$winner $(weights_of "$winner"), straight $(weights_of straight-0); $(find runs)"

# A crew that waits at a rung while nobody decides, and loses a member meanwhile: the successor joins it there, and no step is taken.
pod_runs() { [[ -n $(process_of "$(member "$1" "$2")") ]]; }
waits_at_rung() { log_of "$(member crew-0 0)" | grep "paused after step 20 of 60"; }
sweep crew '"algorithm":{"type":"Grid"},"parallelism":1,"earlyStopping":{"type":"ASHA","minSteps":20,"reductionFactor":2,"action":"Pause"},
    "parameters":[{"path":"coxswain.strategy.type","values":["MultiWorkerMirrored"]},{"path":"workers.replicas","values":[2]},{"path":"coxswain.training.optimizer.learningRate","values":[0.1,0.0001]}]' 60
until_true 30 pod_runs crew-0 0 && until_true 30 pod_runs crew-0 1
operator_kill
until_true 60 waits_at_rung >/dev/null
verdict $? "both workers of a trial wait at the rung while there is no operator" "$(log_of "$(member crew-0 0)" | tail -n 5)"
kill -KILL "$(process_of "$(member crew-0 1)")"
sleep 1
operator_start
sweep_is crew Complete 120 && is_told crew 'status["best"]["trial"] == "crew-0" and status["results"][1]["step"] == 20'
verdict $? "and the sweep is completed after one of them was killed there" "$(told crew 'status'); $(tail -n 5 operator.log)"
sweep alone '"algorithm":{"type":"Grid"},"parameters":[{"path":"coxswain.strategy.type","values":["MultiWorkerMirrored"]},{"path":"workers.replicas","values":[2]},{"path":"coxswain.training.optimizer.learningRate","values":[0.1]}]' 60
steps=60
sweep_is alone Complete && same_weights crew-0 alone-0
verdict $? "with the bits of a crew that never waited" "$(weights_of crew-0) $(weights_of alone-0)"

says_why() { cox 0 why "$1" && printed "^$1 waits$2"; }
says_why crew-1 ' for nothing: its sweep crew is over, and it had paused after step 20 '
verdict $? "cox why says that a trial of a sweep that is over stays paused" "$(said)"

# Whoever resumes a paused job gets one that trains to its end.
cox 0 resume crew-1 && until_true 60 is_told crew 'state(t[1]) == "Succeeded"'
verdict $? "the job of a paused trial that a person resumes does not wait again" "$(told crew '[state(j) for j in t]'); $(said)"

# The trial of a sweep that is gone, as `kubectl delete --cascade=orphan` leaves it, does not wait for ever.
echo 100 >delay
waits_alone() { log_of "$(member orphan-0 0)" | grep "paused after step 20 of 60"; }
sweep orphan '"algorithm":{"type":"Grid"},"parallelism":1,"earlyStopping":{"type":"ASHA","minSteps":20,"reductionFactor":2,"action":"Pause"},
    "parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.1]}]' 60
until_true 30 pod_runs orphan-0 0
operator_kill
rm delay # the operator is gone before the trial is at the rung
until_true 60 waits_alone >/dev/null && api PATCH "$jobs_path/orphan-0" '{"metadata":{"ownerReferences":null}}' >/dev/null
operator_start
orphan_is_done() { [[ $(field orphan-0 state) == Succeeded ]]; }
until_true 60 orphan_is_done && api GET apis/events.k8s.io/v1/namespaces/default/events >events && grep -q PauseOver events
verdict $? "a trial that waits without a sweep goes on to its end" "$(field orphan-0 state); $(log_of "$(member orphan-0 0)" | tail -n 3)"

# Who could go on is not lost when the sweep itself is suspended meanwhile.
echo 200 >delay
sweep halted '"algorithm":{"type":"Grid"},"parallelism":1,"earlyStopping":{"type":"ASHA","minSteps":20,"reductionFactor":2,"action":"Pause"},
    "parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.1,0.0001,0.0002]}]' 60
until_true 60 is_told halted '[r["state"] for r in status.get("results", [])][:1] == ["Paused"]' &&
    until_true 10 says_why halted-0 ', paused after step 20, until it is among the best trials of its sweep halted at that rung$'
verdict $? "cox why says that a paused trial waits at a rung" "$(said)"
cox 0 sweep stop halted && sweep_is halted Suspended && until_true 30 no_pods_of halted-0 &&
    until_true 30 no_pods_of halted-1 && says_why halted-0 ' for a user to resume its sweep halted, which is suspended (cox sweep resume halted)$'
verdict $? "a sweep with a paused trial is suspended" "$(told halted 'status'); $(said)"
cox 0 sweep resume halted && sweep_is halted Complete 90 && is_told halted 'status["best"]["trial"] == "halted-0"'
verdict $? "and its paused trial goes on after it was resumed, and wins" "$(told halted 'status'); $(said)"

coxswain=
sweep forgetful '"maxTrials":2,"earlyStopping":{"type":"ASHA","minSteps":20,"action":"Pause"},"parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.1]}]' 60
sweep_is forgetful Failed && is_told forgetful 'reason("Failed") == "InvalidSpec" and "checkpoint: is missing" in message("Failed")'
verdict $? "without checkpoints there are no pauses" "$(told forgetful 'status')"
