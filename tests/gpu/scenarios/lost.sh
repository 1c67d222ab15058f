# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Workers of a crew that sums by NCCL are killed or frozen while the others wait for them in NCCL.
reference single

if can_sum 4 1 "one of four workers killed"; then
    job kill 20 GPU MultiWorkerMirrored kill NCCL Crew 4
    loses_one kill 4 6 && # two steps past a checkpoint, which nobody needs
        kept kill && same_weights kill single
    verdict $? "a worker killed during a step: the others go on with their own state and its successor, the bits of one" "$(tails kill)"
fi
if can_sum 2 2 "one of two workers with two GPUs each killed"; then
    job riven 20 GPU MultiWorkerMirrored riven NCCL Crew 4 2
    unsaved riven
    loses_one riven 2 && kept riven && same_weights riven single
    verdict $? "a worker with two GPUs killed during a step, the bits of one" "$(tails riven)"
fi
if can_sum 2 1 "one of two workers frozen"; then
    job freeze 20 GPU MultiWorkerMirrored freeze NCCL Crew 4
    unsaved freeze
    hold freeze 1 12
    start_crew freeze 2
    until_true 60 at_step freeze 2
    frozen=${pids[1]}
    kill -STOP "$frozen"
    undelay freeze
    until_true 60 is_missed freeze
    verdict $? "a frozen worker is named" "$(tails freeze)"
    kill -CONT "$frozen"
    wait "$frozen"
    [[ $? == 163 ]]
    verdict $? "and superseded" "$(tail -n 2 freeze.1.log)"
    start_member freeze worker 1 1
    await_crew && kept freeze && same_weights freeze single
    verdict $? "its successor takes its place, the bits of one" "$(tails freeze)"
fi
if plays_gpus; then
    job slowly 20 GPU MultiWorkerMirrored slowly NCCL Crew 4 && unsaved slowly
    export EMULATED_NCCL_SLOW_MS=40
    start_crew slowly 2
    until_true 60 at_step slowly 2
    lose 1
    unset EMULATED_NCCL_SLOW_MS
    start_member slowly worker 1 1
    await_crew && kept slowly && same_weights slowly single
    verdict $? "a worker killed while its own part is under way, the bits of one" "$(tails slowly)"

    job stuck 20 GPU MultiWorkerMirrored stuck NCCL Crew 4
    hold stuck 1 12
    EMULATED_NCCL_ABORT=hangs start_crew stuck 2
    until_true 60 at_step stuck 2
    lose 1
    undelay stuck
    wait "${pids[0]}"
    [[ $? == 160 ]] && tail -n 1 stuck.0.log | grep -q 'NCCL did not abort'
    verdict $? "exit 160: NCCL that does not come back from an abort" "$(tail -n 2 stuck.0.log)"

    # The destructor that exit() runs would report communicators that were not aborted.
    job caught 4 GPU Mirrored caught NCCL Crew 4 2
    EMULATED_NCCL_FAILS=second EMULATED_NCCL_ABORT=hangs lone caught
    [[ $? == 162 ]] && ! grep -q 'communicators left behind' caught.log
    verdict $? "exit 162: NCCL that fails, and does not come back from an abort either; the process ends without waiting for it" "$(tail -n 2 caught.log)"
fi
