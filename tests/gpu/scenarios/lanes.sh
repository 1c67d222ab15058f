# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Stages on several GPUs of a worker, which exchange values and gradients from GPU to GPU.
reference single

# stages NAME STAGES DEVICES [WORKERS]: a job with this number of GPUs in each worker
stages() {
    job "$1" 20 GPU Pipeline "$1" Auto Crew 4 "$3"
    sed -i "s/^strategy: {/workers: {replicas: ${4:-1}}\n&stages: $2, /" "$1.yaml"
}

# in_micro_batches NAME COUNT: with as many as the other job's logical shards
in_micro_batches() {
    sed -i "s/, logicalShards: $2//; s/^strategy: {/&microBatches: $2, /" "$1.yaml"
}

if can_have 2 "stages on two GPUs of a worker"; then
    stages lanes 2 2
    EMULATED_LATE=all lone lanes && grep -q '2 devices each: GPU' lanes.log && same_weights lanes single
    verdict $? "two stages on a worker's two GPUs, however late streams are, the bits of one" "$(tail -n 2 lanes.log)"

    precision=BFloat16
    tied bound OneDevice 1 && lone bound
    tied bound2 Pipeline 1 "stages: 2, recompute: true, " && with_gpus bound2 2
    EMULATED_LATE=all lone bound2 && same_weights bound2 bound
    verdict $? "bfloat16: a table shared by two GPUs, stages that compute again, the bits of one" "$(tail -n 2 bound2.log)"
    precision=

    narrow thin OneDevice 1 && lone thin
    narrow thin2 Pipeline 1 ", device: 0" ", device: 1" && with_gpus thin2 2 && in_micro_batches thin2 5
    lone thin2 && same_weights thin2 thin && [[ -n $(validations thin.log) && $(validations thin2.log) == "$(validations thin.log)" ]]
    verdict $? "float16: an odd number of values, dropout, clipping, the bits and evaluations of one" "$(tail -n 2 thin2.log)"

    narrow further OneDevice 1 && sed -i 's/steps: 8/steps: 12/; s/path: further,/path: thin2,/' further.yaml
    sed -i 's/steps: 8/steps: 12/; s/thin.safetensors/longer.safetensors/' thin.yaml
    lone thin && lone further && same_weights further longer && grep -q 'step *12/12' further.log && ! grep -q 'step *8/12' further.log
    verdict $? "one GPU goes on from their checkpoint, to the bits that it would have come to itself" "$(tail -n 2 further.log)"
    narrow back Pipeline 1 ", device: 0" ", device: 1" && with_gpus back 2 && in_micro_batches back 5
    sed -i 's/steps: 8/steps: 16/; s/path: back,/path: thin,/' back.yaml && sed -i 's/steps: 12/steps: 16/' further.yaml
    lone back && lone further && same_weights back further && ! grep -q 'step *12/16' back.log
    verdict $? "and two GPUs from its own" "$(tail -n 2 back.log)"

    varied steady 26 steady && lone steady
    varied steady2 26 steady2 && with_gpus steady2 2 && in_micro_batches steady2 2 && sed -i 's/OneDevice/Pipeline/' steady2.yaml
    lone steady2 && same_weights steady2 steady && [[ -n $(validations steady.log) && $(validations steady2.log) == "$(validations steady.log)" ]]
    verdict $? "running statistics, a short last batch, stages cut by their costs, the bits of one" "$(tail -n 2 steady2.log)"

    stages travels 2 2 && sed -i 's/^training: {steps: 20/training: {steps: 12/' travels.yaml && lone travels
    stages arrives 2 2 && sed -i 's/^devices: {type: GPU/devices: {type: CPU/; s/path: arrives,/path: travels,/' arrives.yaml
    lone arrives && close_to "$(losses arrives.log)" "$(losses lanes.log)" && ! grep -q 'step *12/20' arrives.log
    verdict $? "and CPUs, to the same loss" "$(losses arrives.log) $(losses lanes.log)"
fi

# between LOG: prints the numbers of copies between GPUs, direct and staged
between() {
    sed -n 's/^copies between GPUs: \([0-9]*\) direct, \([0-9]*\) staged.*/\1 \2/p' "$1"
}
if plays_gpus; then
    tried=4 # copies that a pair is tried with, there and back either way
    narrow direct Pipeline 1 ", device: 0" ", device: 1" && with_gpus direct 2 && in_micro_batches direct 5
    unsaved direct && sed -i '/^evaluation:/d; s/, validation: {last: 5}//' direct.yaml && EMULATED_COPY_COUNTS=1 lone direct
    read -r straight staged <<<"$(between direct.log)" && ((straight == 8 * 5 * 2 + tried && staged == 0))
    verdict $? "what crosses goes directly: values and gradients for each of 5 micro-batches of 8 steps" "$(between direct.log)"
    stages distant 2 2 && unsaved distant && EMULATED_PEERS=0 EMULATED_COPY_COUNTS=1 lone distant
    read -r straight staged <<<"$(between distant.log)" && ((straight == 0 && staged >= 20 * 4 * 2)) && same_weights distant single
    verdict $? "and where GPUs lie apart as the driver has it, with the same bits" "$(between distant.log)"
    stages spoilt 2 2 && unsaved spoilt && EMULATED_PEERS_SPOIL=1 EMULATED_COPY_COUNTS=1 lone spoilt
    read -r straight staged <<<"$(between spoilt.log)" && ((straight == tried && staged >= 20 * 4 * 2)) &&
        same_weights spoilt single && [[ $(grep -c 'GPU [01] and GPU [01] copy to each other by way of the host' spoilt.log) == 1 ]]
    verdict $? "and where direct copies arrive spoilt, which their trial shows" "$(between spoilt.log) $(tail -n 2 spoilt.log)"
    stages roundabout 2 2 && unsaved roundabout && COXSWAIN_GPU_PEERS=0 EMULATED_COPY_COUNTS=1 lone roundabout
    read -r straight staged <<<"$(between roundabout.log)" && ((straight == 0 && staged >= 20 * 4 * 2))
    verdict $? "and where COXSWAIN_GPU_PEERS=0 wants it so" "$(between roundabout.log)"
fi

# lends NAME STEPS BATCH: runs two workers with two stages each, where the last stage borrows a table of the first; prints the bytes
# that the chief's GPUs copy to the host
lends() {
    cat >"$1.yaml" <<YAML
workers: {replicas: 2}
devices: {type: GPU, count: 2}
model: {inputShape: [16], layers: [{type: Embedding, name: words, size: 61, units: 16, device: 0}, {type: Dense, units: 64, device: 1}, {type: Dense, units: 16, device: 2}, {type: Dense, units: 61, weightsOf: words, bias: false, device: 3}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 64}
training: {steps: $2, batchSize: $3, seed: 7, optimizer: {type: SGD, learningRate: "1e-2"}}
strategy: {type: Pipeline, stages: 4, microBatches: 2}
YAML
    EMULATED_COPY_COUNTS=1 through_host crew "$1" 2
    sed -n 's/^copies .* to the host: \([0-9]*\) bytes/\1/p' "$1.0.log"
}
if plays_gpus; then
    often=$(lends often 6 4) seldom=$(lends seldom 3 8)        # the same examples
    # Both runs exchange as much between stages. The norm has one block, to which the chief's stages contribute all their gradients.
    a_step=$(((often - seldom) / 3)) table=$((61 * 16 * 4)) dense=$(((16 + 1) * 64 * 4))
    ((a_step >= table + (table + dense) && a_step < table + (table + dense) + dense))
    verdict $? "a table that another worker borrows goes to the host once a step, and nothing else of its holder's gradients" "$a_step bytes a step, $often $seldom, $(tails often)"
fi

if can_have 3 "stages on three GPUs of a worker"; then
    heavy flat OneDevice 1 && lone flat
    heavy layered Pipeline 1 ", device: 0" ", device: 1" ", device: 2" && with_gpus layered 3 && in_micro_batches layered 5
    lone layered && same_weights layered flat && [[ $(validations layered.log) == "$(validations flat.log)" ]]
    verdict $? "three stages, the bits and evaluations of one" "$(tail -n 2 layered.log)"
    heavy twice Pipeline 1 ", device: 0" ", device: 1" ", device: 0" && with_gpus twice 2 && in_micro_batches twice 5
    lone twice && same_weights twice flat
    verdict $? "a GPU with the first layers and the last" "$(tail -n 2 twice.log)"
    heavy split Pipeline 1 ", device: 0" ", devices: [0, 1]" ", device: 1" && with_gpus split 2 && in_micro_batches split 5
    heavy slices Pipeline 2 ", device: 0" ", devices: [0, 1]" ", device: 1" && in_micro_batches slices 5
    lone split && crew slices 2 && same_weights split slices
    verdict $? "a layer that is split over two, the bits of two workers" "$(tail -n 2 split.log) $(tails slices)"
fi

if can_have 4 "replicas of stages on a worker's GPUs"; then
    stages pairs 2 4 && lone pairs && same_weights pairs single
    verdict $? "two replicas of two stages in a worker, the bits of one" "$(tail -n 2 pairs.log)"
    tied whole OneDevice 1 && lone whole
    tied pairs2 Pipeline 1 "stages: 2, " && with_gpus pairs2 4
    lone pairs2 && same_weights pairs2 whole
    verdict $? "with a table that their GPUs share" "$(tail -n 2 pairs2.log)"
fi
if can_have 2 "stages on two GPUs of two workers each"; then
    tied joined Pipeline 2 "stages: 4, " && with_gpus joined 2 && tied apart OneDevice 1 && lone apart
    EMULATED_LATE=all through_host crew joined 2 && says joined 'what crosses between stages goes through the host, not by NCCL' && same_weights joined apart
    verdict $? "four stages on two workers' GPUs, two each, which share a table, through the host, the bits of one" "$(tails joined)"
    mkdir empty # without certificates: it ends when it has said what it would do
    tied sealed Pipeline 2 "stages: 4, " && with_gpus sealed 2 && cluster="{\"worker\":$(hosts 1 2)}" pids=()
    start_with sealed 0 "COXSWAIN_CREW_TLS_DIR=$work/empty"
    ! await_crew && says sealed 'what crosses between stages goes through the host, because NCCL does not support TLS, which the job uses$' && ! says sealed 'from GPU to GPU'
    verdict $? "also where traffic is TLS" "$(tails sealed)"
    stages hosted 2 2 2 && unsaved hosted
    through_host loses_one hosted 2 && same_weights hosted single && says hosted 'the crew is whole again' &&
        says hosted 'gradients of replicas go through the host, not by NCCL'
    verdict $? "a replica in each of two workers, one of them killed during a step: the crew goes on with the other's state" "$(tails hosted)"
fi

# bare NAME TYPE [SUFFIX SUFFIX]: a job whose last layer, which has the second SUFFIX, has no parameters
bare() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU}
model: {inputShape: [6], layers: [{type: Dense, units: 3${3-}}, {type: Tanh${4-}}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 24}
training: {steps: 4, batchSize: 8, logicalShards: 4, seed: 7, optimizer: {type: SGD, learningRate: "1e-2"}}
strategy: {type: $2}
storage: [{name: runs}]
export: {storage: runs, path: $1.safetensors}
YAML
}

# vectors NAME INDEX: prints the number of vectors that the process has sent and received by NCCL
vectors() {
    sed -n 's/^vectors by NCCL: //p' "$1.$2.log"
}
# leaves NAME STAGES: the second of two workers with two GPUs each leaves on request. Its GPUs' messages arrive some time after the
# GPUs are done with them, and no checkpoint is due.
leaves() {
    stages "$1" "$2" 2 2 && sed -i 's/everySteps: 4/everySteps: 20/' "$1.yaml"
    hold "$1" 1 12
    EMULATED_NCCL_ABORT=meets start_pair "$1" EMULATED_NCCL_SLOW_MS=5 EMULATED_NCCL_TAIL_MS=100
    until_true 60 at_step "$1" 2
    kill -TERM "${pids[1]}"
    delay "$1" 1 100 # as in leaving.sh
    await "${pids[1]}"
    undelay "$1"
    start_member "$1" worker 1 1
    await_crew && grep -q 'left on request after step' "$1.1.log" && kept "$1" && same_weights "$1" single
}
values='what crosses between stages goes from GPU to GPU by NCCL' sums='gradients of replicas go from GPU to GPU by NCCL'

if can_sum 2 2 "stages on two GPUs of two workers each, by NCCL"; then
    tied joined1 Pipeline 2 "stages: 4, " && with_gpus joined1 2
    EMULATED_LATE=all EMULATED_NCCL_SLOW_MS=2 crew joined1 2 && says joined1 "$values" && same_weights joined1 apart
    verdict $? "four stages by NCCL between workers, however late streams are, the bits of one" "$(tails joined1)"
    precision=BFloat16
    tied short OneDevice 1 && lone short
    tied short1 Pipeline 2 "stages: 4, recompute: true, " && with_gpus short1 2
    crew short1 2 && says short1 "$values" && same_weights short1 short
    verdict $? "in bfloat16, where stages compute again" "$(tails short1)"
    precision=
    tied twice Pipeline 2 "stages: 2, " && with_gpus twice 2
    crew twice 2 && says twice "$sums" && same_weights twice apart
    verdict $? "a table shared by the GPUs of each of two replicas gets the sums of both" "$(tails twice)"
    stages replica 2 2 2
    EMULATED_NCCL_COUNTS=1 crew replica 2 && says replica "$sums" && same_weights replica single
    verdict $? "a replica in each worker, with gradients by NCCL" "$(tails replica)"
    bare alone OneDevice && lone alone
    bare without Pipeline ", device: 0" ", device: 1" && with_gpus without 2
    sed -i 's/^strategy: {/workers: {replicas: 2}\n&stages: 2, /' without.yaml
    crew without 2 && says without "$sums" && same_weights without alone
    verdict $? "also where a stage has no parameters" "$(tails without)"
    # Before each loss, steps are done through the host.
    stages weary 2 2 2 && unsaved weary && hold weary 1 12
    export EMULATED_NCCL_FAILS=init
    start_crew weary 2
    until_true 60 at_step weary 2 && lose 1 && hold weary 1 4 && start_member weary worker 1 1
    until_true 60 at_step weary 5 && lose 1 && undelay weary && start_member weary worker 1 2
    await_crew && same_weights weary single && (($(grep -c 'emulated NCCL: rank 0 cannot join' weary.0.log) == 2))
    verdict $? "a worker that has failed with NCCL twice does not try it a third time" "$(tails weary)"
    unset EMULATED_NCCL_FAILS
    stages wound 2 2 2 && unsaved wound
    loses_one wound 2 && kept wound && same_weights wound single
    verdict $? "one of them killed during a step: the crew goes on with the other's state, by NCCL" "$(tails wound)"
    stages broken 4 2 2
    loses_one broken 2 && says broken "$values" && ! says broken 'goes through the host' && same_weights broken single
    verdict $? "of four stages two are killed with their worker: all go on from the checkpoint" "$(tails broken)"
    if plays_gpus; then
        stages spoiled 4 2 2
        EMULATED_PEERS_SPOIL=1 loses_one spoiled 2 && same_weights spoiled single && says spoiled 'crosses between stages goes through the host' &&
            ! says spoiled "$values" && [[ $(grep -c 'copy to each other by way of the host' spoiled.0.log) == 1 ]]
        verdict $? "and without NCCL if direct copies between their GPUs arrive spoilt: the survivor does not try or warn again" "$(tails spoiled)"
        stages undone 1 2 2
        EMULATED_PEERS_SPOIL=1 crew undone 2 && same_weights undone single && says undone 'gradients of replicas go through the host' &&
            ! says undone "$sums" && [[ $(grep -c 'copy to each other by way of the host' undone.0.log) == 1 ]]
        verdict $? "the same with a stage's replicas, which only exchange sums" "$(tails undone)"
        stages hostly 4 2 2
        COXSWAIN_GPU_PEERS=0 EMULATED_PEERS_SPOIL=1 crew hostly 2 && says hostly "$values" && same_weights hostly single
        verdict $? "by NCCL without direct ways where COXSWAIN_GPU_PEERS=0 wants it so" "$(tails hostly)"
    fi
    stages frozen 4 2 2
    hold frozen 1 12
    start_crew frozen 2
    until_true 60 at_step frozen 2 && kill -STOP "${pids[1]}"
    undelay frozen
    until_true 60 is_missed frozen
    kill -CONT "${pids[1]}"
    wait "${pids[1]}"
    [[ $? == 163 ]] && start_member frozen worker 1 1 && await_crew && says frozen 'the crew is whole again' &&
        ! says frozen 'goes through the host' && same_weights frozen single
    verdict $? "and two frozen: their worker's successor takes its place" "$(tails frozen)"
    leaves parted 2
    verdict $? "a replica leaves on request: no step that all have done is taken again" "$(tails parted)"
    leaves halved 4
    verdict $? "and two stages of four: what they have saved is what all go on from" "$(tails halved)"
fi
if plays_gpus; then
    stages counted 4 2 2
    EMULATED_NCCL_COUNTS=1 crew counted 2 && same_weights counted single
    (($? == 0 && $(vectors counted 0) >= 20 * 4 * 2 && $(vectors counted 0) % (20 * 4 * 2) == 0 && $(vectors counted 0) == $(vectors counted 1)))
    verdict $? "values and gradients of each of 4 micro-batches of 20 steps by NCCL, at both ends" "$(vectors counted 0) $(vectors counted 1)"
    (($(vectors replica 0) == 20 * 2 * 4 && $(vectors replica 1) == 20 * 2 * 4))
    verdict $? "of replicas four vectors a step for the sum of each stage" "$(vectors replica 0) $(vectors replica 1)"
    stages cleft 4 2 2
    start_pair cleft '' EMULATED_NCCL_SLOW_MS=86400000
    until_true 60 grep -qs '^share ' cleft.0.record
    lose 1
    start_member cleft worker 1 1
    await_crew && says cleft "$values" && same_weights cleft single
    verdict $? "killed while a stage waits for it in NCCL, and the worker's other stage for that" "$(tails cleft)"
    stages clung 4 2 2
    EMULATED_NCCL_ABORT=hangs start_pair clung '' EMULATED_NCCL_SLOW_MS=86400000
    until_true 60 grep -qs '^share ' clung.0.record
    lose 1
    wait "${pids[0]}"
    [[ $? == 160 ]] && tail -n 1 clung.0.log | grep -q 'NCCL did not abort'
    verdict $? "exit 160: NCCL that comes back from an abort on neither of a worker's GPUs" "$(tail -n 2 clung.0.log)"
fi
if can_sum 4 2 "replicas of four stages on two GPUs of four workers each, by NCCL"; then
    stages both 4 2 4 && unsaved both
    EMULATED_LATE=all loses_one both 4 && kept both && says both "$values" && same_weights both single
    verdict $? "two replicas of four stages on two GPUs of four workers each, one killed during a step, the bits of one" "$(tails both)"
fi
if can_sum 2 4 "two replicas of stages in each of two workers, by NCCL"; then
    narrow thin1 OneDevice 1 && lone thin1
    narrow many Pipeline 2 ", device: 0" ", device: 1" && with_gpus many 4
    sed -i 's/^strategy: {/&stages: 2, /' many.yaml
    crew many 2 && says many "$sums" && same_weights many thin1 && [[ $(validations many.0.log) == "$(validations thin1.log)" ]]
    verdict $? "two replicas in each of two workers, 5 micro-batches for 4 replicas, float16, the bits and evaluations of one" "$(tails many)"
fi
