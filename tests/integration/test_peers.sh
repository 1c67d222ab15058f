#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews whose workers train alone between exchanges, under the operator and the embedded control plane: what is lost
# by a kill, a frozen worker and a resume. Prints ok/not ok lines (see tests/run).
#
#   PEERS_FAULTS=all   every fault in every kind of crew, which takes some minutes
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
steps=2000
. "$root/tests/integration/training.sh"

training_start

learnt() {
    log_of "$(member "$1" 0)" | grep 'held-out examples: accuracy \(100\|9[5-9]\)' >/dev/null
}

# ---- local steps: rounds of 40

strategy='"type":"MultiWorkerMirrored","localSteps":40'
crew rounds 2 "$steps"
wait_for rounds state Succeeded 90 && learnt rounds
verdict $? "a crew of local steps learns" "$(log_of "$(member rounds 0)" | tail -n 5)"
delay struck 10 # it is not done before
more='"devices":{"count":2},' # which the bits do not show
crew struck 2 "$steps"
more=
await_step struck 400 && strike struck 1 KILL
verdict $? "one of its workers is killed"
undelay struck
wait_for struck state Succeeded 90 && same_weights rounds struck
verdict $? "the round is taken again, to the same bits" "$(log_of "$(member struck 0)" | tail -n 5)"
log_of "$(member struck 0)" | grep 'the crew is whole again.*\(step was\|steps were\|nothing was\) repeated' >/dev/null
verdict $? "and what it cost is told"
if [[ -n ${PEERS_FAULTS:-} ]]; then
    steps=20000
    crew long 2 "$steps"
    crew held 2 "$steps"
    wait_for long state Succeeded 600
    await_step held 400
    frozen=$(member held 1)
    strike held 1 STOP && sleep 8 && strike held 1 CONT && until_true 60 is_superseded "$frozen"
    verdict $? "a frozen worker of local steps is superseded when it returns" "$(log_of "$frozen" | tail -n 3)"
    wait_for held state Succeeded 600 && same_weights long held
    verdict $? "and its successor takes the round again, to the same bits" "$(log_of "$(member held 0)" | tail -n 5)"
    steps=2000
fi
strategy=
crew onwards 2 $((steps + 200)) rounds
wait_for onwards state Succeeded 90 && log_of "$(member onwards 0)" | grep "resumes from the checkpoint of step $steps" >/dev/null
verdict $? "a crew without local steps goes on from their checkpoint" "$(log_of "$(member onwards 0)" | head -n 20)"
strategy='"type":"MultiWorkerMirrored","localSteps":40'
crew back 2 $((steps + 400)) rounds
wait_for back state Succeeded 90 && log_of "$(member back 0)" | grep "resumes from the checkpoint of step $((steps + 200))" >/dev/null
verdict $? "and the other way round" "$(log_of "$(member back 0)" | head -n 20)"

# ---- peers at their own pace; what each has finished is told at the end

# has_finished JOB INDEX LINES: its record has more such lines
has_finished() {
    (($(grep -c " finished $2 " "$1.record") > $3))
}

# kill_unheard JOB INDEX OTHERS…: with work that nobody has, since the others stand still for its last steps
kill_unheard() {
    local job=$1 index=$2 other
    shift 2
    for other in "$@"; do strike "$job" "$other" STOP; done
    until_true 60 has_finished "$job" "$index" $(($(grep -c " finished $index " "$job.record") + 20)) && strike "$job" "$index" KILL
    for other in "$@"; do strike "$job" "$other" CONT; done
}

# kill_each JOB: one after another, the chief among them; the others go on meanwhile
kill_each() {
    kill_unheard "$1" 1 0 2 && goes_on "$1" 2 && until_true 60 sizes_end_in "$1" 2 3
    verdict $? "$1: the others go on when one is killed, and take its successor in" "$(sizes "$1" 2)"
    strike "$1" 0 KILL && goes_on "$1" 2 && await_step "$1" 300 && goes_on "$1" 0
    verdict $? "$1: the others go on when the chief is killed, and take its successor in" "$(log_of "$(member "$1" 0)" | tail -n 5)"
}

# counted_for_nothing JOB: examples that count as finished and that were in nobody's replica when a successor began
counted_for_nothing() {
    grep '^peer\|^applied' "$1.record" >"$1.peers"
    python3 "$root/tests/strategies/steps_lost.py" "$1.peers" counted 24
}

newest_checkpoint() {
    local name
    for name in runs/"$1"/step-*.attempt-*; do echo "${name#*/step-}"; done | sed 's/\..*//' | sort -n | tail -n 1
}

# finished JOB: examples, by what the chief tells of all
finished() {
    log_of "$(member "$1" 0)" | awk '/^worker [0-9]* has finished/ { sum += $5 } END { print sum + 0 }'
}

strategy='"type":"PeerToPeer"'
name=peers
recorded=yes
delay "$name" 5 # so that its record stays small
crew "$name" 3 100000000
recorded=
await_step "$name" 200
verdict $? "$name: peers train"
kill_each "$name"
[[ -z ${PEERS_FAULTS:-} ]] || freeze "$name" 2 1
if grep -q ' begins [01] [1-9]' "$name.record"; then
    lost=$(counted_for_nothing "$name")
    [[ $lost == 0 ]]
    verdict $? "$name: examples that count as finished outlive the worker that finished them" "$lost examples do not"
fi
api DELETE "$jobs_path/$name" >/dev/null
until_true 60 no_pods_of "$name"
verdict $? "$name: all leave when asked to"
steps=$((10#$(newest_checkpoint "$name") + 500))
delay "$name-2" 5 # they overshoot by what they have not heard of one another: little while each batch takes its time
crew "$name-2" 2 "$steps" "$name"
wait_for "$name-2" state Succeeded 120 && learnt "$name-2"
verdict $? "$name: the mean of all has learnt, and two go on from it" "$(log_of "$(member "$name-2" 0)" | tail -n 8)"
total=$(finished "$name-2")
((total >= steps * 24 && total < steps * 24 + 24 * 500))
verdict $? "$name: every example is counted" "$total of $((steps * 24))"
