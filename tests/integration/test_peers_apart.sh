#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The chief of an elastic PeerToPeer crew is lost, and its successor finds nobody for as long as it waits: it goes on from the checkpoint,
# and who has lived on comes afterwards. No example counts twice. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

batch=24 workers=2
worker_document='{"name":"apart","namespace":"default","strategy":{"type":"PeerToPeer","exchange":"Gossip"},"workers":'$workers',
    "model":{"preset":"mlp","width":32},"devices":{"count":1},
    "data":{"format":"synthetic","examples":1100,"validation":{"last":100}},
    "training":{"steps":100000000,"stepsPerEpoch":1000000,"batchSize":'$batch',"seed":7,
        "optimizer":{"type":"adamw","learningRate":"2e-4"}},
    "storage":[{"name":"runs"}],"checkpoint":{"storage":"runs","path":"apart","everySteps":20,"keep":2},
    "crew":{"roles":[{"name":"worker","count":'$workers',"minCount":1,"maxCount":3}],"hostPattern":"{role}-{index}","port":2222}}'
for seat in 0 1 2; do echo "$network.$((seat + 1)) worker-$seat"; done >hosts
echo 5 >delay # milliseconds a batch: the record stays small

# join SEAT EPOCH: its process has the number in pids[SEAT] then
join() {
    COXSWAIN_JOB=$worker_document COXSWAIN_JOB_UID=hand COXSWAIN_ATTEMPT=1 COXSWAIN_EPOCH=$2 COXSWAIN_ROLE=worker \
        COXSWAIN_INDEX=$1 COXSWAIN_POD_IP=$network.$(($1 + 1)) COXSWAIN_HOSTS_FILE=$work/hosts COXSWAIN_THREADS=1 \
        COXSWAIN_STORAGE=runs=$work COXSWAIN_RECORD=$work/record COXSWAIN_READ_DELAY=$work/delay \
        COXSWAIN_TERMINATION_LOG=$work/ended.$1.$2 "$worker" >"apart.$1.$2.log" 2>&1 &
    pids[$1]=$!
}

newest_manifest() {
    local manifests=(apart/step-*/manifest.json)
    echo "${manifests[-1]}"
}

# has_saved STEP: a checkpoint of that step or a later one
has_saved() {
    local name
    name=$(newest_manifest)
    name=${name#apart/step-}
    [[ $name == [0-9]* ]] && ((10#${name%%.*} >= $1))
}

# in_all: examples that count, by the newest checkpoint
in_all() {
    sed -n 's/.*"finished":\[\([0-9,]*\)\].*/\1/p' "$(newest_manifest)" | tr ',' '\n' | awk '{ sum += $1 } END { print sum + 0 }'
}

# taken: examples at most, by what each worker of the crew has recorded of its steps
taken() {
    echo $(($(grep -c '^peer .* finished ' record) * batch / workers))
}

# sizes SEAT EPOCH: of the worlds that it tells of
sizes() {
    sed -n 's/.*the crew has \([0-9]*\) worker.*/\1/p' "apart.$1.$2.log" | tr '\n' ' '
}

sizes_are() {
    [[ $(sizes "$1" "$2") == "$3 " ]]
}

join 0 1
join 1 2
until_true 60 has_saved 200
verdict $? "peers train and save" "$(tail -n 2 apart.*.log)"
kill -STOP "${pids[1]}" && kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
join 0 3
until_true 60 grep -qs 'resumes from the checkpoint of step' apart.0.3.log && until_true 60 sizes_are 0 3 1
verdict $? "a chief's successor that finds nobody goes on from the checkpoint" "$(tail -n 3 apart.0.3.log)"
kill -CONT "${pids[1]}"
until_true 60 sizes_are 0 3 "1 2"
verdict $? "who has lived on comes afterwards" "$(tail -n 3 apart.*.log)"
until_true 60 has_saved $(($(in_all) / batch + 100))
verdict $? "and they train on together" "$(tail -n 3 apart.*.log)"
kill -TERM "${pids[@]}"
await_crew
counted=$(in_all) computed=$(taken)
((counted > 0 && counted <= computed))
verdict $? "no example counts twice" "$counted count, $computed were computed"
