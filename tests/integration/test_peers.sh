#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews whose workers train alone between exchanges, under the operator and the embedded control plane: what a kill, a
# frozen worker and a resume leave of them. Prints ok/not ok lines (see tests/run).
set -uo pipefail

if ! command -v curl >/dev/null; then
    echo "skip peers: curl is not installed"
    exit 0
fi
bin=${BUILD:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
steps=6000
finish() {
    plane_stop
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
. "$root/tests/integration/plane.sh"
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/training.sh"

mkdir runs
make_digits
plane_start --volume "digits=$work" --volume "runs=$work/runs"
operator_start

# strike JOB INDEX SIGNAL
strike() {
    local process
    process=$(process_of "$(member "$1" "$2")")
    [[ -n $process ]] && kill "-$3" "$process"
}

learnt() {
    log_of "$(member "$1" 0)" | grep 'held-out examples: accuracy \(100\|9[5-9]\)' >/dev/null
}

# ---- local steps: rounds of 40

strategy='"type":"MultiWorkerMirrored","localSteps":40'
crew rounds 2 "$steps"
wait_for rounds state Succeeded 90 && learnt rounds
verdict $? "a crew of local steps learns" "$(log_of "$(member rounds 0)" | tail -n 5)"
crew struck 2 "$steps"
await_step struck 400 && strike struck 1 KILL
verdict $? "one of its workers is killed"
wait_for struck state Succeeded 90 && same_weights rounds struck
verdict $? "the round is taken again, to the same bits" "$(log_of "$(member struck 0)" | tail -n 5)"
log_of "$(member struck 0)" | grep 'the crew is whole again.*\(step was\|steps were\|nothing was\) repeated' >/dev/null
verdict $? "and what it cost is told"
strategy=
crew onwards 2 $((steps + 200)) rounds
wait_for onwards state Succeeded 90 && log_of "$(member onwards 0)" | grep "resumes from the checkpoint of step $steps" >/dev/null
verdict $? "a crew without local steps goes on from their checkpoint" "$(log_of "$(member onwards 0)" | head -n 20)"
strategy='"type":"MultiWorkerMirrored","localSteps":40'
crew back 2 $((steps + 400)) rounds
wait_for back state Succeeded 90 && log_of "$(member back 0)" | grep "resumes from the checkpoint of step $((steps + 200))" >/dev/null
verdict $? "and the other way round" "$(log_of "$(member back 0)" | head -n 20)"
