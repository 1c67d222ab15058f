#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-worker as a person runs it by hand: trains, survives kills, resumes with other crews to the same bits, and
# answers bad input with a sentence and the right exit code. Prints ok/not ok lines (see tests/run).
set -uo pipefail

worker=${BUILD:?}/coxswain-worker
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/network.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG

# verdict $? NAME [WHY]: reports that status. Given as a word, since $(…) in WHY sets $? anew.
verdict() {
    if (($1 == 0)); then echo "ok $2"; else echo "not ok $2${3:+: $3}"; fi
}

# job NAME [LINE…]: a job document; lines of the caller come last
job() {
    cat >"$1.yaml" <<YAML
model: {preset: ${preset:-mlp}}
data:
  format: idx
  train: {images: ${images:-$work/images}, labels: $work/labels}
  validation: {last: 100}
training:
  ${length:-epochs: 6}
  batchSize: 50
  logicalShards: ${shards:-12}
  optimizer: {type: adamw, learningRate: "${rate:-2e-3}"}
  seed: 7
strategy: {type: ${strategy:-OneDevice}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 5, keep: 2${required:+, required: true}}
export: {to: $1.safetensors, storage: runs}
YAML
}

train() {
    "$worker" --job "$1.yaml" --storage runs="$work" --threads 1 >"$1.log" 2>&1
}

# member NAME SIZE INDEX [EPOCH]: one process of a crew on this machine, told by TF_CONFIG; leaves its number in $member
member() {
    local name=$1 size=$2 index=$3 i hosts=() list
    for ((i = 1; i <= size; i++)); do hosts+=("\"$network.$i:2222\""); done
    list=$(IFS=,; echo "${hosts[*]}")
    TF_CONFIG="{\"cluster\":{\"worker\":[$list]},\"task\":{\"type\":\"worker\",\"index\":$index}}" \
        COXSWAIN_EPOCH=${4:-0} "$worker" --job "$name.yaml" --storage runs="$work" --threads 1 >>"$name.$index.log" 2>&1 &
    member=$!
}

# await PID…: the status of the last that failed, 0 when none did
await() {
    local pid status=0
    for pid in "$@"; do wait "$pid" || status=$?; done
    return "$status"
}

# crew NAME SIZE: a whole crew, from start to end
crew() {
    local i pids=()
    for ((i = 0; i < $2; i++)); do
        member "$1" "$2" "$i"
        pids+=("$member")
    done
    await "${pids[@]}"
}

newest_step() {
    find "$1" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -n 1 | sed 's/.*step-0*\([0-9]*\)\..*/\1/'
}

# await_checkpoint FOLDER [STEP]: until one is committed, of that step or a later one
await_checkpoint() {
    local end=$((SECONDS + 60))
    until (($(newest_step "$1") >= ${2:-1})) 2>/dev/null; do
        ((SECONDS < end)) || return 1
        sleep 0.02
    done
}

make_digits
gzip -k images

# ---- one device

job reference
train reference
verdict $? "trains on IDX files" "$(tail -n 1 reference.log)"
grep -q 'accuracy 9[0-9]\|accuracy 100' reference.log
verdict $? "learns them" "$(grep accuracy reference.log | tail -n 1)"

images=$work/images.gz job gzip
train gzip && cmp -s gzip.safetensors reference.safetensors
verdict $? "reads gzip to the same bits"

job twice
train twice && cmp -s twice.safetensors reference.safetensors
verdict $? "gives the same bits again"

"$worker" --job twice.yaml --storage runs="$work" --threads 3 >threads.log 2>&1
rm -rf twice twice.safetensors
"$worker" --job twice.yaml --storage runs="$work" --threads 3 >threads.log 2>&1 &&
    cmp -s twice.safetensors reference.safetensors
verdict $? "gives the same bits with another number of threads"

# ---- data larger than memory

# A text twice as large as this machine's memory (a file of holes, which takes no room on the disk), and a quarter of a GB for
# what the process may allocate.
read -r _ memory _ </proc/meminfo
if truncate -s $((2 * memory))K large 2>/dev/null; then
    cat >large.yaml <<YAML
model: {preset: gpt-bytes, width: 32, depth: 1, heads: 2, context: 64}
data: {format: bytes, train: {text: $work/large}, validation: {last: 8}}
training: {steps: 5, batchSize: 16, optimizer: {type: sgd, learningRate: "0.1"}, seed: 7}
strategy: {type: OneDevice}
YAML
    (ulimit -d 262144 && train large)
    verdict $? "trains on data larger than memory" "$(tail -n 1 large.log)"
    rm large
else
    echo "skip trains on data larger than memory: no such files on this file system"
fi

# ---- crews

for size in 2 3 4; do
    strategy=MultiWorkerMirrored job "crew$size"
    crew "crew$size" "$size" && cmp -s "crew$size.safetensors" reference.safetensors
    verdict $? "a crew of $size gives the bits of one" "$(tail -qn 1 crew$size.*.log | tr '\n' ' ')"
done

# ---- kills and stops

length="epochs: 40" job undisturbed
train undisturbed
for attempt in 1 2 3; do
    length="epochs: 40" job "killed$attempt"
    "$worker" --job "killed$attempt.yaml" --storage runs="$work" --threads 1 >"killed$attempt.log" 2>&1 &
    victim=$!
    await_checkpoint "killed$attempt"
    sleep "0.$((RANDOM % 3))"
    kill -KILL "$victim" 2>/dev/null
    wait "$victim" 2>/dev/null
    train "killed$attempt" && cmp -s "killed$attempt.safetensors" undisturbed.safetensors
    verdict $? "SIGKILL and a resume end in the same bits ($attempt)" "$(tail -n 1 "killed$attempt.log")"
done

length="epochs: 2000" job stopped
"$worker" --job stopped.yaml --storage runs="$work" --threads 1 >stopped.log 2>&1 &
victim=$!
await_checkpoint stopped
kill -TERM "$victim"
wait "$victim"
[[ $? == 143 ]]
verdict $? "SIGTERM ends with 143" "$(tail -n 1 stopped.log)"
left=$(sed -n 's/.*left on request after step \([0-9]*\).*/\1/p' stopped.log)
[[ -d $(printf 'stopped/step-%08d.attempt-0.epoch-0' "${left:-0}") ]]
verdict $? "and leaves a checkpoint of its last step" "$(ls stopped)"

# A crew of two: first one of them is asked to leave and replaced, then both are asked at once.
# Its end is far, so that the first is not done before the second is asked.
strategy=MultiWorkerMirrored length="epochs: 2000" job asked
member asked 2 0
first=$member
member asked 2 1
second=$member
await_checkpoint asked
kill -TERM "$second"
await "$second"
[[ $? == 143 ]]
verdict $? "SIGTERM to one of two ends that one with 143" "$(tail -n 1 asked.1.log)"
left=$(newest_step asked)
member asked 2 1 1
await_checkpoint asked $((${left:-0} + 5))
kill -TERM "$first" "$member"
await "$first" "$member"
length="steps: $(($(newest_step asked) + 5))"
length=$length job asked && train asked && length=$length job alone && train alone &&
    cmp -s asked.safetensors alone.safetensors
verdict $? "and its successor gives the same bits" "$(tail -qn 1 asked.*log | tr '\n' ' ')"
unset length

strategy=MultiWorkerMirrored length="epochs: 2000" job both
member both 2 0
first=$member
member both 2 1
second=$member
await_checkpoint both
kill -TERM "$first" "$second"
await "$first"
one=$?
await "$second"
[[ $one == 143 && $? == 143 ]]
verdict $? "SIGTERM to both ends both with 143" "$(tail -qn 1 both.*.log | tr '\n' ' ')"
# Their wishes may fall into two steps: then the first leaves and the second, with nobody left to wait for, saves that step.
left=$(sed -n 's/.*left on request after step \([0-9]*\).*/\1/p' both.0.log both.1.log | sort -n | tail -n 1)
compgen -G "$(printf 'both/step-%08d.*' "${left:-0}")" >/dev/null
verdict $? "at a boundary that is on the disk" "$(ls both)"

strategy=MultiWorkerMirrored length="epochs: 40" job other
cp -r killed1 other && crew other 2 && cmp -s other.safetensors undisturbed.safetensors
verdict $? "a checkpoint of one worker resumes with two"

# ---- bad input

# expect CODE WORDS NAME: the worker ends with CODE, and its last line has WORDS
expect() {
    local code=$1 words=$2 name=$3 status
    train "$name"
    status=$?
    [[ $status == "$code" ]] && tail -n 1 "$name.log" | grep -q -- "$words"
    verdict $? "exit $code: $name" "got $status, $(tail -n 1 "$name.log")"
}

job typo
sed -i 's/batchSize: 50/batchSize: -3/' typo.yaml
expect 64 'batchSize' typo
echo 'model: [' >broken.yaml
expect 64 'broken.yaml' broken
job unnamed
sed -i 's/, path: unnamed//' unnamed.yaml
expect 64 'checkpoint.path' unnamed
job unscored
sed -i 's/{last: 100}/{}/; s/keep: 2/keepBest: true/; s/\(to: unscored.*\)}/\1, weights: Best}/' unscored.yaml
expect 64 'data.validation' unscored
strategy='PeerToPeer, shardedOptimizer: true' job sharded
expect 64 'strategy.shardedOptimizer' sharded
images=$work/missing job nodata
expect 65 'missing' nodata
head -c 100000 images >short
images=$work/short job truncated
expect 65 'short' truncated
head -c 3000 images.gz >short.gz
images=$work/short.gz job truncatedgzip
expect 65 'short.gz' truncatedgzip
images=$work/labels job swapped
expect 65 'labels' swapped
# A limit of the process stands in for a cgroup's; what the refusal names as a remedy is followed.
memory_job() {
    cat >"$1.yaml" <<YAML
model: {preset: resnet20}
data: {format: synthetic, examples: 1024}
training: {steps: 1, batchSize: $2, optimizer: {type: sgd, learningRate: "0.01"}, seed: 7}
strategy: {type: OneDevice}
YAML
}
memory_job toolarge 1024
(ulimit -d 524288 && train toolarge)
status=$?
remedy=$(sed -n 's/.*it would fit with training.batchSize: \([0-9]*\), or with training.gradientAccumulation: .*/\1/p' toolarge.log)
[[ $status == 72 && -n $remedy ]] && grep -q 'activations [0-9]* MiB' toolarge.log && ! grep -q 'step 1 ' toolarge.log
verdict $? "exit 72: what does not fit, by purpose, and what would" "got $status, $(tail -n 1 toolarge.log)"
memory_job fitting "${remedy:-1024}"
(ulimit -d 524288 && train fitting)
verdict $? "and that does fit" "batchSize $remedy: $(tail -n 1 fitting.log)"
cat >hopeless.yaml <<YAML
model: {preset: gpt2-1558m}
data: {format: synthetic, examples: 1048576}
training: {steps: 1, batchSize: 1048576, optimizer: {type: adamw}}
strategy: {type: OneDevice}
YAML
expect 72 'parameters 5942 MiB' hopeless

job notfinite
sed -i 's|type: adamw, learningRate: "[^"]*"|type: sgd, learningRate: "1000", weightDecay: "1"|' notfinite.yaml
expect 71 'learningRate' notfinite
required=yes job required
expect 66 'no usable checkpoint' required
job unstorable
touch blocked
sed -i 's|to: unstorable.safetensors|to: blocked/file.safetensors|' unstorable.yaml
expect 74 'blocked' unstorable
preset=lenet job reference
expect 66 'has changed' reference
