#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs that go on from a checkpoint with another global batch, as after a crew of another size with perReplicaBatchSize: each example
# is learnt from once an epoch all the same, and the run takes what is left of its epochs. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
make_digits

# job NAME STRATEGY BATCH LENGTH CHECKPOINTS: 600 examples to learn from
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}
training: {$4, $3, seed: 7, optimizer: {type: AdamW, learningRate: "2e-3", schedule: {type: Linear}}}
strategy: {$2}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $5, everySteps: 1000, keep: 2}
YAML
}

# passes RECORD…: how often each example was learnt from, and how many were: "600x3" says all, in three epochs
passes() {
    awk '$1 == "share" { for (i = 7; i <= NF; i++) seen[$5 " " $i]++ }
        END { for (one in seen) { split(one, of, " "); times[of[2]]++; if (seen[one] > 1) twice++ }
              for (one in times) count[times[one]]++
              for (n in count) printf "%dx%d ", count[n], n
              if (twice) printf "%d twice in an epoch", twice }' "$@"
}

# led NAME WORKERS: a whole crew with one ps and a chief of its own, from start to end; crew (by_hand.sh) says how it ends
led() {
    local i
    cluster="{\"chief\":$(hosts 50 1),\"worker\":$(hosts 1 "$2"),\"ps\":$(hosts 101 1)}"
    pids=()
    start_member "$1" ps 0
    start_member "$1" chief 0
    for ((i = 0; i < $2; i++)); do start_member "$1" worker "$i"; done
    await "${pids[200]}" "${pids[100]}" || return
    for ((i = 0; i < $2; i++)); do
        until_true 60 has_ended_or_waits "$1" "$i" || return
        if have_ended "${pids[i]}"; then await "${pids[i]}" || return; else lose "$i"; fi
    done
}

# goes_on NAME STRATEGY SERVERS FIRST-WORKERS FIRST-BATCH FIRST-STEPS WORKERS BATCH LAST EVALUATED: after FIRST-STEPS steps, another
# crew does the rest of three epochs and ends with step LAST; EVALUATED: its first step that ends an epoch. The caller may set kind:
# led
goes_on() {
    local kind=${kind:-crew} log=$1.0.log
    [[ $kind == crew ]] || log=$1.chief.log
    job "$1-first" "$2" "$5" "steps: $6" "$1"
    job "$1" "$2" "$8" 'epochs: 3' "$1"
    COXSWAIN_RECORD=$work/$1-first.record "$kind" "$1-first" "$4" "$3"
    verdict $? "$1: $4 workers, $5, take $6 steps" "$(tails "$1-first")"
    COXSWAIN_RECORD=$work/$1.record "$kind" "$1" "$7" "$3" && grep -q "^step *$9/$9 " "$log" && [[ $(saved_step "$1") == "$9" ]]
    verdict $? "$1: $7 workers, $8, take what is left of three epochs: up to step $9" "$(tails "$1")"
    said=$(passes "$1-first.record" "$1.record")
    [[ $said == "600x3 " ]]
    verdict $? "$1: each example is learnt from once an epoch" "$said"
    grep -q "validation after step ${10}:" "$log"
    verdict $? "$1: an epoch's end is where the data says" "$(grep validation "$log" | tr '\n' ' ')"
    grep -q "global batch of" "$log"
    verdict $? "$1: the chief says that the batch is another"
}

# Step 24 ends the second epoch; 29 is 250 examples into the third, of which 350 are left.
mirrored='type: MultiWorkerMirrored'
two='perReplicaBatchSize: 25, scaleLearningRate: None'
goes_on between "$mirrored" 0 2 "$two" 24 4 "$two" 30 30
goes_on within "$mirrored" 0 2 "$two" 29 4 "$two" 33 33
goes_on smaller "$mirrored" 0 4 "$two" 8 2 "$two" 28 16
goes_on rounds 'type: MultiWorkerMirrored, localSteps: 4' 0 2 'batchSize: 50' 8 2 'batchSize: 100' 22 12
goes_on stages 'type: Pipeline, microBatches: 2' 0 2 'batchSize: 50' 17 2 'batchSize: 60' 33 23
for mode in Synchronous Async; do
    goes_on "${mode,,}" "type: ParameterServer, mode: $mode" 1 2 'batchSize: 50' 17 2 'batchSize: 100' 27 21
done
# Its workers hear of the place in the data by their tickets alone.
kind=led goes_on async-led 'type: ParameterServer, mode: Async' 1 2 'batchSize: 50' 17 2 'batchSize: 100' 27 21

job steps "type: OneDevice" 'batchSize: 100' 'steps: 32' within-steps
job steps-first "type: OneDevice" 'batchSize: 50' 'steps: 29' within-steps
lone steps-first && lone steps && grep -q '^step *32/32 ' steps.log
verdict $? 'what is given in steps stays steps' "$(tails steps)"

# Peers number their steps anew: the last may have the number of the one that they started from, and is saved all the same.
job again-first 'type: PeerToPeer' 'batchSize: 50' 'steps: 24' again
job again 'type: PeerToPeer' 'batchSize: 100' 'epochs: 4' again
crew again-first 2 && crew again 2 && grep -q '^step *24/24 ' again.0.log && grep -q '"dataEpoch":4' again/step-00000024.*.incarnation-1/manifest.json
verdict $? 'peers save what they have done though its number is that of the checkpoint before' "$(ls again) $(tails again)"

# Peers have no common order; theirs are all examples in batches. They overshoot the end of theirs by what they have not heard of one
# another: little while each batch takes its time.
job peers-first 'type: PeerToPeer' 'batchSize: 50' 'steps: 24' peers
job peers 'type: PeerToPeer' 'batchSize: 100' 'epochs: 3' peers
delay peers-first 0 20
delay peers-first 1 20
crew peers-first 2
left=$(sed -n 's/.*"finished":\[\([0-9,]*\)\].*/\1/p' peers/*/manifest.json | tr ',' '\n' | awk '{ sum += $1 } END { print sum }')
COXSWAIN_RECORD=$work/peers.record crew peers 2 && grep -q '^step *18/18 ' peers.0.log
verdict $? 'peers go on with what is left of the epochs' "$left $(tails peers)"
had=$(awk '$1 == "peer" && $4 == "restored" { had = $6; name = $3; seen[$5] = 1 }
    $1 == "peer" && $4 == "has" && $3 == name && !seen[$5]++ { had += $6 }
    END { print had }' peers.record)
((had >= 1200 && had == left))
verdict $? 'and know which examples they have finished' "$had of $left: $(grep -m 4 -E 'restored|has' peers.record | tr '\n' ' ')"

# A run that is over stays so, though its three epochs are 25 of these batches and a part of one.
job peers-after 'type: PeerToPeer' 'batchSize: 70' 'epochs: 3' peers
COXSWAIN_RECORD=$work/peers-after.record crew peers-after 2 && ! grep -qE '^share |^peer .* finished ' peers-after.record
verdict $? 'peers that are done with their epochs take no more steps of another batch' "$(tails peers-after)"
