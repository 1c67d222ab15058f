# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# ParameterServer: workers on GPUs. Servers, and a separate chief, are on CPUs.
reference single
export EMULATED_PAGEABLE=refused # pinned memory is what is copied

# served NAME DEVICE MODE [DEVICES]
served() {
    job "$1" 20 "$2" ParameterServer "$1" Auto Crew 4 "${4:-1}"
    sed -i "s/^strategy: {.*/strategy: {type: ParameterServer, mode: $3}/" "$1.yaml"
}

served served GPU Synchronous
crew served 2 2 && close_to "$(losses single.log)" "$(losses served.0.log)"
verdict $? "ParameterServer: two workers on GPUs copy by pinned memory, close to one" "$(tails served)"
if can_have 2 "ParameterServer with two GPUs a worker"; then
    served shared GPU Synchronous 2
    crew shared 2 2 && same_weights shared served
    verdict $? "two GPUs a worker compute a share together, the bits of one a worker" "$(tails shared)"
    served dispersed GPU Async 2
    crew dispersed 2 1 && says dispersed 'step 20/20'
    verdict $? "and each at its own pace" "$(tails dispersed)"
fi
unset EMULATED_PAGEABLE

served led GPU Async $((gpu_count < 2 ? 1 : 2))
sed -i 's/examples: 64/examples: 64, validation: {last: 8}/' led.yaml
cluster="{\"chief\":$(hosts 201 1),\"worker\":$(hosts 1 1),\"ps\":$(hosts 101 1),\"evaluator\":$(hosts 251 1)}"
pids=()
start_member led ps 0
start_member led chief 0
start_member led worker 0
start_member led evaluator 0
await "${pids[200]}" && until_true 60 grep -q 'validation after step 20' led.evaluator.log && grep -q 'crew .* CPU' led.chief.log
verdict $? "a chief of its own leads them from its CPU, an evaluator scores on a GPU" "$(tails led)"
end_crew KILL
