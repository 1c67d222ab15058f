#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-worker as a person runs it by hand: trains, survives kills, resumes with other crews to the same bits, and
# answers bad input with a sentence and the right exit code. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# job NAME [LINE…]: a job document; lines of the caller come last
job() {
    cat >"$1.yaml" <<YAML
model: {preset: ${preset:-mlp}}
data:
  format: IDX
  train: {images: ${images:-$work/images}, labels: $work/labels}
  validation: {last: 100}
training:
  ${length:-epochs: 6}
  batchSize: 50
  logicalShards: ${shards:-12}
  optimizer: {type: AdamW, learningRate: "${rate:-2e-3}"}
  seed: 7
strategy: {type: ${strategy:-OneDevice}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: $1, everySteps: 5, keep: 2${required:+, required: true}}
export: {path: $1.safetensors, storage: runs}
YAML
}

make_digits
gzip -k images

# ---- one device

job reference
lone reference
verdict $? "trains on IDX files" "$(tail -n 1 reference.log)"
grep -q 'accuracy 9[0-9]\|accuracy 100' reference.log
verdict $? "learns them" "$(grep accuracy reference.log | tail -n 1)"

images=$work/images.gz job gzip
lone gzip && same_weights gzip
verdict $? "reads gzip to the same bits"

job twice
lone twice && same_weights twice
verdict $? "gives the same bits again"

rm -rf twice twice.safetensors
worker_options=(--threads 3)
lone twice && same_weights twice
verdict $? "gives the same bits with another number of threads"
worker_options=(--threads 1)

# ---- data larger than memory

# A text twice as large as this machine's memory (a file of holes, which takes no room on the disk), and a quarter of a GB for
# what the process may allocate.
read -r _ memory _ </proc/meminfo
if truncate -s $((2 * memory))K large 2>/dev/null; then
    cat >large.yaml <<YAML
model: {preset: gpt-bytes, width: 32, depth: 1, heads: 2, context: 64}
data: {format: Bytes, train: {text: $work/large}, validation: {last: 8}}
training: {steps: 5, batchSize: 16, optimizer: {type: SGD, learningRate: "0.1"}, seed: 7}
strategy: {type: OneDevice}
YAML
    (ulimit -d 262144 && lone large)
    verdict $? "trains on data larger than memory" "$(tail -n 1 large.log)"
    rm large
else
    echo "skip trains on data larger than memory: no such files on this file system"
fi

# ---- crews

for size in 2 3 4; do
    strategy=MultiWorkerMirrored job "crew$size"
    crew "crew$size" "$size" && same_weights "crew$size"
    verdict $? "a crew of $size gives the bits of one" "$(tails "crew$size")"
done

# ---- kills and stops

length="epochs: 20" job undisturbed
lone undisturbed
for attempt in 1 2 3; do
    length="epochs: 20" job "killed$attempt"
    echo 20 >"killed$attempt.delay" # however quick the machine is, it is not done before
    launch "killed$attempt" "killed$attempt.log" &
    victim=$!
    until_true 15 has_saved "killed$attempt"
    sleep "0.$((RANDOM % 3))"
    kill -KILL "$victim" 2>/dev/null
    wait "$victim" 2>/dev/null
    hit=$?
    undelay "killed$attempt"
    ((attempt > 1)) || cp -r killed1 other
    ((hit == 137)) && lone "killed$attempt" && same_weights "killed$attempt" undisturbed
    verdict $? "SIGKILL and a resume end in the same bits ($attempt)" "it ended with $hit; $(tail -n 1 "killed$attempt.log")"
done

length="epochs: 2000" job stopped
launch stopped stopped.log &
victim=$!
until_true 15 has_saved stopped
kill -TERM "$victim"
wait "$victim"
[[ $? == 143 ]]
verdict $? "SIGTERM ends with 143" "$(tail -n 1 stopped.log)"
left=$(sed -n 's/.*left on request after step \([0-9]*\).*/\1/p' stopped.log)
[[ -d $(printf 'stopped/step-%08d.attempt-0.incarnation-0' "${left:-0}") ]]
verdict $? "and leaves a checkpoint of its last step" "$(ls stopped)"

# A crew of two: first one of them is asked to leave and replaced, then both are asked at once.
# Its end is far, so that the first is not done before the second is asked.
strategy=MultiWorkerMirrored length="epochs: 2000" job asked
start_crew asked 2
until_true 15 has_saved asked
kill -TERM "${pids[1]}"
await "${pids[1]}"
[[ $? == 143 ]]
verdict $? "SIGTERM to one of two ends that one with 143" "$(tail -n 1 asked.1.log)"
left=$(saved_step asked)
start_member asked worker 1 1
until_true 15 has_saved asked $((left + 5))
end_crew TERM
length="steps: $(($(saved_step asked) + 5))"
length=$length job asked && lone asked && length=$length job alone && lone alone &&
    same_weights asked alone
verdict $? "and its successor gives the same bits" "$(tails asked)"
unset length

strategy=MultiWorkerMirrored length="epochs: 2000" job both
start_crew both 2
until_true 15 has_saved both
kill -TERM "${pids[@]}"
await "${pids[0]}"
one=$?
await "${pids[1]}"
[[ $one == 143 && $? == 143 ]]
verdict $? "SIGTERM to both ends both with 143" "$(tails both)"
# Their wishes may fall into two steps: then the first leaves and the second, with nobody left to wait for, saves that step.
left=$(sed -n 's/.*left on request after step \([0-9]*\).*/\1/p' both.0.log both.1.log | sort -n | tail -n 1)
compgen -G "$(printf 'both/step-%08d.*' "${left:-0}")" >/dev/null
verdict $? "at a boundary that is on the disk" "$(ls both)"

strategy=MultiWorkerMirrored length="epochs: 20" job other
crew other 2 && grep -q 'resumes from the checkpoint of step' other.0.log && same_weights other undisturbed
verdict $? "a checkpoint of one worker resumes with two" "$(tails other)"

# ---- bad input

job typo
sed -i 's/batchSize: 50/batchSize: -3/' typo.yaml
refused 64 'batchSize' typo
echo 'model: [' >broken.yaml
refused 64 'broken.yaml' broken
job unnamed
sed -i 's/, path: unnamed//' unnamed.yaml
refused 64 'checkpoint.path' unnamed
job unscored
sed -i 's/{last: 100}/{}/; s/keep: 2/keepBest: true/; s/\(path: unscored[.]safetensors.*\)}/\1, weights: Best}/' unscored.yaml
refused 64 'data.validation' unscored
strategy='PeerToPeer, shardedOptimizer: true' job sharded
refused 64 'strategy.shardedOptimizer' sharded
strategy='ParameterServer' job serverless
refused 64 'ParameterServer keeps its variables on ps, and the crew has none' serverless
images=$work/missing job nodata
refused 65 'missing' nodata
head -c 100000 images >short
images=$work/short job truncated
refused 65 'short' truncated
head -c 3000 images.gz >short.gz
images=$work/short.gz job truncatedgzip
refused 65 'short.gz' truncatedgzip
images=$work/labels job swapped
refused 65 'labels' swapped
# A limit of the process stands in for a cgroup's; what the refusal names as a remedy is followed.
memory_job() {
    cat >"$1.yaml" <<YAML
model: {preset: resnet20}
data: {format: Synthetic, examples: 1024}
training: {steps: 1, batchSize: $2, optimizer: {type: SGD, learningRate: "0.01"}, seed: 7}
strategy: {type: OneDevice}
YAML
}
memory_job toolarge 1024
(ulimit -d 524288 && lone toolarge)
status=$?
remedy=$(sed -n 's/.*it would fit with training.batchSize: \([0-9]*\), or with training.gradientAccumulation: .*/\1/p' toolarge.log)
[[ $status == 72 && -n $remedy ]] && grep -q 'activations [0-9]* MiB' toolarge.log && ! grep -q 'step 1 ' toolarge.log
verdict $? "exit 72: what does not fit, by purpose, and what would" "got $status, $(tail -n 1 toolarge.log)"
memory_job fitting "${remedy:-1024}"
(ulimit -d 524288 && lone fitting)
verdict $? "and that does fit" "batchSize $remedy: $(tail -n 1 fitting.log)"
cat >hopeless.yaml <<YAML
model: {preset: gpt2-1558m}
data: {format: Synthetic, examples: 1048576}
training: {steps: 1, batchSize: 1048576, optimizer: {type: AdamW}}
strategy: {type: OneDevice}
YAML
refused 72 'parameters 5942 MiB' hopeless
awk 'BEGIN { for (j = 0; j < 2000; j++) row = row j % 7 ","; for (i = 0; i < 20000; i++) print row i % 2 }' >table.csv
cat >table.yaml <<YAML
model: {inputShape: [2000], layers: [{type: Dense, units: 2}]}
data: {format: CSV, train: {files: $work/table.csv}}
training: {steps: 1, batchSize: 10, optimizer: {type: SGD}}
strategy: {type: OneDevice}
YAML
(ulimit -d 131072 && refused 72 'the table takes 153 MiB in memory' table)
rm table.csv

job notfinite
sed -i 's|type: AdamW, learningRate: "[^"]*"|type: SGD, learningRate: "1000", weightDecay: "1"|' notfinite.yaml
refused 71 'learningRate' notfinite
required=yes job required
refused 66 'no usable checkpoint' required
length='steps: 5' job moved
lone moved
sed -i 's/steps: 5$/steps: 7/' moved.yaml
lone moved && ! grep -q 'arithmetic' moved.log
verdict $? "a resume with the same instruction set says nothing of it" "$(tails moved)"
sed -i 's/steps: 7$/steps: 9/' moved.yaml
COXSWAIN_ARITHMETIC=portable lone moved && grep -q 'this worker has portable: the bits may differ' moved.log
verdict $? "a resume with another says that the bits may differ" "$(tails moved)"
length='steps: 12' job moved
sed -i 's/seed: 7$/seed: 8/' moved.yaml
refused 66 'within epoch 0, and the order of its examples was drawn with training.seed 7' moved
length='steps: 12' job moved
sed -i 's/last: 100/last: 101/' moved.yaml
refused 66 'a number of examples of 600' moved
job former
mkdir -p former/step-00000005.attempt-1.epoch-1
refused 66 'step-00000005.attempt-1.epoch-1 has format version 1' former
job unstorable
touch blocked
sed -i 's|path: unstorable.safetensors|path: blocked/file.safetensors|' unstorable.yaml
refused 74 'blocked' unstorable
preset=lenet job reference
refused 66 'has changed' reference
