# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# The changes of local steps, averaged through the host or by NCCL.
reference hosted && ! says hosted NCCL
verdict $? "local steps of three GPUs are averaged through the host" "$(tails hosted)"
if can_sum 3 1 "local steps by NCCL"; then
    rounds averaged NCCL
    crew averaged 3 && says averaged 'by NCCL' && same_weights averaged hosted
    verdict $? "and by NCCL, with the same bits" "$(tails averaged)"
    rounds unordered NCCL Run
    same_each_time unordered crew unordered 3
    verdict $? "determinism Run: the same each time" "$(tails unordered)"
    rounds cut NCCL && unsaved cut
    loses_one cut 3 && kept cut '[23]' && same_weights cut hosted
    verdict $? "a worker killed during a round, the bits of a crew that was not cut" "$(tails cut)"
fi
if can_sum 3 2 "local steps of workers with two GPUs"; then
    rounds onegpu Auto Crew 6
    rounds doubly Auto Crew 6 2
    crew onegpu 3 && crew doubly 3 && says doubly 'by NCCL' && same_weights doubly onegpu
    verdict $? "two GPUs a worker mirror the model between two exchanges, the bits of one" "$(tails doubly)"
fi
