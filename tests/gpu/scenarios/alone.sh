# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A single worker with a GPU trains, goes on from its checkpoint, abandons a step that does not end, and moves to the CPU and
# back.
reference alone && grep -q '^crew .*GPU 0, ' alone.log
verdict $? "a worker trains on a GPU" "$(tail -n 2 alone.log)"

job begun 8 GPU OneDevice begun && lone begun && job ended 12 GPU OneDevice begun && lone ended
verdict $? "goes on from a checkpoint" "$(tail -n 2 ended.log)"
cmp alone.safetensors ended.safetensors
verdict $? "with the bits of a run that was not cut"
# The sixth batch is read during a step of the device, and does not come.
job left 12 GPU OneDevice left
echo 0 0 0 0 0 86400000 >left.delay
(
    set_up left 0
    COXSWAIN_GRACE_SECONDS=2 launch left left.log
) &
until_true 60 grep -qs '^share [^ ]* [^ ]* 4 ' left.0.record
kill -TERM $!
await $!
[[ $? == 143 ]] && grep -q "left on request: step 5 of 12 did not end .* was abandoned" left.log && (($(saved_step left) == 4))
verdict $? "a step that does not end is abandoned, and the boundary saved" "$(tail -n 2 left.log) $(ls left)"
rm left.delay
lone left && same_weights left alone
verdict $? "and a later start ends in the same bits" "$(tail -n 2 left.log)"

job moved 16 CPU OneDevice begun && lone moved && grep -q 'step 16/16' moved.log
verdict $? "the CPU goes on from a GPU's checkpoint" "$(tail -n 2 moved.log)"
job back 20 GPU OneDevice begun && lone back && grep -q 'step 20/20' back.log
verdict $? "and a GPU from the CPU's" "$(tail -n 2 back.log)"
