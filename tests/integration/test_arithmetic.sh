#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews on processors that are not alike: all members compute with the best arithmetic that all have, to the bits of a crew
# that has nothing better, and with one that comes later and lacks it the crew goes on with what that has. COXSWAIN_ARITHMETIC makes a
# lesser processor of this one. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# job NAME: has batches that are large enough for oneDNN, which differs most between processors
job() {
    cat >"$1.yaml" <<YAML
model: {preset: ${model:-mlp}}
data: {format: Synthetic, examples: 4096}
training:
  steps: 12
  batchSize: ${batch:-1024}
  logicalShards: 2
  optimizer: {type: AdamW, learningRate: "2e-3"}
  seed: 7
  determinism: ${determinism:-Crew}
strategy: {type: ${strategy:-MultiWorkerMirrored}}
storage: [{name: runs}]
export: {path: $1.safetensors, storage: runs}
YAML
}

# mixed NAME FIRST SECOND: a crew of two with these as their processors' best arithmetics
mixed() {
    start_pair "$1" "COXSWAIN_ARITHMETIC=$2" "COXSWAIN_ARITHMETIC=$3"
}

# This processor's best arithmetic, from the plan of a run of its own: if it were taken from crews that do not fail, a best one that
# fails would go unnoticed.
strategy=OneDevice job lone
lone lone
case $(grep -o -m 1 'AVX-512\|AVX2\|portable vectors' lone.log) in
    AVX-512) best=avx512 ;;
    AVX2) best=avx2 ;;
    portable*)
        echo 'skip crews on processors that are not alike: this one has nothing but portable arithmetic'
        exit
        ;;
    *) best= ;;
esac
[[ -n $best ]]
verdict $? "a lone run's plan names its processor's arithmetic" "$(tail -n 1 lone.log)"

for word in portable "$best"; do
    job "$word"
    mixed "$word" "$word" "$word"
    await_crew
    verdict $? "a crew of $word processors trains" "$(tails "$word")"
done
! cmp -s portable.safetensors "$best.safetensors"
verdict $? "the bits depend on the arithmetic" "else the rest shows nothing"

for lesser in 0 1; do
    words=("$best" "$best")
    words[lesser]=portable
    job "mixed$lesser"
    mixed "mixed$lesser" "${words[@]}"
    await_crew && same_weights "mixed$lesser" portable
    verdict $? "with a portable worker $lesser a crew has a portable crew's bits" "$(tails "mixed$lesser")"
    grep -q "computes with portable arithmetic, which all its members have; this one had $best" \
        "mixed$lesser.$((1 - lesser)).log"
    verdict $? "and the other worker says so" "$(tails "mixed$lesser")"
done
strategy=Pipeline job pipeline
mixed pipeline "$best" portable
await_crew && grep -q 'computes with portable arithmetic' pipeline.0.log
verdict $? "a pipeline's stages compute alike" "$(tails pipeline)"

# Eight examples, of which costs are measured, have as many tokens as the library wants rows: the chief measures stages that
# nothing else has told.
pipeline_of_tokens() {
    strategy=Pipeline model="gpt-bytes, width: 64, depth: 2, heads: 2, context: 64" batch=16 job "$1"
    mixed "$@"
    await_crew
}
pipeline_of_tokens tokens portable portable && pipeline_of_tokens measured "$best" portable && same_weights measured tokens
verdict $? "a chief that measures its layers computes as the crew has agreed" "$(tails tokens) $(tails measured)"

# has_said LOG WORDS
has_said() {
    grep -q "$2" "$1"
}

# replaced NAME INDEX WORD: that worker of a crew of the best is lost after a step, and its successor has WORD. After two batches no more
# come before the successor is there.
replaced() {
    local i
    job "$1"
    for i in 0 1; do echo 0 0 86400000 >"$1.$i.delay"; done
    mixed "$1" "$best" "$best"
    until_true 60 has_said "$1.0.log" '^step *1/' || return
    lose "$2"
    undelay "$1"
    start_with "$1" "$2" "COXSWAIN_ARITHMETIC=$3" 1
    await_crew
}

for index in 0 1; do
    replaced "again$index" "$index" "$best" && same_weights "again$index" "$best"
    verdict $? "a successor of worker $index that has the crew's arithmetic brings it to the same bits" "$(tails "again$index")"
    replaced "lesser$index" "$index" portable && ! same_weights "lesser$index" "$best"
    verdict $? "with one that lacks it the crew goes on" "$(tails "lesser$index")"
    has_said "lesser$index.$((1 - index)).log" "lacks the $best arithmetic that it has computed with: it goes on with portable"
    verdict $? "and the other worker warns that the bits differ" "$(tails "lesser$index")"
done

determinism=Run job free
mixed free "$best" portable
await_crew && ! grep -q 'computes with' free.0.log
verdict $? "a crew that promises its own bits alone has each compute its best" "$(tails free)"
