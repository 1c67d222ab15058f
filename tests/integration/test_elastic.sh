#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Elastic crews under the operator and the embedded control plane, and by hand: workers join and leave while they train, by request and by
# force. Synchronous crews end with the weights of a fixed crew, bit for bit. Prints ok/not ok lines (see tests/run).
#
# A crew must not be done before the test disturbs it, so its steps have no end and it is deleted afterwards. Another job then goes on from
# its checkpoint, to a step to which a fixed crew trains as well.
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/training.sh"

training_start

# scale JOB WORKERS, as kubectl scale does it
scale() {
    api PATCH "$jobs_path/$1/scale" "{\"spec\":{\"replicas\":$2}}" >/dev/null
}

endless=100000000

newest_checkpoint() {
    find "runs/$1" -maxdepth 1 -name 'step-*' | sed 's/.*step-0*\([0-9]*\)[.].*/\1/' | sort -n | tail -n 1
}

# end JOB [STEPS [WORKERS]]: deletes the job; a job JOB-on goes on from its checkpoint for that many steps, to step `last`
end() {
    api DELETE "$jobs_path/$1" >/dev/null
    until_true 60 no_pods_of "$1" || return
    last=$(($(newest_checkpoint "$1") + ${2:-300}))
    crew "$1-on" "${3:-2}" "$last" "$1"
}

# fixed NAME [WORKERS]: a crew that nothing happens to trains to `last`
fixed() {
    local strategy='' bounds='' more=''
    crew "$1" "${2:-2}" "$last"
}

# same_end JOB FIXED
same_end() {
    wait_for "$1-on" state Succeeded 300 && wait_for "$2" state Succeeded 300 && same_weights "$2" "$1-on"
}

bounds='"minReplicas":1,"maxReplicas":4,'
delay scaled 10
crew scaled 2 "$endless"
await_step scaled 50 && until_true 60 sizes_end_in scaled 0 2 && scale scaled 4 && until_true 60 sizes_end_in scaled 0 4
verdict $? "newcomers are taken in while the crew trains" "$(sizes scaled)"
scale scaled 2 && until_true 60 sizes_end_in scaled 0 2
verdict $? "those that are scaled down leave it" "$(sizes scaled)"
victim=$(process_of "$(member scaled 1)")
[[ -n $victim ]] && kill -KILL "$victim" && until_true 60 sizes_end_in scaled 0 "1 2" && goes_on scaled 0
verdict $? "a killed worker is missed, and its successor taken in" "$(sizes scaled)"
! log_of "$(member scaled 0)" | grep 'steps were repeated'
verdict $? "no loss cost more than one step"
end scaled && fixed fixed && same_end scaled fixed
verdict $? "the elastic crew ends in the same bits as a fixed one" "$(log_of "$(member scaled-on 0)" | tail -n 5)"

# A table with words in a column and as labels: each newcomer numbers them as the crew does.
awk 'BEGIN { split("red green blue", colour, " "); print "colour,width,height,kind"
    for (i = 0; i < 700; i++) print colour[i * 7 % 3 + 1] "," i % 11 "," i % 13 "," (i * 7 % 3 == 1 ? "plum" : "pear") }' >table.csv
data='"format":"CSV","storage":"digits","train":{"files":"table.csv"},"labelColumn":"kind","validation":{"last":100}'
model='"inputShape":[5],"layers":[{"type":"Dense","units":16},{"type":"ReLU"},{"type":"Dense","units":2}]'
delay table 10
crew table 1 "$endless"
await_step table 50 && scale table 3 && until_true 60 sizes_end_in table 0 3
verdict $? "newcomers are taken in where the examples are a table with words" "$(sizes table) $(log_of "$(member table 0)" | tail -n 3)"
end table && fixed tablefixed && same_end table tablefixed
verdict $? "and it ends in the same bits as a fixed crew" "$(log_of "$(member table-on 0)" | tail -n 5)"
data='' model=''

# ---- ParameterServer

# says JOB PATTERN TIMES: worker 0 does, so often at least
says() {
    (($(log_of "$(member "$1" 0)" | grep -c "$2") >= $3))
}

strategy='"type":"ParameterServer","mode":"Synchronous"' shards=4
more='"parameterServers":{"replicas":1},'
delay served 10
crew served 2 "$endless"
await_step served 50 && scale served 4 && until_true 60 says served 'worker [23] has joined' 2
verdict $? "ParameterServer: newcomers are taken in while the crew trains" "$(log_of "$(member served 0)" | tail -n 3)"
scale served 2 && until_true 60 says served 'worker [23] .*leaves on request' 2
verdict $? "ParameterServer: those that are scaled down leave it" "$(log_of "$(member served 0)" | tail -n 3)"
victim=$(process_of "$(member served 1)")
before=$(log_of "$(member served 0)" | grep -c 'worker 1 has joined')
[[ -n $victim ]] && kill -KILL "$victim" && until_true 60 says served 'worker 1 has joined' $((before + 1)) && goes_on served 0
verdict $? "ParameterServer: a killed worker has a successor" "$(log_of "$(member served 0)" | tail -n 3)"
end served && fixed whole && same_end served whole
verdict $? "ParameterServer: and the bits are a fixed crew's" "$(log_of "$(member served-on 0)" | tail -n 3)"

# ---- PeerToPeer, scaled as a person does it

# cox_scale JOB WORKERS
cox_scale() {
    "$bin/cox" scale "$1" --workers "$2" --kubeconfig state/kubeconfig
}

learnt() {
    log_of "$(member "$1" 0)" | grep 'held-out examples: accuracy \(100\|9[5-9]\)' >/dev/null
}

strategy='"type":"PeerToPeer"' shards=12 more=
delay peers 10
crew peers 2 "$endless"
await_step peers 50 && cox_scale peers 4 && until_true 60 sizes_end_in peers 0 4 && goes_on peers 2 && goes_on peers 3
verdict $? "PeerToPeer: newcomers are taken in and train" "$(sizes peers)"
! cox_scale peers 5 2>refused && grep -q 'maxReplicas' refused
verdict $? "PeerToPeer: there are no more than maxReplicas" "$(cat refused)"
cox_scale peers 2 && until_true 60 sizes_end_in peers 0 2 && goes_on peers 0 && goes_on peers 1
verdict $? "PeerToPeer: those that are scaled down leave, and the others go on" "$(sizes peers)"
left=$(pods peers | grep -c -e '-[23]-[0-9]*$')
victim=$(process_of "$(member peers 1)")
[[ -n $victim ]] && kill -KILL "$victim" && until_true 60 sizes_end_in peers 0 "1 2" && goes_on peers 1
verdict $? "PeerToPeer: a killed worker is missed, and its successor taken in" "$(sizes peers), $left pods of those that left"
field_is peers failures '' || field_is peers failures 0 || field_is peers failures 1
verdict $? "PeerToPeer: a worker that was asked to leave does not count as a failure" "$(field peers failures)"
end peers 500 && wait_for peers-on state Succeeded 120 && learnt peers-on
verdict $? "PeerToPeer: after all this, the crew has learnt" "$(log_of "$(member peers-on 0)" | tail -n 5)"
strategy='' bounds=''

# ---- PeerToPeer by hand: without an operator, every newcomer is accepted

network=127.86.$(($$ % 250))
. "$root/tests/integration/peers_by_hand.sh"
peers hand "$work/runs" 1000 1000

finish_also() {
    ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}" 2>/dev/null
}

# crew_is SIZES: the chief tells of worlds of these sizes, the last ones
crew_is() {
    [[ " $(worlds 0 1)" == *" $1 " ]]
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
kill -TERM "${pids[3]}" && wait "${pids[3]}"
[[ $? == 143 ]] && until_true 60 crew_is 3
verdict $? "by hand: one that is asked to leave does, and the others know" "$(tail -n 2 hand.*.log)"
kill -KILL "${pids[2]}" && { wait "${pids[2]}" 2>/dev/null || until_true 60 crew_is 2; } && join 2 5 && until_true 60 crew_is 3 && until_true 60 stepped 2 20
verdict $? "by hand: so they know of a death, and of its successor" "$(tail -n 2 hand.*.log)"
kill -TERM "${pids[0]}" "${pids[1]}" "${pids[2]}"
for seat in 0 1 2; do
    wait "${pids[seat]}"
    echo $?
done >codes
pids=()
[[ $(sort -u codes) == 143 && -n $(newest_checkpoint hand) ]]
verdict $? "by hand: all leave with a checkpoint" "$(tr '\n' ' ' <codes; tail -n 2 hand.*.log)"

[[ -n ${PEERS_FAULTS:-} ]] || exit 0
bounds='"minReplicas":1,"maxReplicas":4,'
delay held 10
crew held 3 "$endless"
await_step held 200 && freeze held 2 1
end held 300 3 && fixed long 3 && same_end held long
verdict $? "a crew that a frozen worker has left and joined again ends in the same bits"
