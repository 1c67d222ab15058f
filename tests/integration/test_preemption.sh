#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whole crews under the operator and the embedded control plane: any number of workers, SIGKILLs of every role with
# the operator killed meanwhile, the loss of everybody, another number of workers, a frozen worker. Each job has to end in
# the weights of an undisturbed run, bit for bit. Prints ok/not ok lines (see tests/run).
#
#   PREEMPTION_SEED=n    the same moments again, as far as timing allows
#   PREEMPTION_KILLS=n   8; `make chaos` has a thousand
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
seed=${PREEMPTION_SEED:-$RANDOM}
kills_wanted=${PREEMPTION_KILLS:-8}
short=200
long=1200
. "$root/tests/integration/training.sh"
echo "# PREEMPTION_SEED=$seed"
RANDOM=$seed

training_start

# ---- any number of workers

for workers in 1 2 3 4; do
    crew "size$workers" "$workers" "$short"
    wait_for "size$workers" state Succeeded 60 && same_weights size1 "size$workers"
    verdict $? "a crew of $workers gives the same bits"
done

# ---- kills

crew undisturbed 2 "$long"
wait_for undisturbed state Succeeded 90 && [[ $(field undisturbed total) == "" ]]
verdict $? "an undisturbed run succeeds"

# has_stepped_on WITNESS RECOVERIES JOB: after a kill at the very end there is no step left, and the job is done.
has_stepped_on() {
    has_recovered_more_than "$1" "$2" || [[ $(field "$3" state) == Succeeded ]]
}

# strike JOB VICTIM WITNESS: kills one worker and waits until another one steps on; fails when nothing could be killed.
strike() {
    local job=$1 victim witness process before
    victim=$(member "$job" "$2") witness=$(member "$job" "$3")
    process=$(process_of "$victim")
    before=$(recoveries "$witness" | wc -l)
    # Not so late that the process might end by itself first.
    (($(step_of "$witness") < long * 9 / 10)) && [[ -n $process ]] && kill -KILL "$process" || return
    killed=$((killed + 1)) of_job=$((of_job + 1))
    if ((RANDOM % 3 == 0)); then
        sleep "0.$((RANDOM % 3))"
        operator_kill
        operator_start
        operator_kills=$((operator_kills + 1))
    fi
    until_true 30 has_stepped_on "$witness" "$before" "$job" || hung+=" $job/$2"
    recoveries "$witness" | tail -n +$((before + 1)) >>recovered
}

killed=0 operator_kills=0 hung=
touch recovered
for ((round = 0; round < 12 && killed < kills_wanted; round++)); do
    workers=$((2 + round % 2)) of_job=0
    delay "killed$round" 30 # it is not done before its last kill
    crew "killed$round" "$workers" "$long"
    await_step "killed$round" 1
    while ((killed < kills_wanted && of_job < 4)); do
        victim=$(((RANDOM % 2) * (1 + RANDOM % (workers - 1)))) # every other time the chief
        sleep "$((RANDOM % 2)).$((RANDOM % 7))"
        strike "killed$round" "$victim" $(((victim + 1) % workers)) || break
    done
    undelay "killed$round"
    wait_for "killed$round" state Succeeded 90 && same_weights undisturbed "killed$round"
    verdict $? "$of_job kills in a crew of $workers end in the same bits"
    [[ $(field "killed$round" total) == "$of_job" ]]
    verdict $? "each of them is counted once" "$(field "killed$round" total), not $of_job"
done
[[ -z $hung ]] && ((killed == kills_wanted))
verdict $? "the crew stepped on after each of $killed kills, with $operator_kills of the operator" "not after$hung"
! grep -v 'nothing was repeated\|one step was repeated' recovered
verdict $? "none cost more than one step"

# ---- everybody at once, and another number of workers

# processes JOB: those of all its current pods
processes() {
    local pod
    for pod in $(pods "$1" coxswain.dev/current=true); do process_of "$pod"; done
}

delay everybody 30
crew everybody 3 "$long"
await_step everybody 150
# shellcheck disable=SC2046 # one word for each process
kill -KILL $(processes everybody)
undelay everybody
wait_for everybody state Succeeded 90 && same_weights undisturbed everybody
verdict $? "everybody killed at once goes on from a checkpoint to the same bits"
log_of "$(member everybody 0)" | grep 'resumes from the checkpoint of step [1-9]' >/dev/null
verdict $? "and says from which" "$(log_of "$(member everybody 0)" | head -n 20)"

delay three 30
crew three 3 "$long" resumed
await_step three 150
api DELETE "$jobs_path/three" >/dev/null
until_true 60 no_pods_of three
crew two 2 "$long" resumed
wait_for two state Succeeded 90 && same_weights undisturbed two
verdict $? "what three workers began two bring to the same bits"

# ---- a frozen worker

chief_waits() {
    curl -s --max-time 2 "http://$(address_of "$(member frozen 0)"):8080/status" | grep '"phase":"Waiting"' >/dev/null
}

delay frozen 30
crew frozen 2 "$long"
await_step frozen 150
victim=$(member frozen 1)
process=$(process_of "$victim")
kill -STOP "$process"
until_true 60 chief_waits
verdict $? "a frozen worker is given up" "$(log_of "$(member frozen 0)" | tail -n 3)"
undelay frozen
kill -CONT "$process"
wait_for frozen state Succeeded 90 && same_weights undisturbed frozen
verdict $? "its successor brings the crew to the same bits"
log_of "$victim" | grep 'exit 163 (superseded by a newer generation)' >/dev/null
verdict $? "and it ends as superseded" "$(log_of "$victim" | tail -n 3)"
