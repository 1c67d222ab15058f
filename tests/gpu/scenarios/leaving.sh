# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A worker leaves a crew on request while emulated NCCL is still sending or behind.
reference single

# goes NAME: worker 1 is asked to leave after two steps of its chief and before the last batch, and another takes its place. The
# crew ends with the bits of one worker, and does not repeat the step after which it left, which is in `left`.
goes() {
    job "$1" 20 GPU MultiWorkerMirrored "$1" NCCL Crew 4
    unsaved "$1"
    hold "$1" 1 12
    start_pair "$1" '' 'EMULATED_NCCL_SLOW_MS=0 EMULATED_NCCL_TAIL_MS=500'
    until_true 60 at_step "$1" 2
    kill -TERM "${pids[1]}"
    delay "$1" 1 100 # it reads on, and not so fast that it ends before it hears of it
    await "${pids[1]}"
    undelay "$1"
    start_member "$1" worker 1 1
    await_crew && left=$(sed -n 's/.*left on request after step \([0-9]*\) of.*/\1/p' "$1.1.log") &&
        (($(cat "$1".?.record | grep -c "^share [^ ]* [^ ]* $left ") == 2)) && same_weights "$1" single
}
if can_sum 2 1 "one of two workers leaves on request"; then
    # The leaver's messages arrive half a second after its step, and not at all if it aborts its communicator before. That abort
    # waits until the others have aborted theirs.
    left=
    EMULATED_NCCL_ABORT=meets EMULATED_NCCL_SLOW_MS=40 goes apart
    verdict $? "a worker leaves on request once all have its gradients: nobody takes that step again" "$left $(tails apart)"
    ! grep -h 'NCCL did not abort' apart.*.log
    verdict $? "and the others hear of it while it ends its communicator, which takes until they have ended theirs" "$(tails apart)"
fi

# lags NAME: a crew with more than four parts of gradients, so that a process that queues the fifth part waits for the others. The
# straggler's read takes longer than two whole steps did before, and long enough for it to be named on any machine.
lags() {
    cat >"$1.yaml" <<YAML
devices: {type: GPU}
model: {inputShape: [2], layers: [{type: Embedding, size: 8, units: 660000}, {type: Dense, units: 8}], loss: SoftmaxCrossEntropy}
data: {format: Synthetic, examples: 64}
training: {steps: 1000000, batchSize: 2, determinism: Run, seed: 7, optimizer: {type: SGD, learningRate: "1e-3"}}
strategy: {type: MultiWorkerMirrored}
YAML
    COXSWAIN_GRACE_SECONDS=2 start_crew "$1" 2
    until_true 60 grep -Eqs "^step +([2-9]|[1-9][0-9]+)/" "$1.0.log" # which names a time
    delay "$1" 1 "$(sed -n 's/^step .* \([0-9]*\)[0-9.]* ms.*/\1/p' "$1.0.log" | tail -n 1 | awk '{ print 2 * $1 + 50 }')"
    until_true 60 says "$1" 'worker [01] is a straggler'
}
if can_sum 2 1 "a straggler whose gradients are many parts"; then
    lags lagging
    says lagging 'by NCCL' && says lagging 'worker 1 is a straggler' && ! says lagging 'worker 0 is a straggler'
    verdict $? "a straggler is named, and nobody else, where gradients are many parts" "$(tails lagging)"
    delay lagging 1 86400000
    kill -TERM "${pids[1]}" # it abandons its step, for whose gradients the chief waits before it asks for anything else
    until_true 60 says lagging 'waiting for worker 1 (left by request'
    verdict $? "one that abandons its step is missed at once" "$(tails lagging)"
    end_crew KILL
    undelay lagging
fi
