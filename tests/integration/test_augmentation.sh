#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Images that are mirrored and cropped as they are learnt from: the same ones in every crew, under every strategy, and in a run
# that is resumed within an epoch. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"
make_digits

# job NAME STRATEGY STEPS AUGMENTATION [CHECKPOINTS [DEVICES]]: 600 examples are 12 steps an epoch
job() {
    cat >"$1.yaml" <<YAML
model: {preset: mlp, width: 32}
data: {format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}, augmentation: {$4}}
training: {steps: $3, batchSize: 50, logicalShards: 4, seed: 7, optimizer: {type: AdamW, learningRate: "2e-3"}}
strategy: {$2}
devices: {count: ${6:-1}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${5:-$1}, everySteps: 5, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

both='horizontalFlip: true, cropPadding: 4'
job plain 'type: OneDevice' 30 ''
job reference 'type: OneDevice' 30 "$both"
lone plain && lone reference && ! same_weights plain
verdict $? 'augmented images teach something else' "$(tails reference)"
grep -q 'cropped out of 4 zeros around, half mirrored' reference.log
verdict $? 'the plan says what is done to them' "$(grep data reference.log)"

for workers in 2 3; do
    job "crew$workers" 'type: MultiWorkerMirrored' 30 "$both"
    crew "crew$workers" "$workers" && same_weights "crew$workers"
    verdict $? "$workers workers learn from the same ones" "$(tails "crew$workers")"
done
job mirrored 'type: Mirrored' 30 "$both" mirrored 2
lone mirrored && same_weights mirrored
verdict $? 'so do mirrors' "$(tails mirrored)"
job stages 'type: Pipeline, stages: 2, microBatches: 4' 30 "$both" stages 2
sed -i 's/ logicalShards: 4,//' stages.yaml
lone stages && same_weights stages
verdict $? 'stages' "$(tails stages)"
job servers 'type: ParameterServer, mode: Synchronous' 30 "$both"
crew servers 2 1 && same_weights servers
verdict $? 'and workers of a server' "$(tails servers)"

job begun 'type: OneDevice' 17 "$both" relay
job resumed 'type: MultiWorkerMirrored' 30 "$both" relay
lone begun && crew resumed 2 && grep -q 'resumes from the checkpoint of step 17' resumed.0.log && same_weights resumed
verdict $? 'a run resumed within an epoch goes on with the same ones' "$(tails resumed)"

# Peers go through the data each in its own order. White images are all alike until something is cut, so under weights that stand
# (their rate is next to nothing) their loss is one number.
perl -e 'open my $f, ">", "white.images" or die; binmode $f; print $f pack("N4", 0x803, 700, 28, 28), "\xff" x (700 * 784); close $f;
    open $f, ">", "white.labels" or die; binmode $f; print $f pack("N2", 0x801, 700), "\0" x 700;'
for name in white cut; do
    job "$name" 'type: PeerToPeer' 10 "$([[ $name == white ]] || echo "$both")"
    sed -i "s|$work/images|$work/white.images|; s|$work/labels|$work/white.labels|; s/learningRate: \"2e-3\"/learningRate: \"1e-30\"/" "$name.yaml"
    crew "$name" 2
    verdict $? "peers, $name" "$(tails "$name")"
done
losses() {
    sed -n 's/^step .* loss \([0-9.]*\).*/\1/p' "$1.0.log" | sort -u
}
[[ $(losses white | wc -l) == 1 && -n $(losses cut) ]] && ! losses cut | contains -xF "$(losses white)"
verdict $? 'and peers learn from augmented ones' "$(losses white) white, $(losses cut | tr '\n' ' ')cut"

# A job without augmentation finds the same validation loss for the last model as training has printed.
sed 's/augmentation: {.*}}/augmentation: {}}/' reference.yaml >held-out.yaml
told=$(sed -n 's/.*validation after step 30: //p' reference.log | tail -n 1)
found=$("$worker" --job held-out.yaml --storage runs="$work" --threads 1 --weights "$work/reference.safetensors" --predict all 2>&1)
[[ $told == *accuracy* && $found == *"$told: "*' of 100' ]]
verdict $? 'what is held out stays as it is' "$told; $found"
grep '^held out' reference.log | contains '100' && ! grep '^held out' reference.log | contains -E 'cropped|mirrored'
verdict $? 'and the plan does not say otherwise' "$(grep 'held out' reference.log)"

job wide 'type: OneDevice' 5 'cropPadding: 28'
refused 65 'cropPadding: 28 would leave nothing of an image of 28x28' wide
job negative 'type: OneDevice' 5 'cropPadding: -1'
refused 64 'cropPadding' negative
job unknown 'type: OneDevice' 5 'verticalFlip: true'
refused 64 'verticalFlip' unknown
sed 's/preset: mlp, width: 32/preset: gpt-bytes, context: 8/; s/format: IDX, train: {.*}, validation/format: Synthetic, examples: 200, validation/' \
    reference.yaml >text.yaml
refused 64 'augmentation: is for images' text
