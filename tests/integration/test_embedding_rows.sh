#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ParameterServer with a language model that has a table of 512 KiB, cut over two servers: only the rows that a share
# needs are sent, and the bits are those of one device. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# language NAME STRATEGY: its job document
language() {
    cat >"$1.yaml" <<YAML
model: {preset: gpt-bytes, vocabulary: 4096, width: 32, depth: 1, heads: 2, context: 16}
data: {format: Synthetic, examples: 64}
training: {steps: 120, batchSize: 8, logicalShards: 2, gradientClipNorm: "1.0", seed: 7,
    optimizer: {type: AdamW, learningRate: "0.01"}}
strategy: {$2}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

language alone 'type: OneDevice'
lone alone
verdict $? "a language model on one device, to compare with" "$(tails alone)"
language rows 'type: ParameterServer, mode: Synchronous'
crew rows 2 2 && same_weights rows alone
verdict $? "rows of its table travel alone, and the bits are those of one device" "$(tails rows)"
