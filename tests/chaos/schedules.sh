#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Random lives of jobs, some at a time, while everything the operator asks of the API server goes through tests/faultproxy
# (cut, repeated, refused, late, malformed) and the operator itself is killed again and again. In each life pods are deleted,
# workers die of SIGKILL, the job is suspended and resumed, in a random order; then it succeeds, its pods are deleted, and it
# is deleted. Whatever happened, the rules of the contract hold: each disruption and each failure is counted once, no pod has
# had its name twice, each index has one current pod, what is over stays over, nothing is left behind.
#
#   BUILD=build tests/chaos/schedules.sh        make schedules
#   SCHEDULES=n          so many lives (200)
#   SCHEDULES_LANES=n    so many at a time (10)
#   SCHEDULES_SECONDS=n  begins no more after this time (1200)
#   SCHEDULES_SEED=n     the same choices
# Prints ok/not ok lines (see tests/run).
# shellcheck disable=SC2016,SC2317 # the pods' scripts are expanded in the pods; functions are called by until_true
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/faulty.sh"
count=${SCHEDULES:-200} lanes=${SCHEDULES_LANES:-10} seconds=${SCHEDULES_SECONDS:-1200} seed=${SCHEDULES_SEED:-$RANDOM}
patience=60
killer='' watcher=''
children=()

finish_also() {
    # shellcheck disable=SC2086 # any may be unset
    kill $killer "${children[@]}" $watcher 2>/dev/null
    [[ ! -s $work/operator ]] || kill -KILL "$(cat "$work/operator")" 2>/dev/null
    faulty_stop
}

echo "# SCHEDULES_SEED=$seed"

# Starts operators, and kills each after a while.
keep_killing() {
    RANDOM=$seed
    while :; do
        "$bin/coxswain-operator" --kubeconfig faulty >>operator.log 2>&1 &
        echo $! >operator
        sleep "$((RANDOM % 12 + 4))"
        kill -KILL $!
        wait $! 2>/dev/null
    done
}

# ---- one life; each of these returns 1 and says why when the contract is broken

broken() {
    echo "$1"
    return 1
}

# settled NAME: it runs, whole, with what was counted so far
settled() {
    until_true $patience counted "$1" || { broken "$(counts "$1"), expected $(expected)"; return; }
    until_true $patience field_is "$1" state Running || { broken "does not run: $(field "$1" state)"; return; }
}

counts() {
    local disruptions failures attempt
    disruptions=$(field "$1" disruptions) failures=$(field "$1" failures) attempt=$(field "$1" attempt)
    echo "${disruptions:-0} disruptions, ${failures:-0} failures, attempt ${attempt:-0}"
}

expected() {
    echo "$disruptions disruptions, $failures failures, attempt $attempt"
}

counted() {
    [[ $(counts "$1") == "$(expected)" ]]
}

runs_as_process() {
    [[ -n $(process_of "$(member "$1" "$2")") ]]
}

disturb() {
    local index=$((RANDOM % workers))
    case $((RANDOM % 3)) in
    0)
        api DELETE "$pods_path/$(member "$1" $index)" >/dev/null
        disruptions=$((disruptions + 1))
        ;;
    1)
        until_true $patience runs_as_process "$1" $index || { broken "worker $index is no process"; return; }
        kill -KILL "$(process_of "$(member "$1" $index)")"
        failures=$((failures + 1))
        ;;
    2)
        api PATCH "$jobs_path/$1" '{"spec":{"runPolicy":{"suspend":true}}}' >/dev/null
        until_true $patience is_suspended "$1" || { broken "is not suspended"; return; }
        no_pods_alive "$1" || { broken "is Suspended, and a pod lives"; return; }
        api PATCH "$jobs_path/$1" '{"spec":{"runPolicy":{"suspend":false}}}' >/dev/null
        attempt=$((attempt + 1))
        ;;
    esac
    settled "$1" || return
    [[ $(pods "$1" coxswain.dev/current=true | wc -l) == "$workers" ]] ||
        broken "not one current pod for each index: $(pods "$1" coxswain.dev/current=true | tr '\n' ' ')"
}

is_suspended() {
    api GET "$jobs_path/$1" | tr -d '\n' | grep '"type": *"Suspended",[^}]*"status": *"True"' >/dev/null
}

no_pods_alive() {
    ! api GET "$pods_path?labelSelector=coxswain.dev/job-name%3D$1" | tr -d '\n' | grep '"phase": *"\(Running\|Pending\)"' >/dev/null
}

life() {
    local name=$1 workers=$((RANDOM % 3 + 1)) disruptions=0 failures=0 attempt=1 i
    local disturbances=$((RANDOM % 4))
    job "$name" '{"backoffLimit":100,"cleanPodPolicy":"None"}' $workers 'until [ -e '"$work/$name"' ]; do sleep 0.2; done'
    settled "$name" || return
    for ((i = 0; i < disturbances; i++)); do disturb "$name" || return; done
    touch "$name"
    until_true $patience field_is "$name" state Succeeded || { broken "does not succeed"; return; }
    counted "$name" || { broken "at its end $(counts "$name"), expected $(expected)"; return; }
    for pod in $(pods "$name"); do api DELETE "$pods_path/$pod" >/dev/null; done
    sleep 1
    if ! field_is "$name" state Succeeded || [[ -n $(pods "$name" coxswain.dev/current=true) ]]; then
        broken "it is not over for good"
        return
    fi
    api DELETE "$jobs_path/$name" >/dev/null
    until_true $patience no_pods_of "$name" || { broken "pods are left"; return; }
}

lane() {
    local lane=$1 i why
    trap - EXIT
    for ((i = lane; i < count && SECONDS < seconds; i += lanes)); do
        RANDOM=$((seed + i))
        if why=$(life "life-$i"); then echo "ok life $i"; else echo "not ok life $i (SCHEDULES_SEED=$seed): $why"; fi
    done
}

plane_start
faulty_start "$seed" 0.05 0.03
# What all pods were called, with their UIDs: seen without the proxy.
curl -sSN --cacert ca.pem -H "Authorization: Bearer $token" "$server/$pods_path?watch=true" >watch.json &
watcher=$!
keep_killing 2>/dev/null &
killer=$!
for ((i = 0; i < lanes; i++)); do
    lane "$i" &
    children+=($!)
done
wait "${children[@]}"
doubles=$(tr -d ' \n' <watch.json | grep -o '"name":"life-[0-9]*-worker-[0-9-]*",[^}]*"uid":"[^"]*"' |
    sed 's/"name":"\([^"]*\)".*"uid":"\([^"]*\)"/\1 \2/' | sort -u | cut -d' ' -f1 | uniq -d)
[[ -s watch.json && -z $doubles ]]
verdict $? "no pod had its name twice" "$doubles"
! grep -i 'assert\|sanitizer' operator.log
verdict $? "no operator fell but by the kills"
