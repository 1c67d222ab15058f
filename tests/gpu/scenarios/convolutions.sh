# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Convolutions by cuDNN if a worker asks for it, and by our kernels if cuDNN has no algorithm for
# them. Emulated only.

# by_dnn NAME: runs a worker with a convolution that asks for cuDNN
by_dnn() {
    varied "$1" 12 "$1"
    COXSWAIN_GPU_DNN=1 lone "$1"
}
varied ours 12 ours && lone ours
by_dnn theirs && ! same_weights theirs ours && close_to "$(losses theirs.log)" "$(losses ours.log)"
verdict $? "cuDNN computes convolutions: much the same loss, other weights" "$(tail -qn 1 ours.log theirs.log)"
COXSWAIN_GPU_GRAPHS=0 by_dnn singly && same_weights singly theirs
verdict $? "and launch by launch the same" "$(tail -n 1 singly.log)"
EMULATED_DNN=uncaptured by_dnn uncaptured && grep -q 'operation by operation, since they could not be recorded' uncaptured.log &&
    same_weights uncaptured theirs
verdict $? "also where it takes part in no recording" "$(tail -n 1 uncaptured.log)"
for what in none refuses greedy; do
    EMULATED_DNN=$what by_dnn "$what" && same_weights "$what" ours
    verdict $? "where it has nothing for them ($what) they have the bits of ours" "$(tail -n 1 "$what.log")"
done
varied torn 12 torn
COXSWAIN_GPU_DNN=1 EMULATED_DNN=torn refused 69 'cuDNN: .*install all libraries of one cuDNN 9' torn
varied broken 12 broken
COXSWAIN_GPU_DNN=1 EMULATED_DNN=broken refused 162 'cuDNN: .*another GPU may do' broken
varied on 16 theirs && lone on && grep -q 'was computed with sm_90+d.*92801 arithmetic, and this worker has sm_90:' on.log
verdict $? "a run that goes on without cuDNN warns that the bits may differ" "$(tail -n 2 on.log)"
