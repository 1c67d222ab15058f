#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pipelines of real processes: stages in processes of their own give the bits of one device, whichever process is killed; a lone
# stage comes back from the checkpoint, one of two replicas from the other; any strategy goes on from another's checkpoint.
# Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

digits="{format: IDX, train: {images: $work/images, labels: $work/labels}, validation: {last: 100}}"
text="{format: Bytes, train: {text: $work/text}}"
model="{preset: mlp, width: 48, depth: 3}"
data=$digits

# job NAME STRATEGY STEPS [WORKERS] [DEVICES]: a job document; all take the same steps of 12 micro-batches in all
job() {
    cat >"$1.yaml" <<YAML
model: $model
data: $data
training:
  steps: $3
  batchSize: 50
  logicalShards: 12
  gradientClipNorm: "0.5"
  optimizer: {type: AdamW, learningRate: "1e-3"}
  seed: 7
strategy: {$2}
workers: {replicas: ${4:-1}}
devices: {count: ${5:-1}}
evaluation: {everySteps: 40}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${folder:-$1}, everySteps: 10, keep: 2}
export: {path: $1.safetensors, storage: runs}
YAML
}

make_digits
job reference "type: OneDevice" 80 && lone reference
verdict $? "one device trains" "$(tails reference)"

# ---- stages in processes of their own
stages="type: Pipeline, stages: 2"
job two "$stages" 80 2
crew two 2 && same_weights two
verdict $? "two stages in two processes give the bits of one device" "$(tails two)"
find two -name 'rank-0000[01].safetensors' | sed 's/.*rank/rank/' | sort -u >parts
verdict "$([[ $(wc -l <parts) -eq 2 ]]; echo $?)" "each stage writes its part of a checkpoint" "$(ls two)"
grep -h 'validation after step 80' two.0.log >a && grep -h 'validation after step 80' reference.log | cmp -s - a
verdict $? "a pipeline's evaluation has the figures of one device" "$(cat a)"

job hybrid "$stages" 80 4 && crew hybrid 4 && same_weights hybrid
verdict $? "two replicas of two stages give the bits of one device" "$(tails hybrid)"
job pods "$stages" 80 2 2 && crew pods 2 && same_weights pods
verdict $? "a whole replica in each of two processes as well" "$(tails pods)"

# ---- from strategy to strategy
folder=mixed job first "$stages" 40 2 && crew first 2 && folder=mixed job second "type: OneDevice" 60 && lone second &&
    folder=mixed job third "$stages, microBatches: 3" 80 2 2 && sed -i '/logicalShards/d' third.yaml && crew third 2 &&
    same_weights third
verdict $? "stages, one device and replicas go on from each other's checkpoints" "$(tails third)"

# ---- a branch that leaves a process and comes back
model="{inputShape: [28, 28, 1], layers: [{type: Flatten}, {type: Dense, units: 32, name: stem, device: 0},
  {type: Dense, units: 32, name: away, device: 1}, {type: Tanh, name: bent},
  {type: Dense, units: 32, name: here, inputs: [stem], device: 0}, {type: Add, name: sum, inputs: [bent, here]},
  {type: ReLU}, {type: Dense, units: 10}]}"
job branch "type: OneDevice" 40 && sed -i 's/, device: [01]//g' branch.yaml && lone branch &&
    job rejoined "$stages" 40 2 && crew rejoined 2 && same_weights rejoined branch
verdict $? "a branch that rejoins the process it left gives the bits of one device" "$(tails branch; tails rejoined)"

# ---- a layer that is split over two processes
split() {
    model="{inputShape: [28, 28, 1], layers: [{type: Flatten}, {type: Dense, name: large, units: 70$1}, {type: ReLU},
      {type: Dense, units: 10}]}"
}
split "" && job large "type: OneDevice" 60 && lone large && split ", devices: [0, 1]" && job halves "$stages" 60 4 &&
    crew halves 4 && same_weights halves large
verdict $? "a layer split over two processes gives the bits of the whole on one device" "$(tails large; tails halves)"
folder=slices job slices "$stages" 20 2 && crew slices 2 && split "" && folder=slices job sewn "type: OneDevice" 40 &&
    lone sewn && split ", devices: [1, 0]" && folder=slices job recut "$stages" 60 2 && crew recut 2 &&
    same_weights recut large
verdict $? "slices, one device and other slices go on from each other's checkpoints" "$(tails sewn; tails recut)"

# ---- a table that is shared by two processes
head -c 4000 "$root/docs/strategies.md" >text
model="{preset: gpt2-124m, width: 16, depth: 2, heads: 2, context: 16, vocabulary: 256}" data=$text
job tied "type: OneDevice" 60 && lone tied && job apart "$stages" 60 2 && crew apart 2 && same_weights apart tied
verdict $? "a tied output in another process than its embedding gives the bits of one device" "$(tails tied; tails apart)"
cat apart/step-*60.*/rank-*.safetensors | tr -c '[:print:]' '\n' | grep -o '"embedding.weight"' >tables
verdict "$([[ $(wc -l <tables) -eq 1 ]]; echo $?)" "a checkpoint holds the shared table once" "$(ls apart)"
folder=cuts job tied1 "$stages" 20 2 && crew tied1 2 && folder=cuts job tied2 "type: Pipeline, stages: 4" 40 4 &&
    crew tied2 4 && folder=cuts job tied3 "$stages" 60 4 && crew tied3 4 &&
    same_weights tied3 tied
verdict $? "other cuts and replicas go on with it" "$(tails tied2; tails tied3)"
model="{preset: mlp, width: 48, depth: 3}" data=$digits

# ---- weights from a file of the whole model
# starting FILE NAME…: a job as job() writes it that begins with them
starting() {
    local from=$1
    shift
    job "$@" && echo "init: {storage: runs, path: $from.safetensors}" >>"$1.yaml"
}
split ""
starting large filed "type: OneDevice" 10 && lone filed && split ", devices: [0, 1]" &&
    starting large sliced "$stages" 10 2 && crew sliced 2 && same_weights sliced filed
verdict $? "stages and slices of a layer start from a file of the whole model" "$(tails filed; tails sliced)"
model="{preset: gpt2-124m, width: 16, depth: 2, heads: 2, context: 16, vocabulary: 256}" data=$text
job foreign "type: OneDevice" 5 && sed -i 's/^export: {/&names: HuggingFace, /' foreign.yaml && lone foreign &&
    starting foreign tuned "type: OneDevice" 10 && lone tuned &&
    starting foreign tuned2 "$stages" 10 2 && crew tuned2 2 && same_weights tuned2 tuned
verdict $? "so do stages that share a table, under Hugging Face's names" "$(tails tuned; tails tuned2)"
model="{preset: mlp, width: 48, depth: 3}" data=$digits

# ---- a lone stage is lost
job killed "$stages" 1000000 2 && start_crew killed 2
until_true 15 has_saved killed 20 && lose 1
start_member killed worker 1 1
until_true 15 grep -q 'back to step' killed.0.log && until_true 15 has_saved killed $(($(saved_step killed) + 20))
verdict $? "a lone stage that was killed comes back from the newest checkpoint" "$(tails killed)"
grep -h 'back to step' killed.0.log | head -n 1 >lost
verdict "$(grep -q 'step.* lost' lost; echo $?)" "what that costs is said" "$(cat lost)"
end_crew KILL

# ---- one of two replicas is lost
# Its steps have no end until it is asked to leave: a crew that is done before its member is killed, as on a machine that is slow
# to look, would leave a successor waiting for a chief that is gone.
job replaced "$stages" 1000000 4 && start_crew replaced 4
until_true 30 has_saved replaced 20 && lose 3
killed_at=$(saved_step replaced)
start_member replaced worker 3 1
until_true 30 has_saved replaced $((killed_at + 30))
verdict $? "a lost replica's successor joins the crew" "$(tails replaced)"
end_crew TERM
last=$(($(saved_step replaced) + 10))
job whole "type: OneDevice" "$last" && lone whole && folder=replaced job ended "type: OneDevice" "$last" && lone ended &&
    same_weights ended whole
verdict $? "it takes the state from the other, and the bits stay" "$(tails ended; tails replaced)"
verdict "$(! grep -q 'back to step' replaced.*.log; echo $?)" "nobody went back to a checkpoint for it" \
    "$(grep -h 'back to step' replaced.*.log)"

# ---- the chief is lost, which is a stage too
job beheaded "$stages" 1000000 2 && start_crew beheaded 2
until_true 15 has_saved beheaded 20 && lose 0
start_member beheaded worker 0 1
until_true 15 grep -q 'the crew is whole again' beheaded.1.log &&
    until_true 15 has_saved beheaded $(($(saved_step beheaded) + 20))
verdict $? "a chief that was killed leads its successor's crew from the newest checkpoint" "$(tails beheaded)"
end_crew TERM
verdict "$([[ $? -eq 143 ]]; echo $?)" "asked to leave, both stages save and leave" "$(tails beheaded)"
