#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a crew stands still when a worker is killed: CHAOS_KILLS (100) SIGKILLs of random roles at random moments over
# LeNet crews of two in the embedded control plane. Fails on a hang, on a step too many, or on other bits than those of
# an undisturbed run.
#
#   CHAOS_SEED=n    the same moments again, as far as timing allows
set -uo pipefail

bin=${BUILD:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
seed=${CHAOS_SEED:-$RANDOM}
kills_wanted=${CHAOS_KILLS:-100}
kills_of_a_job=5
steps=${CHAOS_STEPS:-2500}
finish() {
    plane_stop
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
. "$root/tests/integration/plane.sh"
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/training.sh"
RANDOM=$seed
# shellcheck disable=SC2034 # read by crew
model='"preset":"lenet"' shards=2

mkdir runs
touch recovery_times recovered
make_digits
plane_start --volume "digits=$work" --volume "runs=$work/runs"
operator_start

crew undisturbed 2 "$steps"
wait_for undisturbed state Succeeded 300 || exit 1

killed=0 hung=0 spoilt=0 chiefs=0 miscounted=0

# strike JOB INDEX: kills that worker while the other one watches; fails when the job is too near its end
strike() {
    local victim witness process before status
    victim=$(member "$1" "$2") witness=$(member "$1" $((1 - $2)))
    process=$(process_of "$victim")
    before=$(recoveries "$witness" | wc -l)
    (($(step_of "$witness") < steps * 9 / 10)) && [[ -n $process ]] || return
    "$bin/tests/recovery" "$process" "$(address_of "$witness")" >>recovery_times
    status=$?
    ((status != 3)) || return # the job's end was nearer than it seemed
    killed=$((killed + 1)) of_job=$((of_job + 1)) chiefs=$((chiefs + ($2 == 0))) hung=$((hung + (status != 0)))
    recoveries "$witness" | tail -n +$((before + 1)) >>recovered
}

for ((round = 0; killed < kills_wanted && hung == 0; round++)); do
    crew "chaos$round" 2 "$steps"
    await_step "chaos$round" 1
    of_job=0
    while ((of_job < kills_of_a_job && killed < kills_wanted)); do
        # A crew that ran for less than about two seconds is made to wait before its next start.
        sleep "$((2 + RANDOM % 2)).$((RANDOM % 10))"
        strike "chaos$round" $((RANDOM % 2)) || break
    done
    if ! wait_for "chaos$round" state Succeeded 300 || ! same_weights undisturbed "chaos$round"; then
        spoilt=$((spoilt + 1))
    fi
    restarts=$(field "chaos$round" restartCount)
    miscounted=$((miscounted + (${restarts:-0} != of_job)))
    printf '\r  %d of %d kills' "$killed" "$kills_wanted" >&2
done

repeated=$(grep -c 'one step was repeated' recovered)
too_many=$(grep -vc 'one step was repeated\|nothing was repeated' recovered)
# percentile P: of the recovery times, in seconds
percentile() {
    sort -n recovery_times | awk -v p="$1" '{ t[NR] = $1 } END { i = int((NR - 1) * p + 0.5) + 1; printf "%.2f", t[i] / 1000 }'
}
printf '\r%-34s %d in %d jobs (%d of the chief), seed %d\n' "SIGKILLs" "$killed" "$round" "$chiefs" "$seed"
printf '%-34s min %s  median %s  p90 %s  max %s\n' "kill to the crew's next step, s" \
    "$(percentile 0)" "$(percentile 0.5)" "$(percentile 0.9)" "$(percentile 1)"
printf '%-34s %d\n' "kills that cost a step" "$repeated" "kills that cost more" "$too_many" \
    "hangs" "$hung" "jobs that did not end in the same bits" "$spoilt" "jobs with other restarts than kills" "$miscounted"
((hung == 0 && spoilt == 0 && miscounted == 0 && too_many == 0))
