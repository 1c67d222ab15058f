#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An asynchronous crew of parameter servers in which one worker hangs while it reads its second batch, and still beats: the
# others' work is saved, that worker is named, and the run ends. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

cat >stuck.yaml <<YAML
name: stuck
strategy: {type: ParameterServer, mode: Async}
workers: {replicas: 2}
model: {preset: mlp, width: 96}
data: {format: Synthetic, examples: 1000}
training: {steps: 400, batchSize: 20, seed: 3, optimizer: {type: SGD, learningRate: "0.001"}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: stuck, everySteps: 20}
YAML

# saves: how many checkpoints of the step were committed of which most were
saves() {
    awk '$1 == "checkpoint" && ++count[$4] > most { most = count[$4] } END { print most + 0 }' record
}

replaces() {
    (($(saves) >= 2))
}

touch record
delay stuck 0 20
echo '0 86400000' >stuck.1.delay
export COXSWAIN_RECORD=$work/record
start_crew stuck 2 2
until_true 60 replaces
verdict $? "what is applied meanwhile is saved, though the step does not change" "$(saves) saves of a step; $(tails stuck)"
rm stuck.0.delay
until_true 120 grep -q 'worker 1 .* has had ticket [0-9]* of step [0-9]* for [0-9]* s' stuck.0.log
verdict $? "the chief names the worker, and gives its share to another" "$(tails stuck)"
until_true 120 have_ended "${pids[0]}" && await "${pids[0]}"
verdict $? "the run comes to its end" "$(tails stuck)"
end_crew KILL
