# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # by_hand.sh asks for what is set here
#
# Tests training.precision: Float16, which scales losses. In a model with too high a learning rate, all workers skip the same steps.
# The scale and the skipped steps are in checkpoints and in TensorBoard, are sent from peer to peer, and give the same bits for any
# number of workers and devices. A scale that cannot be lowered ends the job. Source by_hand.sh first, set `device` (CPU, GPU), and
# define can_have, can_sum and through_host for the machine, as tests/gpu/scenarios/scene.sh requires.

# scaled NAME [FOLDER]: a job; FOLDER is that of its checkpoints. The caller may set steps, precision, clip, strategy, more and devices
scaled() {
    cat >"$1.yaml" <<YAML
devices: {type: $device, count: ${devices:-1}}
model:
  inputShape: [12]
  loss: MeanSquaredError
  layers:
    - {type: Dense, units: 16}
    - {type: Tanh}
    - {type: Dense, units: 1}
data: {format: Synthetic, examples: 1000, validation: {last: 100}}
training:
  steps: ${steps:-24}
  batchSize: 6
  logicalShards: 6
  precision: ${precision:-Float16}
  ${clip:+gradientClipNorm: $clip}
  optimizer: $optimizer
  seed: 7
strategy: {type: ${strategy:-OneDevice}${more:-}}
storage: [{name: runs}]
checkpoint: {storage: runs, path: ${2:-$1}, everySteps: 4, keep: 9}
export: {path: $1.safetensors, storage: runs}
YAML
}

optimizer='{type: AdamW, learningRate: "1", beta2: "0.9"}'

# by_nccl NAME: on GPUs its gradients have gone from GPU to GPU, as the chief says
by_nccl() {
    [[ $device == CPU ]] || grep -q 'from GPU to GPU by NCCL' "$1".log
}

# skips LOG: the steps that were
skips() {
    sed -n 's/^step \([0-9]*\) is skipped.*/\1/p' "$1" | tr '\n' ' '
}

scaled one
lone one
verdict $? "float16 trains" "$(tail -n 1 one.log)"
all=$(skips one.log)
read -ra each <<<"$all"
((${#each[@]} >= 3 && each[0] < 5 && each[-1] > 4))
verdict $? "skipping some steps, before and after the first checkpoint" "$all"
grep -q "step 24/24 .*  scale $((65536 >> ${#each[@]}))  " one.log
verdict $? "each halves the scale" "$(grep 'step 24/24' one.log)"
(($(grep -rao train/loss_scale one/tensorboard | wc -l) == 24 && $(grep -rao train/skipped_steps one/tensorboard | wc -l) == 24))
verdict $? "which TensorBoard draws, and how many were" "$(ls one)"

steps=4 scaled resumed
lone resumed && steps=24 scaled resumed && lone resumed && same_weights resumed one
verdict $? "goes on from a checkpoint with the same bits" "$(tail -n 1 resumed.log)"
[[ " $all" == *" $(skips resumed.log)" ]] && grep -q "(${#each[@]} steps skipped so far)" resumed.log
verdict $? "with the scale and the count that it had" "$(skips resumed.log)"

if [[ $device == GPU ]]; then
    scaled waiting
    COXSWAIN_GPU_AHEAD=0 lone waiting && same_weights waiting one
    verdict $? "the same bits where the host judges each step" "$(tail -n 1 waiting.log)"
    scaled singly
    COXSWAIN_GPU_GRAPHS=0 lone singly && same_weights singly one
    verdict $? "and without CUDA graphs" "$(tail -n 1 singly.log)"
fi
worker_options=(--threads 3)
scaled threads
lone threads && same_weights threads one
verdict $? "the same bits with another number of threads" "$(tail -n 1 threads.log)"
worker_options=(--threads 1)
if can_sum 1 3 "float16 on three devices of a worker"; then
    strategy=Mirrored devices=3 scaled mirrors
    lone mirrors && by_nccl mirrors && same_weights mirrors one
    verdict $? "three devices: the bits of one" "$(tail -n 1 mirrors.log)"
    strategy=CentralStorage devices=3 scaled central
    lone central && same_weights central one
    verdict $? "and where they share one state" "$(tail -n 1 central.log)"
fi
clip='"0.5"' scaled clipped
lone clipped
verdict $? "float16 trains with gradients that are clipped" "$(tail -n 1 clipped.log)"
if [[ $device == CPU ]]; then
    strategy=Pipeline devices=2 scaled stages
    lone stages && same_weights stages one
    verdict $? "two stages: the bits of one" "$(tail -n 1 stages.log)"
    clip='"0.5"' strategy=Pipeline devices=2 scaled short
    lone short && same_weights short clipped && ! same_weights clipped one
    verdict $? "which clip the gradient without its scale" "$(tail -qn 1 clipped.log short.log)"
fi
strategy=Pipeline scaled apart
crew apart 2 && same_weights apart one
verdict $? "two workers with a stage each: the bits of one" "$(tails apart)"
if can_sum 2 1 "float16 with a sharded optimizer"; then
    strategy=MultiWorkerMirrored more=', shardedOptimizer: true' scaled sharded
    crew sharded 2 && by_nccl sharded.0 && same_weights sharded one
    verdict $? "a sharded optimizer: the bits of one" "$(tails sharded)"
    clip='"0.5"' strategy=MultiWorkerMirrored more=', shardedOptimizer: true' scaled shares
    crew shares 2 && by_nccl shares.0 && same_weights shares clipped
    verdict $? "and with gradients that are clipped" "$(tails shares)"
fi
if [[ $device == GPU ]] && can_sum 2 2 "float16 by two workers with two GPUs each"; then
    strategy=MultiWorkerMirrored devices=2 scaled quartet
    crew quartet 2 && by_nccl quartet.0 && same_weights quartet one && [[ $(skips quartet.0.log) == "$all" ]]
    verdict $? "two workers with two GPUs each skip the same steps: the bits of one" "$(tails quartet)"
    strategy=MultiWorkerMirrored devices=2 more=', shardedOptimizer: true' scaled quarters
    crew quarters 2 && by_nccl quarters.0 && same_weights quarters one
    verdict $? "and where their four GPUs have the slots between them" "$(tails quarters)"
    strategy=MultiWorkerMirrored devices=2 more=', shardedOptimizer: true' scaled hosted
    through_host crew hosted 2 && ! by_nccl hosted.0 && same_weights hosted one
    verdict $? "by way of the host as well" "$(tails hosted)"
fi

# A worker is killed between two skips, and cannot have ended before; another takes its place.
if can_sum 2 1 "float16, and one of two workers killed"; then
    strategy=MultiWorkerMirrored scaled crew
    delay crew 1 1000
    start_crew crew 2
    until_true 120 has_saved crew 4
    verdict $? "two workers come to a checkpoint" "$(tails crew)"
    lose 1
    undelay crew
    start_member crew worker 1 1
    await_crew && by_nccl crew.0 && same_weights crew one
    verdict $? "one is lost and replaced: the bits of one" "$(tails crew)"
fi

precision=BFloat16 steps=30 scaled back one
lone back && ! grep -Eq ' scale [0-9]|skipped' back.log && grep -q 'step 30/30' back.log
verdict $? "bfloat16 goes on from it" "$(tail -n 2 back.log)"
steps=34 scaled again one
lone again && grep -q 'step 34/34' again.log
verdict $? "and float16 from that" "$(tail -n 2 again.log)"

optimizer='{type: SGD, learningRate: "9"}' steps=200 scaled fast
refused 71 'set training.precision to BFloat16' fast
