# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Crews of workers with a GPU each, which sum through the host, and from GPU to GPU by NCCL.
reference alone slow
job crew 12 GPU MultiWorkerMirrored crew Hierarchical
crew crew 2 && ! says crew NCCL
verdict $? "two workers with a GPU each train as a crew, through the host" "$(tails crew)"
same_weights crew alone
verdict $? "with the bits of one"

# staffed NAME: runs `varied` with two workers
staffed() {
    varied "$1" 26 "$1"
    sed -i 's/type: OneDevice/type: MultiWorkerMirrored/' "$1.yaml"
    crew "$1" 2 && same_weights "$1" slow
}
through_host staffed homely && says homely 'through the host'
verdict $? "by the host where NCCL fails: the bits of one" "$(tails homely)"

if can_sum 2 1 "two workers that sum by NCCL"; then
    staffed many && says many 'by NCCL' && ! grep -h warning many.*.log | grep -qv "refused a connection"
    verdict $? "a crew's passes are CUDA graphs, and gradients are sent while they run: the bits of one" "$(tails many)"
    COXSWAIN_GPU_GRAPHS=0 staffed launched
    verdict $? "or launch by launch" "$(tails launched)"
    job nccl 12 GPU MultiWorkerMirrored nccl NCCL
    crew nccl 2 && says nccl 'from GPU to GPU by NCCL'
    verdict $? "two workers sum from GPU to GPU by NCCL" "$(tails nccl)"
    same_weights nccl alone
    verdict $? "with the bits of one"
fi
if plays_gpus; then
    EMULATED_CAPTURE=fails staffed uncaught && says uncaught 'previous error during capture'
    verdict $? "and where nothing can be captured, and says so" "$(tails uncaught)"
    EMULATED_LATE=all staffed tardy
    verdict $? "however late streams are" "$(tails tardy)"
fi

if can_sum 4 1 "four workers that sum by NCCL"; then
    reference wide
    wide wider MultiWorkerMirrored && crew wider 4 && says wider 'by NCCL' && same_weights wider wide
    verdict $? "Auto takes NCCL: four workers, six shards, more than one part, the bits of one" "$(tails wider)"
fi

if can_sum 3 1 "NCCL's own sums of three workers"; then
    job five 8 GPU OneDevice five Auto Crew 5 && lone five
    job three 8 GPU MultiWorkerMirrored three NCCL Run 5
    same_each_time three crew three 3
    verdict $? "determinism Run: NCCL's own sums, the same each time" "$(tails three)"
    close_to "$(losses five.log)" "$(losses three.0.log)"
    verdict $? "and close to one worker's" "$(losses five.log) $(losses three.0.log)"
fi
