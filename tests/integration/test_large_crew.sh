#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# As many workers as a crew may have, on one machine. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/verdict.sh"
. "$root/tests/integration/by_hand.sh"
cd "$work" || exit 1
trap 'kill -KILL $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

workers=128

set_up() {
    export COXSWAIN_RECORD="$work/$1.$2.record"
}

# job NAME STRATEGY
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: Synthetic, examples: 512}
training: {steps: 6, batchSize: $workers, logicalShards: $workers, seed: 7, optimizer: {type: SGD, learningRate: "1e-2"}}
strategy: {type: $2}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

# at_step NAME STEP: its chief has done it
at_step() {
    awk -v step="$2" '/^applied / && $5 >= step { found = 1 } END { exit !found }' "$1.0.record" 2>/dev/null
}

# The last of them reads few batches, and the others wait for it then.
last=$((workers - 1))
job alone OneDevice && lone alone
job many MultiWorkerMirrored
delay many "$last" "0 0 0 86400000"
start_crew many "$workers"
until_true 100 at_step many 2
verdict $? "$workers workers train" "$(tail -n 3 many.0.log)"
lose "$last"
undelay many
start_member many worker "$last" 1
await_crew && same_weights many alone
verdict $? "one of them is killed and replaced: the bits of one worker" "$(tail -n 3 many.0.log)"
grep -q 'the crew is whole again: .*, \(nothing was\|one step was\) repeated' many.0.log
verdict $? "with the others' state" "$(tail -n 3 many.0.log)"
