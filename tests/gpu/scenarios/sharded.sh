# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Workers with a GPU each and a sharded optimizer.
reference single

# sharded NAME
sharded() {
    job "$1" 20 GPU MultiWorkerMirrored "$1" Auto Crew 4
    sed -i 's/^strategy: {/&shardedOptimizer: true, /' "$1.yaml"
}

sharded zero
through_host crew zero 2 && same_weights zero single
verdict $? "two workers share the optimizer's slots, through the host, the bits of one" "$(tails zero)"
sharded zeroes && unsaved zeroes
through_host loses_one zeroes 3 && says zeroes 'through the host' && same_weights zeroes single
verdict $? "one of three that share slots is killed, the bits of one" "$(tails zeroes)"
if can_sum 3 1 "slots shared out by NCCL"; then
    sharded zero1
    crew zero1 3 && says zero1 'by NCCL' && same_weights zero1 single
    verdict $? "by NCCL: gradients to the owners of slots and their mirrors, parameters to all, the bits of one" "$(tails zero1)"
    sharded zeroes1 && unsaved zeroes1
    loses_one zeroes1 3 && says zeroes1 'by NCCL' && same_weights zeroes1 single && kept zeroes1
    verdict $? "and killed during a step: the others go on with its mirror" "$(tails zeroes1)"
fi
