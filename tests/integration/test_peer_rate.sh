#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A PeerToPeer crew learns equally fast per example with any number of workers: two workers become four, and then one, in pods that were
# made when the manifest said two. After its steps it is where OneDevice is after about as many. Prints ok/not ok lines (see tests/run).
set -uo pipefail

bin=${BUILD:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/network.sh"
. "$root/tests/integration/verdict.sh"
. "$root/tests/integration/peers_by_hand.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG
make_digits
for seat in 0 1 2 3; do echo "$network.$((seat + 1)) worker-$seat"; done >hosts

# document NAME STRATEGY STEPS MORE
document() {
    echo '{"name":"'"$1"'","namespace":"default","strategy":{'"$2"'},"model":{"preset":"mlp","width":32},
        "data":{"format":"IDX","train":{"images":"'"$work"'/images","labels":"'"$work"'/labels"},"validation":{"last":100}},
        "training":{"steps":'"$3"',"batchSize":24,"seed":7,"optimizer":{"type":"SGD","learningRate":"0.0002"}},
        "evaluation":{"everySteps":1}'"$4"'}'
}

# enter EXCHANGE SEAT COUNT: starts a worker as it is made when the job has COUNT workers
enter() {
    peers_name=$1 peers_storage=$work peers_document=$(document "$1" '"type":"PeerToPeer"' 100000000 \
        ',"workers":{"replicas":2},"crew":{"roles":[{"name":"worker","count":'"$3"',"minCount":1,"maxCount":4}],
        "hostPattern":"{role}-{index}","port":2222}')
    join "$2" $(($2 + 1))
}

# look EXCHANGE: the chief's last step and what it has scored then
look() {
    read -r step loss < <(sed -n 's/^validation after step \([0-9]*\): loss \([0-9.]*\),.*/\1 \2/p' "$1.0.1.log" 2>/dev/null | tail -n 1)
    [[ -n $loss ]]
}

# has_come_to EXCHANGE STEP
has_come_to() {
    look "$1" && ((step >= $2))
}

# crew_is SIZE
crew_is() {
    [[ $(worlds 0 1 2>/dev/null) == *"$1 " ]]
}

# trains_on EXCHANGE SIZE: such a crew, for at least as many steps as there were before it
trains_on() {
    until_true 60 crew_is "$2" && look "$1" && until_true 120 has_come_to "$1" $((2 * step))
}

# loss_after STEPS: OneDevice's
loss_after() {
    COXSWAIN_JOB=$(document "alone-$1" '"type":"OneDevice"' "$1" '') env -u COXSWAIN_READ_DELAY "$bin/coxswain-worker" 2>&1 |
        sed -n 's/.*held-out examples: .*loss \([0-9.]*\).*/\1/p'
}

export COXSWAIN_READ_DELAY=$work/delay
echo 10 >delay
pids=()
enter peers 0 2 && enter peers 1 2
until_true 60 crew_is 2 && until_true 60 has_come_to peers 20 && enter peers 2 4 && enter peers 3 4 &&
    trains_on peers 4 && kill -TERM "${pids[@]:1}" && trains_on peers 1
verdict $? "the crew trains, whatever its size" "$(tail -n 3 peers.*.log)"
kill -KILL "${pids[@]}" 2>/dev/null
wait 2>/dev/null
before=$(loss_after $((step * 3 / 4))) after=$(loss_after $((step * 4 / 3)))
perl -e 'exit !($ARGV[0] > $ARGV[1] && $ARGV[1] > $ARGV[2])' "${before:-0}" "${loss:-0}" "${after:-9}"
verdict $? "its loss is OneDevice's after as many steps" \
    "$loss after $step steps; OneDevice's $before after three quarters of them, $after after four thirds"
echo "$loss after $step steps; OneDevice: $before after three quarters of them, $after after four thirds"
