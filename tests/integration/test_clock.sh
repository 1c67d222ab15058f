#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The machine's clock is set forwards by an hour and back by two while two operators run: the leader keeps leading, crews go on,
# and deadlines expire after their real time. tests/clockshift sets the clock of the operators alone, and tests/faultproxy (without
# a fault) stands between, since certificates have dates too. Prints ok/not ok lines (see tests/run).
# shellcheck disable=SC2016 # the pods' scripts are expanded in the pods
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
proxy='' second=''

finish_also() {
    # shellcheck disable=SC2086 # any may be unset
    kill $proxy $second 2>/dev/null
}

plane_start
echo '[]' >rules.json
"$bin/tests/faultproxy" --kubeconfig state/kubeconfig --rules rules.json --out through 2>proxy.log &
proxy=$!
until_true 10 test -s through

# clock SECONDS: how far the operators' clocks are ahead, from now on
clock() {
    echo "$1" >shift.new && mv shift.new shift
}

# operator LOG
operator() {
    LD_PRELOAD=$bin/tests/clock-shift.so CLOCK_SHIFT=$work/shift "$bin/coxswain-operator" --kubeconfig through \
        --leader-elect --lease-namespace default >>"$1" 2>&1 &
}

leads() {
    grep 'controlling jobs' "$1" >/dev/null
}

# noticed TIMES: what was set by less than a quarter of an hour is a machine that gave the operator no processor between two clocks
noticed() {
    (($(grep -c "the machine's clock was set, correcting the times of jobs.*by_ms[^0-9]*[0-9]\{7\}" operator.log) >= $1))
}

begun() {
    [[ -n $(field "$1" startTime) ]]
}

lease() {
    api GET apis/coordination.k8s.io/v1/namespaces/default/leases/coxswain-operator | tr -d '\n'
}

holder() {
    lease | sed -n 's/.*"holderIdentity": *"\([^"]*\)".*/\1/p'
}

renewed() {
    lease | sed -n 's/.*"renewTime": *"\([^"]*\)".*/\1/p'
}

renewed_since() {
    local now
    now=$(renewed)
    [[ -n $now && $now != "$1" ]]
}

clock 0
operator operator.log
operator=$!
until_true 20 leads operator.log
verdict $? "an operator leads" "$(tail -n 3 operator.log)"
operator second.log
second=$!
leader=$(holder)

job works '{"activeDeadlineSeconds":1800}' 2 'sleep infinity'
suspend=true job rests '{"activeDeadlineSeconds":1800}' 1 'sleep infinity'
wait_for works state Running 60 && wait_for rests state Suspended 60
verdict $? "jobs with deadlines are there"

clock 3600
until_true 20 noticed 1
verdict $? "a clock set forwards is noticed" "$(tail -n 3 operator.log)"
before=$(renewed)
until_true 20 renewed_since "$before" && until_true 20 renewed_since "$(renewed)" && [[ $(holder) == "$leader" ]]
verdict $? "the leader stays leader after the clock was set forwards" "$(holder), not $leader"
# Short, and begun at the last moment: whether it comes to run before is no matter.
job ends '{"activeDeadlineSeconds":40}' 1 'sleep infinity'
until_true 60 begun ends
verdict $? "a job with a short deadline has begun"
clock -3600
until_true 20 noticed 2
verdict $? "a clock set back is noticed" "$(tail -n 3 operator.log)"
wait_for ends state Failed 90 && [[ $(field ends reason) == DeadlineExceeded || $(api GET "$jobs_path/ends") == *DeadlineExceeded* ]]
verdict $? "a deadline does not wait for the two hours" "$(field ends state)"
until_true 20 renewed_since "$(renewed)" && until_true 20 renewed_since "$(renewed)" &&
    [[ $(holder) == "$leader" ]] && ! leads second.log
verdict $? "the leader stays leader after the clock was set back" "$(holder), not $leader"
[[ $(field works state) == Running && $(field works total) == "" ]]
verdict $? "a crew goes on, short of its deadline" "$(field works state)"

# A crew that starts, loses a pod and ends does so at its usual pace.
api PATCH "$jobs_path/rests" '{"spec":{"suspend": false}}' >/dev/null
wait_for rests state Running 60
verdict $? "what was suspended meanwhile starts" "$(field rests state)"
api DELETE "$pods_path/$(member works 1)" >/dev/null
wait_for works disruptions 1 60 && wait_for works state Running 60
verdict $? "a pod that is lost is replaced" "$(field works state), $(field works disruptions)"
