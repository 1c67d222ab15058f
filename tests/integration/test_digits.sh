#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What deploy/examples/digits.yaml says of itself: the same seed gives the same weights with one to four workers. Shortened, and on
# data that is made up. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/integration/scene.sh
. "$root/tests/integration/scene.sh"

# weights WORKERS: prints the digest of the weights that this many workers export
weights() {
    "$bin/cox" run "$root/deploy/examples/digits.yaml" --state "$work/state-$1" --volume runs="$work/runs-$1" \
        --set spec.workers.replicas="$1" --set 'spec.coxswain.data={format: Synthetic, examples: 1100, validation: {last: 100}}' \
        --set spec.coxswain.training.epochs=null --set spec.coxswain.training.steps=12 >"$1.log" 2>&1 &&
        sha256sum <"runs-$1/digits/model.safetensors"
}

for workers in 1 2 3 4; do mkdir "runs-$workers"; done
one=$(weights 1)
verdict $? "one worker trains" "$(tail -n 3 1.log)"
for workers in 2 3 4; do
    [[ -n $one && $(weights "$workers") == "$one" ]]
    verdict $? "$workers workers export the same weights" "$(tail -n 3 "$workers.log")"
done
