#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Crews on processors that are not alike: all members compute with the best arithmetic that all have, to the bits of a crew
# that has nothing better, and who comes later and lacks it is refused. COXSWAIN_ARITHMETIC makes a lesser processor of this
# one. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# job NAME: batches that are large enough for the library, whose bits differ most
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp}
data: {format: synthetic, examples: 4096}
training:
  steps: 12
  batchSize: 1024
  logicalShards: 2
  optimizer: {type: adamw, learningRate: "2e-3"}
  seed: 7
  determinism: ${determinism:-Crew}
strategy: {type: ${strategy:-MultiWorkerMirrored}}
storage: [{name: runs}]
export: {to: $1.safetensors, storage: runs}
YAML
}

# mixed NAME FIRST SECOND: a crew of two whose processors have these at best
mixed() {
    cluster="{\"worker\":$(hosts 1 2)}"
    COXSWAIN_ARITHMETIC=$2 start_member "$1" worker 0
    COXSWAIN_ARITHMETIC=$3 start_member "$1" worker 1
}

for word in portable avx2 avx512; do
    job "$word"
    mixed "$word" "$word" "$word"
    await_crew 2>/dev/null && best=$word
done
if [[ ${best:-} == portable ]]; then
    echo 'skip crews on processors that are not alike: this one has nothing but portable arithmetic'
    exit
fi
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

# has_said LOG WORDS
has_said() {
    grep -q "$2" "$1"
}

# After two batches no more come before the successor is there.
job replaced
echo 0 0 86400000 >replaced.0.delay
cp replaced.0.delay replaced.1.delay
mixed replaced "$best" "$best"
until_true 60 has_said replaced.0.log '^step *1/'
lose 1
COXSWAIN_ARITHMETIC=portable start_member replaced worker 1 1
await "${pids[1]}"
[[ $? == 162 ]] && has_said replaced.1.log "computes with $best arithmetic and the device of worker 1 has portable alone"
verdict $? "a successor that lacks the crew's arithmetic is refused with 162" "$(tails replaced)"
rm replaced.*.delay
COXSWAIN_ARITHMETIC=$best start_member replaced worker 1 2
await_crew && same_weights replaced "$best"
verdict $? "and one that has it brings the crew to the same bits" "$(tails replaced)"

determinism=Run job free
mixed free "$best" portable
await_crew && ! grep -q 'computes with' free.0.log
verdict $? "a crew that promises its own bits alone has each compute its best" "$(tails free)"
