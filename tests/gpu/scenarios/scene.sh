# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the machine's and by_hand.sh's
#
# Functions for the scenarios of this folder: jobs for real workers on GPUs, alone and as crews, some of which are killed. They run on
# emulated GPUs (../check-emulated) and on the GPUs of this machine (../check-real). Those scripts source tests/integration/by_hand.sh
# and this, and define before:
#
#   gpu_count                   number of GPUs
#   plays_gpus                  whether they are emulated, and so obey EMULATED_…
#   can_have COUNT WHAT         whether a worker can have COUNT GPUs; if not, reports that WHAT is skipped, and why
#   can_sum WORKERS EACH WHAT   the same for WORKERS workers with EACH GPUs that sum by NCCL
#   through_host COMMAND…       runs COMMAND, whose workers sum through the host although NCCL is asked for
#   give_gpus NAME PLACE        exports the environment with a process's GPUs, by its place in `pids`; none for servers and a separate chief
#
# A process that is to be killed or frozen is held before (hold), because a fast GPU might finish the job.

# Scenarios for every machine: single workers, and crews, which may also share one GPU.
# shellcheck disable=SC2034 # the machines'
{
    own_scenarios=(alone ahead loss_scale logits several lanes)
    crew_scenarios=(crews precisions servers peers pipeline sharded local_steps lost leaving)
}

# play_scenario NAME: runs it in a folder of its own, because a worker goes on from any checkpoint of its job's name
play_scenario() {
    trap 'kill -KILL $(jobs -p) 2>/dev/null' EXIT
    work=$work/$1
    mkdir "$work" && cd "$work" || exit 1
    # shellcheck source=/dev/null
    . "$root/tests/gpu/scenarios/$1.sh"
}

# run_scenarios NAME…: runs each in a subshell, because they use the same names of functions and variables, and prints the time that it
# takes. One that fails runs again up to TEST_RETRIES (0) times (see tests/run): of the tries before the last, failures are shown as flaky.
run_scenarios() {
    local scenario begun tries log
    log=$(mktemp)
    for scenario; do
        begun=$EPOCHREALTIME tries=0
        while (play_scenario "$scenario") >"$log" 2>&1; grep -q '^not ok ' "$log" && ((tries++ < ${TEST_RETRIES:-0})); do
            sed -n 's/^not ok /flaky /p' "$log"
            rm -rf "${work:?}/$scenario"
        done
        cat "$log"
        printf -- '-- %s: %s s\n' "$scenario" "$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')"
    done
}

# devices_of NAME: prints the number of devices of each worker
devices_of() {
    local count
    count=$(sed -n 's/^devices:.* count: \([0-9]*\).*/\1/p' "$1.yaml")
    echo "${count:-1}"
}

# set_up NAME PLACE: called by by_hand.sh. The process writes the record NAME.PLACE.record, unless another is set
# (worker/data/step_record.h).
set_up() {
    give_gpus "$@"
    export COXSWAIN_RECORD="${COXSWAIN_RECORD-$work/$1.$2.record}"
}

# ---- jobs

# job NAME STEPS DEVICE STRATEGY FOLDER [COLLECTIVE [DETERMINISM [SHARDS [DEVICES]]]]: a small GPT on synthetic data; the caller may set
# precision
job() {
    cat >"$1.yaml" <<YAML
devices: {type: $3, count: ${9:-1}}
model: {preset: gpt-bytes, depth: 1, width: 16, heads: 2, context: 16}
data: {format: Synthetic, examples: 64}
training: {steps: $2, batchSize: ${batch:-4}, logicalShards: ${8:-2}, precision: ${precision:-Float32}, determinism: ${7:-Crew}, seed: 7, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: $4, collective: ${6:-Auto}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $5, everySteps: 4}
export: {storage: runs, path: $1.safetensors}
YAML
}

# unsaved NAME: the job writes no checkpoints, so only its workers hold the state
unsaved() {
    sed -i '/^checkpoint:/d' "$1.yaml"
}

# varied NAME STEPS FOLDER [RATE]: a job with steps that differ: dropout, clipping, a short last batch, evaluations
varied() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU}
model: {inputShape: [8, 8, 2], layers: [{type: Conv2D, filters: 4, kernel: 3}, {type: BatchNorm}, {type: ReLU}, {type: Flatten}, {type: Dropout, rate: "0.2"}, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 38, validation: {last: 8}}
training: {steps: $2, batchSize: 8, logicalShards: 2, seed: 7, gradientClipNorm: "0.5", optimizer: {type: SGD, learningRate: "${4:-1e-2}", momentum: "0.9"}}
strategy: {type: OneDevice}
evaluation: {everySteps: 5}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $3, everySteps: 4}
export: {storage: runs, path: $1.safetensors}
YAML
}

# wide NAME STRATEGY [DEVICES]: a job with more parameters than one part of gradients has
wide() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU, count: ${3:-1}}
model: {inputShape: [32], layers: [{type: Dense, units: 1024}, {type: ReLU}, {type: Dense, units: 2300}, {type: ReLU}, {type: Dense, units: 10}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 12}
training: {steps: 2, batchSize: 6, logicalShards: 6, seed: 7, optimizer: {type: SGD, learningRate: "1e-2"}}
strategy: {type: $2}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

# heavy NAME TYPE WORKERS [SUFFIX…]: a job with three dense layers, each with a SUFFIX. Stages exchange more in either direction than a
# socket buffers.
heavy() {
    cat >"$1.yaml" <<YAML
workers: {replicas: $3}
devices: {type: GPU}
model: {inputShape: [32], layers: [{type: Dense, units: 2300${4-}}, {type: ReLU}, {type: Dense, units: 16${5-}}, {type: Dense, units: 2300}, {type: ReLU}, {type: Dense, units: 10${6-}}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 520, validation: {last: 40}}
training: {steps: 3, batchSize: 240, logicalShards: 5, seed: 7, optimizer: {type: SGD, learningRate: "1e-2"}}
strategy: {type: $2}
evaluation: {everySteps: 1}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

# tied NAME TYPE WORKERS [SETTING…]: a small GPT with a shared table, and settings of its strategy
tied() {
    job "$1" 12 GPU "$2" "$1" Auto Crew 4
    sed -i "s/preset: gpt-bytes,/preset: gpt2-124m, vocabulary: 61,/; s/^strategy: {/workers: {replicas: $3}\n&${4-}/" "$1.yaml"
}

# narrow NAME TYPE WORKERS [SUFFIX]: a micro-batch is one example, and stages exchange an odd number of values. The first two layers have
# one SUFFIX and the others the next.
narrow() {
    cat >"$1.yaml" <<YAML
workers: {replicas: $3}
devices: {type: GPU}
model: {inputShape: [6], layers: [{type: Dense, units: 9${4-}}, {type: Tanh}, {type: Dropout, rate: "0.2"}, {type: Dense, units: 7${5-}}, {type: ReLU}, {type: Dense, units: 3}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 25, validation: {last: 5}}
training: {steps: 8, batchSize: 5, logicalShards: 5, precision: Float16, seed: 7, gradientClipNorm: "0.5", optimizer: {type: SGD, learningRate: "1e-2", momentum: "0.9"}}
strategy: {type: $2}
evaluation: {everySteps: 4}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 4}
export: {storage: runs, path: $1.safetensors}
YAML
}

# with_gpus NAME DEVICES: sets the number of each worker's GPUs
with_gpus() {
    sed -i "s/^devices: .*/devices: {type: GPU, count: $2}/" "$1.yaml"
}

# rounds NAME COLLECTIVE [DETERMINISM [SHARDS [DEVICES]]]: a job with rounds of three local steps
rounds() {
    job "$1" 18 GPU MultiWorkerMirrored "$1" "$2" "${3:-Crew}" "${4:-3}" "${5:-1}"
    sed -i 's/^strategy: {/&localSteps: 3, /' "$1.yaml"
}

# ---- references: runs of one worker on one GPU, made when first needed, for all scenarios

# reference NAME…: makes or copies references; call it before the environment is changed for the scenario's own workers
reference() {
    local name references=${work%/*}/references
    mkdir -p "$references"
    for name; do
        if [[ ! -f $references/$name.safetensors ]]; then
            "reference_$name" || return
            cp -r "$name"* "$references"
        else
            cp -r "$references/$name"* .
        fi
    done
}
reference_alone() {
    job alone 12 GPU OneDevice alone && lone alone
}
reference_single() {
    job single 20 GPU OneDevice single Auto Crew 4 && lone single
}
reference_slow() {
    varied slow 26 slow && COXSWAIN_GPU_AHEAD=0 lone slow
}
reference_short() {
    precision=BFloat16 job short 12 GPU OneDevice short && lone short
}
reference_wide() {
    wide wide OneDevice && lone wide
}
# This one is a crew that averages its rounds through the host.
reference_hosted() {
    rounds hosted Hierarchical && crew hosted 3
}

# ---- events

# hold NAME INDEX BATCHES: this worker reads this number of batches from its start, and waits for the next one until `undelay`
hold() {
    delay "$1" "$2" "$(printf '0 %.0s' $(seq "$3"))86400000"
}

# at_step NAME STEP: the chief has done this step
at_step() {
    awk -v step="$2" '/^applied / && $5 >= step { found = 1 } END { exit !found }' "$1.0.record" 2>/dev/null
}

# loses_one NAME WORKERS [STEP]: worker 1 of a crew is killed after this step of the chief, and replaced. It is held before the last
# step, so that the others wait for it.
loses_one() {
    hold "$1" 1 12
    start_crew "$1" "$2"
    until_true 60 at_step "$1" "${3:-2}" || return
    lose 1
    undelay "$1"
    start_member "$1" worker 1 1
    await_crew
}

# is_missed NAME: the chief waits for a worker that it has declared dead
is_missed() {
    says "$1" 'waiting for worker 1 (declared dead'
}

# ---- results

# says NAME WORDS: the chief's log has these words
says() {
    grep -qs -- "$2" "$1.0.log"
}

# kept NAME [STEPS]: after a loss, the crew went on with the state of the others: the chief has done no step twice, repeated at most the
# step in progress (or STEPS, a digit or pattern), and still sums by NCCL
kept() {
    says "$1" 'by NCCL' && ! says "$1" 'through the host' &&
        says "$1" "the crew is whole again: .*, \(nothing was\|one step was\|${2:-0} steps were\) repeated" &&
        awk '/^applied / { if ($4 <= last) exit 1; last = $5 }' "$1.0.record"
}

# validations LOG: prints all validation results
validations() {
    grep -oh 'validation after.*' "$1"
}

# losses LOG: prints the last step's loss
losses() {
    grep -h '^step' "$1" | sed 's/.*loss \([0-9.]*\).*/\1/' | tail -n 1
}

# close_to LOSS LOSS
close_to() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 1e-3 && b - a < 1e-3) }'
}

# same_each_time NAME COMMAND…: runs COMMAND, which trains the job from its start, twice; both runs must have the same weights
same_each_time() {
    local name=$1
    shift
    "$@" && mv "$name.safetensors" first.safetensors && rm -r "$name" && "$@" && same_weights "$name" first
}
