# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A worker leaves a crew on request while emulated NCCL is still sending, or lags behind it.
reference single

# What the leaver sends comes half a second after it is done with its step, and not if it ends its communicator before; and that
# takes until the others have ended theirs.
job apart 20 GPU MultiWorkerMirrored apart NCCL Crew 4
unsaved apart
export EMULATED_NCCL_ABORT=meets EMULATED_NCCL_SLOW_MS=40
cluster="{\"worker\":$(hosts 1 2)}"
pids=()
start_member apart worker 0
EMULATED_NCCL_SLOW_MS=0 EMULATED_NCCL_TAIL_MS=500 start_member apart worker 1
until_true 60 at_step apart 2
kill -TERM "${pids[1]}"
await "${pids[1]}"
start_member apart worker 1 1
await_crew && step=$(sed -n 's/.*left on request after step \([0-9]*\) of.*/\1/p' apart.1.log) &&
    (($(cat apart.?.record | grep -c "^share [^ ]* [^ ]* $step ") == 2)) && same_weights apart single
verdict $? "a worker leaves on request once all have its gradients: nobody takes that step again" "${step:-} $(tails apart)"
! grep -h 'NCCL has not let go' apart.*.log
verdict $? "and the others hear of it while it ends its communicator, which takes until they have ended theirs" "$(tails apart)"
unset EMULATED_NCCL_ABORT EMULATED_NCCL_SLOW_MS

# More than four parts of gradients, so that whoever queues the fifth waits for others'. The straggler reads for twice as long as a
# whole step took before, on whatever machine.
cat >lagging.yaml <<YAML
devices: {type: GPU}
model: {inputShape: [2], layers: [{type: embedding, size: 8, units: 660000}, {type: dense, units: 8}], loss: softmaxCrossEntropy}
data: {format: synthetic, examples: 64}
training: {steps: 1000000, batchSize: 2, determinism: Run, seed: 7, optimizer: {type: sgd, learningRate: "1e-3"}}
strategy: {type: MultiWorkerMirrored}
YAML
COXSWAIN_GRACE_SECONDS=2 start_crew lagging 2
until_true 60 grep -Eqs "^step +([2-9]|[1-9][0-9]+)/" lagging.0.log # which names a time
delay lagging 1 "$(sed -n 's/^step .* \([0-9]*\)[0-9.]* ms.*/\1/p' lagging.0.log | tail -n 1 | awk '{ print 2 * $1 }')"
until_true 60 says lagging 'worker [01] is a straggler'
says lagging 'by NCCL' && says lagging 'worker 1 is a straggler' && ! says lagging 'worker 0 is a straggler'
verdict $? "a straggler is named, and nobody else, where gradients are many parts" "$(tails lagging)"
delay lagging 1 86400000
kill -TERM "${pids[1]}" # it abandons its step, for whose gradients the chief waits before it asks for anything else
until_true 60 says lagging 'waiting for worker 1 (left by request'
verdict $? "one that abandons its step is missed at once" "$(tails lagging)"
end_crew KILL
undelay lagging
