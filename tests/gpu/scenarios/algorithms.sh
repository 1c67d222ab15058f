# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Of cuBLASLt's algorithms for a shape the chief measures the quickest, its crew takes it, and checkpoints keep it: emulated, where
# EMULATED_LT_QUICKEST says which it is, and each sums in an order of its own. A process that asked its own library would have
# other bits.
export COXSWAIN_GPU_LT=measured

# own_quickest NUMBER…: what each worker would measure, by its place
own_quickest() {
    quickest=("$@")
}
set_up() {
    give_gpus "$@"
    export COXSWAIN_RECORD=$work/$1.$2.record EMULATED_LT_QUICKEST="${quickest[$2]-}"
    [[ ${rejecting-} != "$2" ]] || export EMULATED_LT=rejects
}
heard() {
    grep -q "$2" "$1.log"
}
# meets_a_refuser NAME WORKERS: after four steps worker 1 is lost, and whoever comes in its place cannot compute by the crew's
meets_a_refuser() {
    local rejecting=
    unsaved "$1"
    hold "$1" 1 5
    start_crew "$1" "$2"
    until_true 60 at_step "$1" 4
    lose 1
    rejecting=1
    undelay "$1"
    start_member "$1" worker 1 1
    await_crew && says "$1" 'all go by what the libraries take first, and the bits may differ from here on'
}

job first 8 GPU OneDevice first && COXSWAIN_GPU_LT=1 lone first
verdict $? "products by what cuBLASLt names first, to compare with" "$(tail -n 2 first.log)"
own_quickest 2
job alone 8 GPU OneDevice alone && lone alone && ! same_weights alone first &&
    heard alone ' shapes of products are measured in .* for [1-9][0-9]* cuBLASLt 130100 has quicker algorithms' &&
    close_to "$(losses alone.log)" "$(losses first.log)"
verdict $? "by what is measured: other bits, and much the same loss" "$(tail -n 2 alone.log)"
own_quickest 0
job same 4 GPU OneDevice same && lone same && heard same 'for 0 cuBLASLt' && job same 8 GPU OneDevice same && COXSWAIN_GPU_LT=1 lone same && same_weights same first
verdict $? "where that is what cuBLASLt names first, its bits" "$(tail -n 2 same.log)"

own_quickest 2
job tick 1 GPU OneDevice tick && EMULATED_LT_MS=0.0024 lone tick && heard tick 'for 0 cuBLASLt'
verdict $? "also where another is quicker by less than the host's launches may differ" "$(tail -n 2 tick.log)"
shapes=$(sed -n 's/.*\<\([0-9]*\) shapes of products are measured.*/\1/p' alone.log)
job brief 1 GPU OneDevice brief && EMULATED_LT_MS=500 lone brief && heard brief '\<1 shapes of products are measured in .* for 0 cuBLASLt' &&
    heard brief "for $((shapes - 1)) shapes of products no time or room was left"
verdict $? "when its time is over no other algorithm is tried, and each shape that is left is counted once" "$(tail -n 2 brief.log)"

precision=bfloat16
job halves 8 GPU OneDevice halves && lone halves && heard halves 'for [1-9][0-9]* cuBLASLt' &&
    grep -rqE '"product": ?\[[^]]*, ?16[04]\]' halves # by its epilogue (cublasLt.h)
verdict $? "in bfloat16, GELUs included" "$(tail -n 2 halves.log)"
precision=float16
job fewer 4 GPU OneDevice fewer && lone fewer && job few 8 GPU OneDevice fewer && lone few && heard few 'all goes by the first algorithms of cuBLASLt 130100, as the checkpoint' &&
    ! heard few 'measured'
verdict $? "where nothing is found the checkpoint says that, and a run that goes on neither measures nor warns" "$(tail -n 2 few.log)"
precision=
job half 4 GPU OneDevice half && lone half
own_quickest 1
job rest 8 GPU OneDevice half && lone rest && same_weights rest alone && heard rest 'algorithms of cuBLASLt 130100 are the checkpoint.s' &&
    ! heard rest 'are measured'
verdict $? "a run that goes on takes its checkpoint's: the bits of one that was not cut" "$(tail -n 2 rest.log)"
job newer 9 GPU OneDevice half && EMULATED_LT_VERSION=130200 lone newer && heard newer 'they are for cuBLASLt 130100 on .*, and here is cuBLASLt 130200' &&
    heard newer 'measured anew, and the bits may differ from here on' && heard newer 'shapes of products are measured'
verdict $? "not with another version of the library, and says so" "$(tail -n 2 newer.log)"
job other 10 GPU OneDevice half && EMULATED_LT_VERSION=130200 EMULATED_NAME='another GPU' lone other && heard other 'and here is cuBLASLt 130200 on another GPU'
verdict $? "nor on another GPU" "$(tail -n 2 other.log)"
job plain 1 GPU OneDevice plain && COXSWAIN_GPU_LT=1 lone plain && job later 2 GPU OneDevice plain && lone later &&
    heard later 'says of no algorithm' && heard later 'was computed with sm_90+l arithmetic, and this worker has sm_90+m:'
verdict $? "and what was computed by none goes on by what is measured, which is said" "$(tail -n 2 later.log)"

job scarce 8 GPU OneDevice scarce && echo 'evaluate: {everySteps: 4}' >>scarce.yaml && sed -i 's/examples: 64/examples: 72, validation: {last: 8}/' scarce.yaml
EMULATED_LT=exhausted lone scarce && heard scarce 'cannot be measured (.*: they are those that the libraries take first' && same_weights scarce first
verdict $? "where memory is too short for measuring all is computed by what it names first" "$(tail -n 2 scarce.log)"
job scant 9 GPU OneDevice alone && EMULATED_LT=exhausted lone scant && heard scant 'cannot be taken (.*CUBLAS_STATUS_ALLOC_FAILED' && ! heard scant 'refuses'
verdict $? "and for asking whether a checkpoint's can be taken: that is told, and no refusal" "$(grep taken scant.log)"

own_quickest 2 1 3
for collective in Hierarchical NCCL; do
    job "crew-$collective" 8 GPU MultiWorkerMirrored "crew-$collective" "$collective" && crew "crew-$collective" 2 && same_weights "crew-$collective" alone &&
        says "crew-$collective" 'shapes of products are measured' && ! heard "crew-$collective.1" 'are measured'
    verdict $? "$collective: a crew whose workers would measure other ones computes by the chief's, to the bits of one worker" "$(tails "crew-$collective")"
done
if can_have 2 "measured algorithms on two GPUs of a worker"; then
    job mates 8 GPU Mirrored mates Auto Crew 2 2 && lone mates && same_weights mates alone
    verdict $? "two GPUs in a worker: the bits of one" "$(tail -n 2 mates.log)"
fi
if can_have 2 "measured algorithms that one of two GPUs of a worker refuses"; then
    job apart 8 GPU Mirrored apart Auto Crew 2 2 && EMULATED_LT_REJECTS=1 lone apart && same_weights apart first &&
        heard apart 'not all GPUs of this worker can compute .*refuses that of the product of .*: they are those that the libraries take first'
    verdict $? "which one of them refuses: both compute by what it names first" "$(tail -n 2 apart.log)"
fi
job stages 8 GPU Pipeline stages && sed -i 's/^strategy: {/workers: 2\n&stages: 2, /' stages.yaml && crew stages 2 && same_weights stages alone
verdict $? "stages of a Pipeline: the bits of one GPU" "$(tails stages)"
if can_have 2 "measured algorithms in stages on two GPUs of a worker"; then
    job parts 8 GPU Pipeline parts Auto Crew 2 2 && sed -i 's/^strategy: {/&stages: 2, /' parts.yaml && lone parts && same_weights parts alone
    verdict $? "also of one worker" "$(tail -n 2 parts.log)"
fi

job heirs 16 GPU MultiWorkerMirrored heirs Hierarchical && unsaved heirs
job whole 16 GPU OneDevice whole && lone whole
hold heirs 1 12
start_crew heirs 2
until_true 60 at_step heirs 2
lose 0
own_quickest 3 1 # whoever comes in the chief's place
undelay heirs
start_member heirs worker 0 1
await_crew && same_weights heirs whole && grep -q 'shapes of products' heirs.0.log
verdict $? "a new chief measures, and takes those by which the crew has trained: the bits are as if nobody had been lost" "$(tails heirs)"

own_quickest 2 2
rejecting=1
job torn 8 GPU MultiWorkerMirrored torn Hierarchical && crew torn 2 && same_weights torn first &&
    says torn "1 of the crew's workers cannot compute by the algorithms" &&
    heard torn.1 'refuses that of the product of .*all workers go by what the libraries take first'
verdict $? "where one of them cannot compute by it, all compute by what cuBLASLt names first" "$(tails torn)"
rejecting=
job mended 9 GPU OneDevice torn && lone mended && heard mended 'first algorithms of .*, as the checkpoint' && ! heard mended 'measured'
verdict $? "and whoever goes on from their checkpoint does so, too" "$(tail -n 2 mended.log)"
job begun 4 GPU OneDevice begun && lone begun && job ended 8 GPU OneDevice begun && COXSWAIN_GPU_LT=1 lone ended && ! same_weights ended alone
verdict $? "four steps by measured ones, and four by the others, to compare with" "$(tail -n 2 ended.log)"
job fallen 8 GPU MultiWorkerMirrored fallen Hierarchical && meets_a_refuser fallen 2 && same_weights fallen ended
verdict $? "also where who cannot comes later: what was recorded of launches is forgotten" "$(tails fallen)"
# four_shards NAME STEPS STRATEGY FOLDER [SETTING…]
four_shards() {
    job "$1" "$2" GPU "$3" "$4" Auto Crew 4
    sed -i "s/^strategy: {/&${5-}/" "$1.yaml"
}
four_shards lot 4 OneDevice lot && lone lot && four_shards rest4 8 OneDevice lot && COXSWAIN_GPU_LT=1 lone rest4
verdict $? "of four shards, to compare with" "$(tail -n 2 rest4.log)"
four_shards zero 8 MultiWorkerMirrored zero 'shardedOptimizer: true, ' && meets_a_refuser zero 3 && same_weights zero rest4
verdict $? "and where three share the optimizer's slots, which they keep" "$(tails zero)"
own_quickest 2 1 3
rounds near NCCL && rounds far Hierarchical && crew near 3 && crew far 3 && same_weights near far && says near 'shapes of products are measured' && ! heard near.2 'are measured'
verdict $? "local steps of three workers, by the chief's" "$(tails near)"
unset COXSWAIN_GPU_LT
