#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A file of training data that becomes shorter while a crew reads it: a worker that reads it ends with 65 and names the file,
# and none is killed by a signal. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# reader NAME STRATEGY: trains for ever on text of its own
reader() {
    yes 'all work and no play' | head -c 1000000 >"$1.text"
    cat >"$1.yaml" <<YAML
model: {preset: gpt-bytes, width: 16, depth: 1, heads: 1, context: 16}
data: {format: Bytes, train: {text: $work/$1.text}}
training: {steps: 1000000000, batchSize: 8, seed: 7, optimizer: {type: SGD, learningRate: "0.01"}}
strategy: {$2}
YAML
}

trains() {
    grep -qs '^step  ' "$1.0.log"
}

# ends_with_bad_data NAME BYTES: the text is cut to that many bytes. A worker that has not read on when another ends waits
# for that one's successor.
ends_with_bad_data() {
    local index
    until_true 60 trains "$1" || return
    truncate -s "$2" "$1.text"
    until_true 60 any_has_ended "${pids[@]}" || return
    for index in "${!pids[@]}"; do
        if have_ended "${pids[index]}"; then ended_with 65 "exit 65 .*$1.text no longer has" "$1" "$index" || return; fi
    done
    end_crew KILL
}

reader half 'type: MultiWorkerMirrored'
start_crew half 2
ends_with_bad_data half 500000
verdict $? "a crew with a text that is cut in half ends with 65 and names it" "$(tails half)"
reader emptied 'type: OneDevice'
start_crew emptied 1
ends_with_bad_data emptied 0
verdict $? "a single worker with a text that is emptied ends with 65 and names it" "$(tails emptied)"
