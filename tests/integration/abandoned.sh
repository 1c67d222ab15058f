# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $root is the caller's
#
# Workers with steps that do not end, because they wait for examples that do not come. Source this file first, with `root` set
# to the sources. It begins with an undisturbed run, "reference".

. "$root/tests/integration/by_hand.sh"

# job NAME
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: Synthetic, examples: 1024, validation: {last: 256}}
training: {steps: 12, batchSize: 64, logicalShards: 2, seed: 7, optimizer: {type: AdamW, learningRate: "2e-3"}}
devices: {type: CPU, count: ${devices:-1}}
strategy: {type: ${strategy:-OneDevice}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 1000, keep: 2}
evaluation: {everySteps: ${evaluates:-12}}
export: {path: $1.safetensors, storage: runs}
YAML
}

# stand LOG: the process that writes that log reads six batches, each a step ahead, and then none, so that its sixth step does
# not end
stand() {
    echo 0 0 0 0 0 0 86400000 >"${1%.log}.delay"
    export COXSWAIN_RECORD=$work/${1%%.*}.record
}

# has_applied NAME STEP: its chief has
has_applied() {
    grep -qs "^applied [^ ]* worker-0-[^ ]* [0-9]* $2 " "$1.record"
}

# has_abandoned STATUS LOG WHAT [SHARE]
has_abandoned() {
    [[ $1 == 143 ]] &&
        grep -q "left on request: $3 did not end within ${4:-half} of the grace period (${COXSWAIN_GRACE_SECONDS} s) and was abandoned" "$2"
}

# drawn FOLDER: prints the number of steps whose losses are in its TensorBoard file
drawn() {
    grep -rao 'train/loss' "$1/tensorboard" | wc -l
}

# standing NAME [STRATEGY [STEPS [INDEX…]]]: a crew of two, which has taken five steps; these, else both, wait for the batch of
# the sixth
standing() {
    local index
    strategy=${2:-MultiWorkerMirrored} job "$1"
    for index in ${4:-0 1}; do stand "$1.$index.log"; done
    start_crew "$1" 2
    until_true 60 has_applied "$1" "${3:-5}"
}

# left NAME INDEX: with 143
left() {
    local status=0
    await "${pids[$2]}" || status=$?
    [[ $status == 143 ]]
}

export COXSWAIN_GRACE_SECONDS=2
job reference
lone reference
verdict $? "a run that nobody disturbs" "$(tail -n 1 reference.log)"
