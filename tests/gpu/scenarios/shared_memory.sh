# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Attention on GPUs with less shared memory for a block than compute capability 9.0 has. Emulated
# only.

EMULATED_SHARED_KIB=99 "$BUILD/tests/gpu-test" operation attention >lean.log
verdict $? "attention holds where a block has 99 KiB, as on compute capabilities 8.6, 8.9 and 12.0" "$(grep '^not ok' lean.log | head -n 3)"

# headed NAME PRECISION WIDTH: a step or two of attention over more than one tile, with heads of this
# width
headed() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU}
model: {preset: gpt-bytes, depth: 1, width: $3, heads: 1, context: 70}
data: {format: Synthetic, examples: 4}
training: {steps: 2, batchSize: 2, logicalShards: 1, precision: $2, seed: 7, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}
for precision in Float32 BFloat16; do
    for width in 64 128; do
        headed "roomy-$precision-$width" "$precision" "$width" && lone "roomy-$precision-$width" &&
            headed "lean-$precision-$width" "$precision" "$width" && EMULATED_SHARED_KIB=99 lone "lean-$precision-$width" &&
            same_weights "lean-$precision-$width" "roomy-$precision-$width"
        verdict $? "heads of $width in $precision: the same bits with 99 KiB as with 227" "$(tail -qn 1 {lean,roomy}-"$precision-$width".log)"
    done
done
precision=
headed starved Float32 128
EMULATED_SHARED_KIB=64 refused 69 'attention.*: heads of 128 need 86 KiB of a block.s shared memory, and GPU 0.* has 64: take more heads' starved
headed broad-headed Float32 192
refused 69 'attention.*: attention head width 192 is not supported on GPUs (maximum 128): take more heads' broad-headed
