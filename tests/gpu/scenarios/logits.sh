# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Logits in parts, and recomputation (docs/worker.md#memory), with late emulated streams. Rows of parts begin at multiples of 16
# bytes, though the vocabulary's length is no multiple.

# tied NAME [RECOMPUTE]: trains with a tied output, and shards with a number of rows that no part divides; the caller may set
# precision
tied() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU, count: ${devices:-1}}
model: {preset: gpt2-124m, depth: 2, width: 16, heads: 2, context: 16, vocabulary: 83, dropout: "0.2"}
data: {format: Synthetic, examples: 64, validation: {last: 8}}
training: {steps: 8, batchSize: 6, logicalShards: 2, seed: 7, precision: ${precision:-Float32}, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: ${strategy:-OneDevice}, recompute: ${2:-false}}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
    lone "$1"
}
for precision in Float32 BFloat16; do
    tied whole && tied again true && same_weights again whole
    verdict $? "$precision: what is computed again has the bits of what is kept" "$(tail -qn 1 whole.log again.log)"
    export COXSWAIN_LOGIT_ROWS=11
    EMULATED_ROWS=16 tied parts && close_to "$(losses parts.log)" "$(losses whole.log)"
    verdict $? "$precision: logits by parts learn as all at once do" "$(tail -qn 1 parts.log)"
    if plays_gpus; then # cuBLAS may, and need not, add the parts as it adds the whole
        ! same_weights parts whole
        verdict $? "$precision: in another order" "$(tail -qn 1 parts.log)"
    fi
    COXSWAIN_GPU_GRAPHS=0 tied singly && same_weights singly parts &&
        EMULATED_LATE=all COXSWAIN_GPU_AHEAD=0 tied waiting true && same_weights waiting parts
    verdict $? "$precision: the same bits launch by launch, and with streams that are late" "$(tail -qn 1 singly.log waiting.log)"
    if can_have 2 "logits by parts on two GPUs, $precision"; then
        strategy=Mirrored devices=2 tied mirrors && same_weights mirrors parts
        verdict $? "$precision: and on two GPUs" "$(tail -n 1 mirrors.log)"
    fi
    unset COXSWAIN_LOGIT_ROWS
done
unset precision
