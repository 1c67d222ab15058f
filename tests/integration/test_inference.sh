#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Uses what a job has learnt: continues a text and classifies held-out images, from an export, a directory of checkpoints and
# a single checkpoint. Files that do not fit the job are refused. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
make_digits
sentence='Sphinx of black quartz, judge my vow. '
for ((i = 0; i < 300; i++)); do printf '%s' "$sentence"; done >corpus.txt

cat >text.yaml <<YAML
model: {preset: gpt-bytes, width: 32, depth: 1, heads: 2, context: 48}
data: {format: Bytes, train: {text: $work/corpus.txt}, validation: {last: 8}}
training: {steps: 150, batchSize: 8, seed: 7, optimizer: {type: AdamW, learningRate: "1e-2"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
checkpoint: {storage: runs, path: text, everySteps: 100, keep: 2}
export: {storage: runs, path: text.safetensors}
YAML
cat >bars.yaml <<YAML
model: {preset: mlp, width: 16}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 20}}
training: {steps: 12, batchSize: 24, logicalShards: 4, seed: 7, optimizer: {type: AdamW, learningRate: "1e-3"}}
strategy: {type: OneDevice}
storage: [{name: runs}]
checkpoint: {storage: runs, path: bars, everySteps: 10, keep: 2}
YAML

# ask NAME OPTION…: the worker's answer in `answer`, its last word on stderr in `said`; returns its status
ask() {
    local name=$1 status
    shift
    answer=$("$worker" --job "$name.yaml" --storage runs="$work" --threads 1 "$@" 2>said.log)
    status=$?
    said=$(tail -n 1 said.log)
    return "$status"
}

# refuses CODE WORDS NAME OPTION…
refuses() {
    local code=$1 words=$2 status
    shift 2
    ask "$@"
    status=$?
    [[ $status == "$code" && $said == *"$words"* && -z $answer ]]
    verdict $? "refused: ${*:2}" "exit $status, $said $answer"
}

refuses 66 'there are no weights' text --generate Sphinx
mkdir text
refuses 66 'holds no checkpoint' text --generate Sphinx
lone text && lone bars
verdict $? 'two jobs are trained' "$(tails text) $(tails bars)"

# ---- texts
ask text --generate 'Sphinx of' --tokens 100 --temperature 0
verdict $? 'a text goes on' "$said"
greedy=$answer
[[ $greedy == "$sentence$sentence"* ]]
verdict $? 'as the model has learnt it, beyond its context, too' "$greedy"
printf 'Sphinx of' >prompt
ask text --prompt-file prompt --tokens 100 --temperature 0 && [[ $answer == "$greedy" ]]
verdict $? 'the prompt may be in a file' "$said $answer"
[[ $(wc -c <<<"$greedy") == 110 ]]
verdict $? 'so far as it was asked' "$(wc -c <<<"$greedy")"
grep -q "^weights: the file $work/text.safetensors$" said.log
verdict $? 'from the export, if nothing else is said' "$(cat said.log)"
ask text --generate 'Sphinx of' --tokens 100 --temperature 0 --weights "$work/text" && [[ $answer == "$greedy" ]] &&
    grep -q 'the checkpoint of step 150 in' said.log
verdict $? 'the newest checkpoint says the same' "$(cat said.log)"
older=$(find text -maxdepth 1 -name 'step-*100.*')
ask text --generate 'Sphinx of' --weights "$work/$older/" && grep -q 'the checkpoint of step 100 in' said.log
verdict $? 'an older one can be named' "$(cat said.log)"
first=
wild=(--generate 'Sphinx of' --tokens 60 --temperature 3)
ask text "${wild[@]}" --seed 1 && first=$answer && ask text "${wild[@]}" --seed 1 && [[ $answer == "$first" ]]
verdict $? 'equal seeds give equal texts' "$first, $answer"
ask text "${wild[@]}" --seed 2 && [[ $answer != "$first" ]]
verdict $? 'other seeds others' "$first, $answer"
ask text "${wild[@]}" --seed 2 --top-k 1 && [[ $answer == "${greedy:0:69}" ]]
verdict $? 'among one token there is no choice' "$answer"

# ---- where a job's container still runs
sed 's/path: text, //' text.yaml >pathless.yaml
ask pathless --generate 'Sphinx of' --tokens 100 --temperature 0 && [[ $answer == "$greedy" ]]
verdict $? 'beside an export, where the checkpoints are need not be known' "$said"
sed 's/path: text.safetensors/path: none.safetensors/' pathless.yaml >neither.yaml
refuses 64 'checkpoint.path: is missing' neither --generate x

echo 'of the worker that trains' >message
export COXSWAIN_TERMINATION_LOG=$work/message
refuses 64 'the prompt is empty' text --generate ''
refuses 64 'not a number' text --generate x --tokens none
refuses 66 'No such file' bars --predict all --weights "$work/none"
"$worker" --job text.yaml --storage runs="$work" --threads 1 --generate Sphinx --tokens 1000000000 >endless.txt 2>endless.log &
endless=$!
until_true 60 test -s endless.txt && kill -TERM "$endless"
await "$endless"
status=$?
[[ $status == 143 ]] && ! grep -q 'asked to leave' endless.log
verdict $? 'asked to end, it ends as any program' "$status, $(cat endless.log)"
[[ $(cat message) == 'of the worker that trains' ]]
verdict $? 'the termination message stays that of the worker in the container' "$(cat message)"
"$worker" --job text.yaml --storage none 2>/dev/null
grep -q '^exit 64 .*NAME=DIRECTORY' message
verdict $? 'which that worker writes' "$(cat message)"
unset COXSWAIN_TERMINATION_LOG

# ---- images
last=$(sed -n 's/.*validation after step 12: //p' bars.log | tail -n 1)
ask bars --predict all && [[ -n $last && $answer == "$last: "*' of 20' ]]
verdict $? 'all held-out images have the metrics that the job told' "$answer; $last; $said"
right=${answer#*: }
count=0
for ((i = 0; i < 20; i++)); do
    ask bars --predict "$i" || break
    [[ $answer == *': wrong' ]] || count=$((count + 1))
done
[[ "$count of 20" == "$right" ]]
verdict $? 'one by one they are as often right' "$count, $right, $said"
grep -q '@@@@@@' <<<"$answer" && grep -q '^class [0-9]: [0-9.]* %$' <<<"$answer" && (($(wc -l <<<"$answer") == 32))
verdict $? 'each with its picture and three classes' "$answer"
ask bars --predict all --json && python3 - "$answer" "$right" <<'PYTHON'
import json, sys
report = json.loads(sys.argv[1])
matrix = report["confusion"]
right = sum(matrix[i][i] for i in range(10))
assert len(matrix) == 10 and sum(map(sum, matrix)) == report["examples"] == 20, matrix
assert f"{right} of 20" == sys.argv[2] and abs(report["accuracy"] - right / 20) < 1e-6, report["accuracy"]
losses = [one["loss"] for one in report["worst"]]
assert len(losses) == 20 and losses == sorted(losses, reverse=True) and abs(sum(losses) / 20 - report["loss"]) < 1e-4, losses
assert all(one["picture"]["pixels"] for one in report["worst"]) and "classes" not in report
PYTHON
verdict $? 'as JSON with the confusion matrix and the worst of them' "$answer $said"
ask text --predict all --json && [[ $answer == '{'*'"perplexity":'* && $answer != *confusion* ]] && ! ask bars --predict 3 --json && [[ $said == *'needs --predict all'* ]]
verdict $? '--json is refused for texts and for a single example' "$answer $said"
ask text --predict all && [[ $answer == 'loss '*', perplexity '* ]]
verdict $? 'of texts there is a perplexity' "$answer $said"
metrics=$answer
sed 's/batchSize: 8/batchSize: 1048576/' text.yaml >broad.yaml
ask broad --predict all && [[ $answer == "$metrics" ]]
verdict $? 'however many the job took at a time' "$answer $said"

"$worker" --job bars.yaml --storage runs="$work" --threads 1 --predict all --outputs >outputs.npy 2>said.log
"$worker" --job bars.yaml --storage runs="$work" --threads 1 --predict 19 --outputs >last.npy 2>>said.log
head -c 128 outputs.npy | contains "'descr': '<f4'.*'shape': (20, 10,)" && cmp -s <(tail -c 40 outputs.npy) <(tail -c 40 last.npy) &&
    (($(wc -c <outputs.npy) == 128 + 800 && $(wc -c <last.npy) == 128 + 40))
verdict $? 'what the model gives for them can be had as an array' "$(tail -n 1 said.log)"
sed "s/batchSize: 24, logicalShards: 4/batchSize: 1048576/" bars.yaml >roomy.yaml
ask roomy --predict all && [[ $answer == "$last: $right" ]] && ask roomy --predict 19 && [[ $answer == *'example 19 of 20'* ]]
verdict $? 'a job that planned for a larger memory is used in this one' "$answer $said"
# ---- numbers in place of classes: sums of four numbers, and each of two halves
perl -e '
    sub npy {
        my ($name, $shape, @values) = @_;
        my $header = "{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: ($shape), }";
        $header .= " " x (63 - (10 + length $header) % 64) . "\n";
        open my $f, ">", $name or die; binmode $f; print $f "\x93NUMPY\1\0", pack("v", length $header), $header, pack("f<*", @values);
    }
    srand(1); my (@numbers, @sums, @halves);
    for (1 .. 60) {
        my @four = map { rand } 1 .. 4;
        push @numbers, @four; push @sums, $four[0] + $four[1] + $four[2] + $four[3]; push @halves, $four[0] + $four[1], $four[2] + $four[3];
    }
    npy("numbers.npy", "60, 4", @numbers); npy("1.npy", "60, 1", @sums); npy("2.npy", "60, 2", @halves);'
# numbers NAME OUTPUTS STRATEGY
numbers() {
    cat >"$1.yaml" <<YAML
model: {inputShape: [4], layers: [{type: Dense, units: $2}], loss: MeanSquaredError}
data: {format: NPY, train: {images: $work/numbers.npy, labels: $work/$2.npy}, validation: {last: 20}}
training: {steps: 12, batchSize: 20, seed: 7, optimizer: {type: AdamW, learningRate: "1e-2"}}
strategy: {$3}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}
for outputs in 1 2; do
    numbers "sums$outputs" "$outputs" 'type: OneDevice'
    lone "sums$outputs" && ask "sums$outputs" --predict all && [[ $answer =~ ^'loss '[0-9.]+', RMSE '[0-9.]+" in the labels' unit"$ ]] &&
        grep -qx "validation after step 12: ${answer% in the labels*}" "sums$outputs.log" && grep -qx "held-out examples: $answer" "sums$outputs.log"
    verdict $? "of $outputs numbers there are the loss and its root" "$answer $said $(grep -E 'validation|held-out' "sums$outputs.log")"
done
numbers served 2 'type: ParameterServer, mode: Synchronous'
crew served 1 1
grep -qxE "held-out examples: loss [0-9.]+, RMSE [0-9.]+ in the labels' unit" served.0.log && ! grep -Eq 'accuracy|perplexity' served.0.log
verdict $? 'and with a server' "$(tails served)"

# ---- what does not fit
refuses 64 'the prompt is empty' text --generate ''
refuses 64 'shorten them to 48 (of a model over bytes, to 48 bytes)' text --generate "$sentence$sentence"
refuses 64 'No such file' text --prompt-file "$work/none"
printf 'a\0b' >binary
refuses 64 'NUL byte' text --prompt-file binary
refuses 64 'does not predict the next token' bars --generate 3
refuses 64 'from 0 to 19' bars --predict 20
refuses 64 'from 0 to 19' bars --predict 1x
refuses 64 'does not classify' text --predict 1
refuses 66 'No such file' text --generate x --weights "$work/none"
refuses 66 'neither a file nor a directory' text --generate x --weights /dev/null
head -c 1000 text.safetensors >cut.safetensors
refuses 66 'cut.safetensors' text --generate x --weights "$work/cut.safetensors"
refuses 66 'another model' bars --predict all --weights "$work/text.safetensors"
newest=$(find bars -maxdepth 1 -name 'step-*12.*')
printf 'x' | dd of="$newest/rank-00000.safetensors" bs=1 seek=2000 conv=notrunc 2>/dev/null
ask bars --predict all && grep -q 'the checkpoint of step 10 .*, since of the newest: ' said.log && [[ -d $newest ]]
verdict $? 'a damaged checkpoint is passed over, and stays where it is' "$(cat said.log)"
refuses 66 'checkpoint' bars --predict all --weights "$work/$newest"
