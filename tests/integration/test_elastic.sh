#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Elastic crews under the operator and the embedded control plane, and by hand: workers join and leave while they train, by
# request and by force. Of the synchronous ones the weights are those of a fixed crew, bit for bit. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
steps=5000
. "$root/tests/integration/training.sh"

training_start

# scale JOB WORKERS, as kubectl scale does it
scale() {
    api PATCH "$jobs_path/$1/scale" "{\"spec\":{\"replicas\":$2}}" >/dev/null
}

crew fixed 2 "$steps"
wait_for fixed state Succeeded 120
verdict $? "a fixed crew trains"

more='"elastic":{"minWorkers":1,"maxWorkers":4},'
crew scaled 2 "$steps"
await_step scaled 50 && until_true 60 sizes_end_in scaled 0 2 && scale scaled 4 && until_true 60 sizes_end_in scaled 0 4
verdict $? "newcomers are taken in while the crew trains" "$(sizes scaled)"
scale scaled 2 && until_true 60 sizes_end_in scaled 0 2
verdict $? "those that are scaled down leave it" "$(sizes scaled)"
victim=$(process_of "$(member scaled 1)")
[[ -n $victim ]] && kill -KILL "$victim" && until_true 60 sizes_end_in scaled 0 "1 2"
verdict $? "a killed worker is missed, and its successor taken in" "$(sizes scaled)"
wait_for scaled state Succeeded 120 && same_weights fixed scaled
verdict $? "the elastic crew ends in the same bits as the fixed one" "$(log_of "$(member scaled 0)" | tail -n 5)"
! log_of "$(member scaled 0)" | grep 'steps were repeated'
verdict $? "no loss cost more than one step"

# ---- ParameterServer

# says JOB PATTERN TIMES: worker 0 does, so often at least
says() {
    (($(log_of "$(member "$1" 0)" | grep -c "$2") >= $3))
}

shards=4 more=
crew whole 2 4000
strategy='"type":"ParameterServer","mode":"Synchronous"'
more='"elastic":{"minWorkers":1,"maxWorkers":4},"roles":[{"name":"ps","count":1}],'
crew served 2 4000
await_step served 50 && scale served 4 && until_true 60 says served 'worker [23] has joined' 2
verdict $? "ParameterServer: newcomers are taken in while the crew trains" "$(log_of "$(member served 0)" | tail -n 3)"
scale served 2 && until_true 60 says served 'worker [23] leaves on request' 2
verdict $? "ParameterServer: those that are scaled down leave it" "$(log_of "$(member served 0)" | tail -n 3)"
victim=$(process_of "$(member served 1)")
[[ -n $victim ]] && kill -KILL "$victim"
wait_for served state Succeeded 120 && wait_for whole state Succeeded 120 && same_weights whole served
verdict $? "ParameterServer: and the bits are a fixed crew's" "$(log_of "$(member served 0)" | tail -n 3)"

# ---- PeerToPeer, scaled as a person does it; steps without end

# cox_scale JOB WORKERS
cox_scale() {
    "$bin/cox" scale "$1" --workers "$2" --kubeconfig state/kubeconfig
}

learnt() {
    log_of "$(member "$1" 0)" | grep 'held-out examples: accuracy \(100\|9[5-9]\)' >/dev/null
}

newest_checkpoint() {
    find "runs/$1" -maxdepth 1 -name 'step-*' | sed 's/.*step-0*\([0-9]*\)[.].*/\1/' | sort -n | tail -n 1
}

strategy='"type":"PeerToPeer"' shards=12
more='"elastic":{"minWorkers":1,"maxWorkers":4},'
crew peers 2 100000000
await_step peers 50 && cox_scale peers 4 && until_true 60 sizes_end_in peers 0 4 && goes_on peers 2 && goes_on peers 3
verdict $? "PeerToPeer: newcomers are taken in and train" "$(sizes peers)"
! cox_scale peers 5 2>refused && grep -q 'maxWorkers\|4' refused
verdict $? "PeerToPeer: there are no more than maxWorkers" "$(cat refused)"
cox_scale peers 2 && until_true 60 sizes_end_in peers 0 2 && goes_on peers 0 && goes_on peers 1
verdict $? "PeerToPeer: those that are scaled down leave, and the others go on" "$(sizes peers)"
left=$(pods peers | grep -c -e '-[23]-[0-9]*$')
victim=$(process_of "$(member peers 1)")
[[ -n $victim ]] && kill -KILL "$victim" && until_true 60 sizes_end_in peers 0 "1 2" && goes_on peers 1
verdict $? "PeerToPeer: a killed worker is missed, and its successor taken in" "$(sizes peers), $left pods of those that left"
field_is peers failures '' || field_is peers failures 0 || field_is peers failures 1
verdict $? "PeerToPeer: who was asked to leave has not failed" "$(field peers failures)"
api DELETE "$jobs_path/peers" >/dev/null
until_true 60 no_pods_of peers
crew onwards 2 $((10#$(newest_checkpoint peers) + 500)) peers
wait_for onwards state Succeeded 120 && learnt onwards
verdict $? "PeerToPeer: what they have learnt through all that is there" "$(log_of "$(member onwards 0)" | tail -n 5)"
strategy='' shards=12 more=

# ---- PeerToPeer by hand: no operator, who comes is taken in

network=127.86.$(($$ % 250))
worker_document='{"name":"hand","namespace":"default","strategy":{"type":"PeerToPeer","exchange":"Gossip"},"workers":2,
    "model":{"preset":"mlp","width":64},"devices":{"count":1},
    "data":{"format":"synthetic","examples":1100,"validation":{"last":100}},
    "training":{"steps":100000000,"stepsPerEpoch":1000,"batchSize":24,"seed":7,
        "optimizer":{"type":"adamw","learningRate":"2e-4"}},
    "storage":[{"name":"runs"}],"checkpoint":{"storage":"runs","path":"hand","everySteps":1000,"keep":2},
    "crew":{"roles":[{"name":"worker","count":2,"minCount":1,"maxCount":4}],"hostPattern":"{role}-{index}","port":2222}}'
for seat in 0 1 2 3; do echo "$network.$((seat + 1)) worker-$seat"; done >hosts

# join SEAT EPOCH: its process has the number in by_hand[SEAT] then
by_hand=()
join() {
    COXSWAIN_JOB=$worker_document COXSWAIN_JOB_UID=hand COXSWAIN_ATTEMPT=1 COXSWAIN_EPOCH=$2 COXSWAIN_ROLE=worker \
        COXSWAIN_INDEX=$1 COXSWAIN_POD_IP=$network.$(($1 + 1)) COXSWAIN_HOSTS_FILE=$work/hosts COXSWAIN_THREADS=1 \
        COXSWAIN_STORAGE=runs=$work/runs COXSWAIN_TERMINATION_LOG=$work/ended.$1.$2 \
        "$bin/coxswain-worker" >"hand.$1.$2.log" 2>&1 &
    by_hand[$1]=$!
}

finish_also() {
    ((${#by_hand[@]} == 0)) || kill -KILL "${by_hand[@]}" 2>/dev/null
}

# crew_is SIZES: the chief tells of worlds of these sizes, the last ones
crew_is() {
    [[ " $(sed -n 's/.*the crew has \([0-9]*\) worker.*/\1/p' hand.0.1.log | tr '\n' ' ')" == *" $1 " ]]
}

# stepped SEAT STEP
stepped() {
    local step
    step=$(curl -s --max-time 2 "http://$network.$(($1 + 1)):8080/status" | sed -n 's/.*"step":\([0-9]*\).*/\1/p')
    ((${step:-0} > $2))
}

join 0 1
join 1 2
until_true 60 stepped 0 20 && join 2 3 && join 3 4 && until_true 60 crew_is 4 && until_true 60 stepped 2 20 && until_true 60 stepped 3 20
verdict $? "by hand: peers that come are taken in and train" "$(tail -n 2 hand.*.log)"
kill -TERM "${by_hand[3]}" && wait "${by_hand[3]}"
[[ $? == 143 ]] && until_true 60 crew_is 3
verdict $? "by hand: one that is asked to leave does, and the others know" "$(tail -n 2 hand.*.log)"
kill -KILL "${by_hand[2]}" && { wait "${by_hand[2]}" 2>/dev/null || until_true 60 crew_is 2; } && join 2 5 && until_true 60 crew_is 3 && until_true 60 stepped 2 20
verdict $? "by hand: so they know of a death, and of its successor" "$(tail -n 2 hand.*.log)"
kill -TERM "${by_hand[0]}" "${by_hand[1]}" "${by_hand[2]}"
for seat in 0 1 2; do
    wait "${by_hand[seat]}"
    echo $?
done >codes
by_hand=()
[[ $(sort -u codes) == 143 && -n $(newest_checkpoint hand) ]]
verdict $? "by hand: all leave with a checkpoint" "$(tr '\n' ' ' <codes; tail -n 2 hand.*.log)"

[[ -n ${PEERS_FAULTS:-} ]] || exit 0
more=
crew long 3 40000
wait_for long state Succeeded 600
more='"elastic":{"minWorkers":1,"maxWorkers":4},'
crew held 3 40000
await_step held 200 && freeze held 2 1
wait_for held state Succeeded 600 && same_weights long held
verdict $? "a crew that a frozen worker has left and joined again ends in the same bits"
