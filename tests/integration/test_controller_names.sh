#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Operators that are told apart by --controller-name: each runs the jobs and sweeps whose spec.managedBy is its name, and the one without the
# option those without a managedBy, too. tests/cluster/test_controller_names.sh has more. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
export KUBECONFIG=$work/state/kubeconfig
sweeps_path=${jobs_path%trainingjobs}trainingsweeps

spec_of() {
    echo "${1:+\"managedBy\":\"$1\",}\"workers\":{\"replicas\":1},\"coxswain\":{\"strategy\":{\"type\":\"OneDevice\"},\"model\":{\"preset\":\"mlp\"},
        \"data\":{\"format\":\"Synthetic\",\"examples\":1000},\"training\":{\"steps\":10,\"batchSize\":100,\"optimizer\":{\"type\":\"SGD\",\"learningRate\":0.1}}}"
}

# job_of NAME [MANAGER]
job_of() {
    api POST "$jobs_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{$(spec_of "${2:-}")}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

# sweep_of NAME [MANAGER]: of one trial
sweep_of() {
    api POST "$sweeps_path?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingSweep\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"objective\":{\"metric\":\"loss\",\"goal\":\"Minimize\"},\"maxTrials\":1,\"algorithm\":{\"type\":\"Grid\"},
            \"parameters\":[{\"path\":\"coxswain.training.optimizer.learningRate\",\"values\":[0.1]}],\"template\":{$(spec_of "${2:-}")}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

is_untouched() {
    api GET "$jobs_path/$1" | contains '"uid"' && ! api GET "$jobs_path/$1" | contains '"status"'
}

plane_start
operator_start "$KUBECONFIG" --controller-name example.com/team
named=$operator
finish_also() {
    kill "$named" 2>/dev/null
}
job_of mine example.com/team
job_of theirs coxswain.dev/operator
job_of plain
job_of strange example.com/strange
sweep_of tried example.com/team
sweep_of swept
wait_for mine state Succeeded 20 && wait_for tried-0 state Succeeded 20
verdict $? "an operator with a name runs the jobs that give it, and the sweeps whose template does" "$(tail -n 5 operator.log)"
is_untouched theirs && is_untouched plain && is_untouched strange && api GET "$jobs_path/swept-0" | contains NotFound
verdict $? "it leaves alone those of other names, and those without one" "$(api GET "$jobs_path" | tail -c 1500)"
[[ $(metric 'coxswain_jobs{state="Pending"}') == 0 && $(metric 'coxswain_jobs{state="Succeeded"}') == 2 ]]
verdict $? "and does not count them" "$(metric 'coxswain_jobs{state="Pending"}') $(metric 'coxswain_jobs{state="Succeeded"}')"
"$bin/cox" why strange | contains 'waits for the controller example.com/strange (spec.managedBy), which has not seen it yet'
verdict $? "cox why names the controller that a job waits for" "$("$bin/cox" why strange)"
"$bin/cox" why mine | contains 'it has succeeded'
verdict $? "and tells of a job with a name what it tells of others" "$("$bin/cox" why mine)"

operator_start
wait_for theirs state Succeeded 20 && wait_for plain state Succeeded 20 && wait_for swept-0 state Succeeded 20 && is_untouched strange
verdict $? "an operator without a name runs those without, and those that give its default" "$(api GET "$jobs_path" | tail -c 1500)"
