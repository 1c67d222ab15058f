#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The chief of an elastic PeerToPeer crew is lost, and its successor finds no other member while it waits: it goes on from the checkpoint,
# and the surviving workers join afterwards. No example counts twice. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
. "$root/tests/integration/peers_by_hand.sh"
peers apart "$work" 1000000 20
export COXSWAIN_RECORD=$work/record COXSWAIN_READ_DELAY=$work/delay
echo 5 >delay # milliseconds a batch: the record stays small

newest_manifest() {
    local manifests=(apart/step-*/manifest.json)
    echo "${manifests[-1]}"
}

# in_all: examples that count, by the newest checkpoint
in_all() {
    sed -n 's/.*"finished":\[\([0-9,]*\)\].*/\1/p' "$(newest_manifest)" | tr ',' '\n' | awk '{ sum += $1 } END { print sum + 0 }'
}

# taken: examples at most, by what each worker of the crew has recorded of its steps
taken() {
    echo $(($(grep -c '^peer .* finished ' record) * peers_batch / peers_workers))
}

# sizes_are SEAT INCARNATION SIZES: of all worlds that it has told of
sizes_are() {
    [[ $(worlds "$1" "$2") == "$3 " ]]
}

join 0 1
join 1 2
until_true 60 has_saved apart 200
verdict $? "peers train and save" "$(tail -n 2 apart.*.log)"
kill -STOP "${pids[1]}" && kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
join 0 3
until_true 60 grep -qs 'resumes from the checkpoint of step' apart.0.3.log && until_true 60 sizes_are 0 3 1
verdict $? "a chief's successor that finds nobody goes on from the checkpoint" "$(tail -n 3 apart.0.3.log)"
kill -CONT "${pids[1]}"
until_true 60 sizes_are 0 3 "1 2"
verdict $? "a worker that has lived on joins it afterwards" "$(tail -n 3 apart.*.log)"
until_true 60 has_saved apart $(($(in_all) / peers_batch + 100))
verdict $? "and they train on together" "$(tail -n 3 apart.*.log)"
kill -TERM "${pids[@]}"
await_crew
counted=$(in_all) computed=$(taken)
((counted > 0 && counted <= computed))
verdict $? "no example counts twice" "$counted count, $computed were computed"
