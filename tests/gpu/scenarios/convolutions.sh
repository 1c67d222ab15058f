# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Convolutions by cuDNN where a worker asks for it, and by us where it has nothing for them: emulated.

# by_dnn NAME: a worker with a convolution that asks for cuDNN
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
verdict $? "who goes on without it says that the bits may differ" "$(tail -n 2 on.log)"

# ---- the quickest of its algorithms, measured by the chief: EMULATED_DNN_QUICKEST says which these are

# deep NAME STEPS FOLDER [STRATEGY]: two layers of convolutions, of which one goes back to its input
deep() {
    varied "$1" "$2" "$3"
    sed -i "s/{type: batchNorm}/{type: conv2d, filters: 4, kernel: 3}/; s/OneDevice/${4-OneDevice}/" "$1.yaml"
}
set_up() {
    give_gpus "$@"
    export COXSWAIN_RECORD=$work/$1.$2.record EMULATED_DNN_QUICKEST="${quickest[$2]-111}"
    [[ ${rejecting-} != "$2" ]] || export EMULATED_DNN=rejects
}
deep fixed 8 fixed && COXSWAIN_GPU_DNN=1 lone fixed
verdict $? "convolutions by fixed algorithms, to compare with" "$(tail -n 2 fixed.log)"
export COXSWAIN_GPU_DNN=measured
quickest=(755)
deep quick 8 quick && lone quick && ! same_weights quick fixed && close_to "$(losses quick.log)" "$(losses fixed.log)" &&
    grep -q '\<5 shapes of convolutions are measured in .* for 5 cuDNN 92801 has quicker algorithms' quick.log &&
    ! grep -q 'shapes of products' quick.log && grep -rq '"convolution": \?\[' quick
verdict $? "by what is measured: other bits, and much the same loss" "$(tail -n 2 quick.log)"
deep uneven 4 uneven && sed -i 's/logicalShards: 2/logicalShards: 3/' uneven.yaml && grep -q "logicalShards: 3" uneven.yaml && lone uneven &&
    grep -q '\<5 shapes of convolutions are measured' uneven.log
verdict $? "passes of other sizes are no other shapes" "$(tail -n 2 uneven.log)"
deep again 8 again && lone again && same_weights again quick
verdict $? "none that adds in any order, wants too much workspace or is refused: the same bits again" "$(tail -n 2 again.log)"
quickest=(111)
deep alike 8 alike && lone alike && grep -q 'for 0 cuDNN' alike.log && same_weights alike fixed
verdict $? "where those are the fixed ones, their bits" "$(tail -n 2 alike.log)"
quickest=(755)
deep tick 1 tick && EMULATED_DNN_MS=0.0024 lone tick && grep -q 'for 0 cuDNN' tick.log
verdict $? "also where others are quicker by less than the host's launches may differ" "$(tail -n 2 tick.log)"
deep brief 1 brief && EMULATED_DNN_MS=500 lone brief && grep -q '\<1 shapes of convolutions .* for 0 cuDNN' brief.log &&
    grep -q 'for 4 shapes of convolutions no time or room was left' brief.log
verdict $? "when the time is over no other is tried" "$(tail -n 3 brief.log)"
deep half 4 half && lone half && quickest=(111) && deep rest 8 half && lone rest && same_weights rest quick &&
    grep -q '5 algorithms of cuDNN 92801 are the checkpoint.s' rest.log && ! grep -q 'are measured' rest.log
verdict $? "a run that goes on takes its checkpoint's: the bits of one that was not cut" "$(tail -n 2 rest.log)"
deep half 4 refusing && quickest=(755) && lone half && cp -r refusing fixed_on &&
    deep refusing 8 refusing && EMULATED_DNN=stubborn lone refusing && deep fixed_on 8 fixed_on && COXSWAIN_GPU_DNN=1 lone fixed_on &&
    same_weights refusing fixed_on && ! same_weights refusing quick
verdict $? "what refuses to be launched after all leaves its place to the fixed ones" "$(tail -n 2 refusing.log)"
deep newer 9 half && EMULATED_DNN_VERSION=92900 lone newer && grep -q 'they are for cuDNN 92801 on .*, and here is cuDNN 92900' newer.log &&
    grep -q 'measured anew, and the bits may differ' newer.log && grep -q 'was computed with sm_90+m92801 arithmetic, and this worker has sm_90+m92900:' newer.log
verdict $? "not with another version of the library, and says so" "$(tail -n 2 newer.log)"
quickest=(755)
deep joint 4 joint && COXSWAIN_GPU_LT=measured EMULATED_LT_QUICKEST=2 lone joint && grep -q 'shapes of products are measured in .* for [1-9][0-9]* cuBLASLt 130100 has' joint.log &&
    grep -q '5 shapes of convolutions are measured' joint.log && quickest=(111) && deep joined 8 joint && COXSWAIN_GPU_LT=measured lone joined &&
    grep -q 'algorithms of cuBLASLt 130100 and cuDNN 92801 are the checkpoint.s' joined.log && quickest=(755) &&
    deep united 8 united && COXSWAIN_GPU_LT=measured EMULATED_LT_QUICKEST=2 lone united && same_weights united joined && ! same_weights united quick
verdict $? "together with products: one record of both, which a run that goes on takes" "$(tail -n 2 joined.log)"
quickest=(755 051)
deep pair 8 pair 'MultiWorkerMirrored, collective: Hierarchical' && crew pair 2 && same_weights pair quick && says pair 'shapes of convolutions are measured' &&
    ! grep -q 'are measured' pair.1.log
verdict $? "a crew whose workers would measure other ones computes by the chief's, to the bits of one worker" "$(tails pair)"
rejecting=1
deep torn_off 8 torn_off 'MultiWorkerMirrored, collective: Hierarchical' && crew torn_off 2 && same_weights torn_off fixed &&
    says torn_off "1 of the crew's workers cannot compute by the algorithms" &&
    grep -q 'refuses that of the convolution of .*all workers go by what the libraries take first' torn_off.1.log
verdict $? "where one of them cannot compute by it, all compute by the fixed ones" "$(tails torn_off)"
rejecting=
quickest=(755)
deep apart 8 apart Mirrored && sed -i 's/{type: GPU}/{type: GPU, count: 2}/' apart.yaml && EMULATED_DNN_REJECTS=1 lone apart && same_weights apart fixed &&
    grep -q 'not all GPUs of this worker can compute .*refuses that of the convolution' apart.log
verdict $? "nor by what one of two GPUs of a worker refuses" "$(tail -n 2 apart.log)"
unset COXSWAIN_GPU_DNN
