# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the machine's and by_hand.sh's
#
# What the scenarios of this folder have in common: jobs for real workers on GPUs, alone and as crews, whom somebody kills. Two
# machines run them: the one that the processor plays (../check-emulated) and the one that is there (../check-real). A machine
# sources tests/integration/by_hand.sh and this, and says beforehand:
#
#   gpu_count                   how many GPUs there are
#   plays_gpus                  whether they are emulated: then they fail, are late or are missing as EMULATED_… says
#   can_have COUNT WHAT         whether a worker can have so many GPUs; if not it skips WHAT and says why
#   can_sum WORKERS EACH WHAT   whether so many workers with so many GPUs each can sum by NCCL; likewise
#   through_host COMMAND…       workers that COMMAND starts sum by way of the host, though NCCL is asked for
#   give_gpus NAME PLACE        exports what gives a process its GPUs, by its place in `pids`: none to servers and a chief of its own
#
# What is to be killed or frozen is held before, and cannot end (hold): GPUs are as quick as they are.

# What every machine plays: workers that have it to themselves, and those that may as well share one GPU
# shellcheck disable=SC2034 # the machines'
{
    own_scenarios=(alone ahead loss_scale logits several lanes)
    crew_scenarios=(crews precisions servers peers pipeline sharded local_steps lost leaving)
}

# play_scenario NAME: in a folder of its own, since whoever finds a checkpoint under the name of its job goes on from it
play_scenario() {
    trap 'kill -KILL $(jobs -p) 2>/dev/null' EXIT
    work=$work/$1
    mkdir "$work" && cd "$work" || exit 1
    # shellcheck source=/dev/null
    . "$root/tests/gpu/scenarios/$1.sh"
}

# run_scenarios NAME…: those of this folder, each with the time that it takes, and each in a shell of its own: functions and variables
# may have the names of another's
run_scenarios() {
    local scenario begun
    for scenario; do
        begun=$EPOCHREALTIME
        (play_scenario "$scenario")
        printf -- '-- %s: %s s\n' "$scenario" "$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')"
    done
}

# devices_of NAME: how many its document gives each worker
devices_of() {
    local count
    count=$(sed -n 's/^devices:.* count: \([0-9]*\).*/\1/p' "$1.yaml")
    echo "${count:-1}"
}

# set_up NAME PLACE: by_hand.sh asks. What the process does it tells NAME.PLACE.record, unless another is set (worker/data/step_record.h)
set_up() {
    give_gpus "$@"
    export COXSWAIN_RECORD="${COXSWAIN_RECORD-$work/$1.$2.record}"
}

# ---- jobs

# job NAME STEPS DEVICE STRATEGY FOLDER [COLLECTIVE [DETERMINISM [SHARDS [DEVICES]]]]: a small GPT on data that it makes itself;
# the caller may set precision
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

# unsaved NAME: the job writes no checkpoints: what its workers hold is nowhere else
unsaved() {
    sed -i '/^checkpoint:/d' "$1.yaml"
}

# varied NAME STEPS FOLDER [RATE]: what differs from step to step: dropout, clipping, a short last batch, evaluations
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

# wide NAME STRATEGY [DEVICES]: more parameters than go out in one part
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

# heavy NAME TYPE WORKERS [SUFFIX…]: three dense layers, whose descriptions end in SUFFIX; more crosses between two, either way, than
# a wire takes in before it is read
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

# narrow NAME TYPE WORKERS [SUFFIX]: a micro-batch is one example, and what crosses is an odd number of values; the first two
# layers' descriptions and the others' end in SUFFIX
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

# with_gpus NAME DEVICES: each worker has so many
with_gpus() {
    sed -i "s/^devices: .*/devices: {type: GPU, count: $2}/" "$1.yaml"
}

# rounds NAME COLLECTIVE [DETERMINISM [SHARDS [DEVICES]]]: of three local steps each
rounds() {
    job "$1" 18 GPU MultiWorkerMirrored "$1" "$2" "${3:-Crew}" "${4:-3}" "${5:-1}"
    sed -i 's/^strategy: {/&localSteps: 3, /' "$1.yaml"
}

# ---- what others are compared with: one worker on one GPU, made when it is first asked for, for all scenarios

# reference NAME…: before what is in the environment of the scenario's own workers
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
# This one is a crew, whose rounds are summed by way of the host.
reference_hosted() {
    rounds hosted Hierarchical && crew hosted 3
}

# ---- what happens to them

# hold NAME INDEX BATCHES: from its start on this worker reads so many batches, and the next one does not come until `undelay`
hold() {
    delay "$1" "$2" "$(printf '0 %.0s' $(seq "$3"))86400000"
}

# at_step NAME STEP: its chief has done it
at_step() {
    awk -v step="$2" '/^applied / && $5 >= step { found = 1 } END { exit !found }' "$1.0.record" 2>/dev/null
}

# loses_one NAME WORKERS [STEP]: of a crew of so many worker 1 is killed after this step of its chief, and replaced; before the last
# step it is held, and the others wait for it
loses_one() {
    hold "$1" 1 12
    start_crew "$1" "$2"
    until_true 60 at_step "$1" "${3:-2}" || return
    lose 1
    undelay "$1"
    start_member "$1" worker 1 1
    await_crew
}

# is_missed NAME: its chief waits for somebody that it has given up
is_missed() {
    says "$1" 'waiting for worker 1 (declared dead'
}

# ---- what came of it

# says NAME WORDS: its chief has said so
says() {
    grep -qs -- "$2" "$1.0.log"
}

# kept NAME [STEPS]: somebody was lost, and the crew went on with what the others held: its chief has done no step twice, repeated
# only what was under way (a step, or a digit that matches STEPS), and sums by NCCL still
kept() {
    says "$1" 'by NCCL' && ! says "$1" 'through the host' &&
        says "$1" "the crew is whole again: .*, \(nothing was\|one step was\|${2:-0} steps were\) repeated" &&
        awk '/^applied / { if ($4 <= last) exit 1; last = $5 }' "$1.0.record"
}

# validations LOG: all of them
validations() {
    grep -oh 'validation after.*' "$1"
}

# losses LOG: the last step's
losses() {
    grep -h '^step' "$1" | sed 's/.*loss \([0-9.]*\).*/\1/' | tail -n 1
}

# close_to LOSS LOSS
close_to() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 1e-3 && b - a < 1e-3) }'
}

# same_each_time NAME COMMAND…: which trains the job from its start, to the same weights again
same_each_time() {
    local name=$1
    shift
    "$@" && mv "$name.safetensors" first.safetensors && rm -r "$name" && "$@" && same_weights "$name" first
}
