#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Thousands of strangers connect to a crew's data port or control port while a worker is lost and replaced: the crew goes on as
# without them. Prints ok/not ok lines (see tests/run), with the time from the replacement's start to the next step.
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

cat >crew.yaml <<YAML
name: crew
strategy: {type: MultiWorkerMirrored}
workers: {replicas: 2}
model: {preset: mlp, width: 96}
data: {format: Synthetic, examples: 1000}
training: {steps: 10000000, batchSize: 20, seed: 3, optimizer: {type: SGD, learningRate: "0.001"}}
YAML

last_step() {
    grep '^step' crew.0.log | tail -n 1 | sed 's/^step *\([0-9]*\).*/\1/'
}

is_past() {
    local step
    step=$(last_step)
    ((${step:-0} > $1))
}

now_ms() {
    date +%s%3N
}

incarnation=0
# recovers NAME: worker 1 is lost and replaced; the crew takes another step within ten seconds
recovers() {
    local step start took
    lose 1
    sleep 1 # what was done before is in the log
    step=$(last_step)
    incarnation=$((incarnation + 1))
    start=$(now_ms)
    start_member crew worker 1 "$incarnation"
    until_true 100 is_past "$step"
    took=$(($(now_ms) - start))
    ((took < 10000))
    verdict $? "$1: the next step comes after ${took} ms" "$(tails crew)"
}

# connect PORT KIND COUNT
connect() {
    python3 "$root/tests/integration/strangers.py" "$2" "$3" "$network.1:$1" >connected &
    strangers=$!
    until_true 30 grep -q connected connected
}

disperse() {
    kill -KILL "$strangers"
    wait "$strangers" 2>/dev/null
    true >connected
}

delay crew 0 10
delay crew 1 10
start_crew crew 2
until_true 60 is_past 10
verdict $? "a crew trains" "$(tails crew)"
recovers "without strangers"
for port in 2222 2223; do
    name=$([[ $port == 2222 ]] && echo control || echo data)
    for count in 1500 5000; do
        connect "$port" silent "$count"
        recovers "$count silent strangers at the $name port"
        disperse
    done
    connect "$port" again 5000
    recovers "5000 strangers that connect again to the $name port as soon as they are refused"
    disperse
    grep -q "refused a connection port=$name address=127.0.0.1" crew.0.log
    verdict $? "they are named" "$(grep refused crew.0.log | tail -n 1)"
done
end_crew KILL
