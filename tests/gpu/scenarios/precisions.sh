# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Products of rounded factors, and two-byte values.
reference alone
precision=TF32 job tf32 12 GPU OneDevice tf32 && lone tf32 && close_to "$(losses tf32.log)" "$(losses alone.log)"
verdict $? "TF32: a worker trains on a GPU, to much the same loss as in float32" "$(tail -n 2 tf32.log)"
if plays_gpus; then # cuBLAS may, and need not, cut factors of products as small as these
    ! same_weights tf32 alone
    verdict $? "and to other weights" "$(tail -n 2 tf32.log)"
fi
reference short && ! same_weights short alone
verdict $? "bfloat16: a worker trains on a GPU, to other weights than float32's" "$(tail -n 2 short.log)"
precision=BFloat16
job behind 12 GPU OneDevice behind && COXSWAIN_GPU_LT=1 lone behind && close_to "$(losses behind.log)" "$(losses short.log)" && ! same_weights behind short
verdict $? "bias and GELU by cuBLASLt, with products: much the same loss, and other weights" "$(tail -n 2 behind.log)"
job anew 16 GPU OneDevice behind && lone anew && grep -q 'was computed with sm_[0-9]*+l arithmetic, and this worker has sm_[0-9]*: ' anew.log
verdict $? "a run that goes on without it says that bits may differ" "$(tail -n 2 anew.log)"
job shorter 8 GPU OneDevice halfway && lone shorter && job rest 12 GPU OneDevice halfway && lone rest && same_weights rest short
verdict $? "goes on from a checkpoint with the bits of a run that was not cut" "$(tail -n 2 rest.log)"
job over 16 CPU OneDevice halfway && lone over && grep -q 'step 16/16' over.log &&
    job again 20 GPU OneDevice halfway && lone again && grep -q 'step 20/20' again.log
verdict $? "from GPU to CPU to GPU" "$(tail -n 2 again.log)"
job host 12 GPU MultiWorkerMirrored host Hierarchical && crew host 2 && same_weights host short
verdict $? "two workers, through the host: the bits of one" "$(tails host)"
if can_sum 2 1 "bfloat16 by NCCL"; then
    job direct 12 GPU MultiWorkerMirrored direct NCCL && crew direct 2 && says direct 'from GPU to GPU by NCCL' && same_weights direct short
    verdict $? "two workers, by NCCL: the bits of one" "$(tails direct)"
fi
if can_have 2 "bfloat16 on two GPUs of a worker"; then
    job mates 12 GPU Mirrored mates Auto Crew 2 2 && lone mates && same_weights mates short
    verdict $? "two GPUs in a worker: the bits of one" "$(tail -n 2 mates.log)"
fi
for precision in BFloat16 Float16; do
    job "near-$precision" 8 GPU OneDevice "near-$precision" && lone "near-$precision" && job "begun-$precision" 4 GPU OneDevice "begun-$precision" &&
        lone "begun-$precision" && job "rest-$precision" 8 GPU OneDevice "begun-$precision" && lone "rest-$precision" &&
        same_weights "rest-$precision" "near-$precision"
    verdict $? "$precision: from a checkpoint on, the same bits" "$(tail -n 1 "rest-$precision.log")"
    job "crew-$precision" 8 GPU MultiWorkerMirrored "crew-$precision" Hierarchical && crew "crew-$precision" 2 &&
        same_weights "crew-$precision" "near-$precision"
    verdict $? "$precision: and by two workers" "$(tails "crew-$precision")"
done
precision=
