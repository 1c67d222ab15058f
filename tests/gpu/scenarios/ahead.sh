# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A GPU that runs step after step without waiting for the host.
reference slow
varied fast 26 fast && lone fast
verdict $? "a GPU goes from step to step by itself" "$(tail -n 2 fast.log)"
same_weights fast slow && [[ $(losses fast.log) == "$(losses slow.log)" ]]
verdict $? "with the bits of one that waits for the host"
varied singly 26 singly && COXSWAIN_GPU_GRAPHS=0 lone singly && same_weights singly slow && ! grep -q warning fast.log
verdict $? "in CUDA graphs or launch by launch" "$(tail -n 2 singly.log)"
if plays_gpus; then
    varied anyhow 26 anyhow && EMULATED_CAPTURE=fails lone anyhow && same_weights anyhow slow && grep -q 'previous error during capture' anyhow.log
    verdict $? "and where nothing can be captured, and says so" "$(tail -n 2 anyhow.log)"
fi
# half NAME: runs `varied` in bfloat16
half() {
    varied "$1" 26 "$1" && sed -i 's/seed: 7,/seed: 7, precision: BFloat16,/' "$1.yaml" && lone "$1"
}
half half-fast && COXSWAIN_GPU_AHEAD=0 half half-slow && same_weights half-fast half-slow && ! same_weights half-fast fast && ! grep -q warning half-fast.log
verdict $? "the same in bfloat16" "$(tail -n 2 half-fast.log)"
varied begun-fast 8 begun-fast && lone begun-fast && varied ended-fast 26 begun-fast && lone ended-fast && same_weights ended-fast slow
verdict $? "and goes on from a checkpoint with them" "$(tail -n 2 ended-fast.log)"

# diverges NAME: its learning rate is too high
diverges() {
    varied "$1" 26 "$1" 1000
    sed -i -e 's/layers: .*, loss/layers: [{type: Flatten}, {type: Dense, units: 32}, {type: ReLU}, {type: Dense, units: 32}, {type: ReLU}, {type: Dense, units: 10}], loss/' -e 's/gradientClipNorm: "0.5", //' -e 's/everySteps: 5/everySteps: 100/' "$1.yaml"
    lone "$1"
    [[ $? == 71 ]] && tail -n 1 "$1.log" | grep -q 'loss of step'
}
diverges wild && COXSWAIN_GPU_AHEAD=0 diverges tame && [[ $(tail -n 1 wild.log) == "$(tail -n 1 tame.log)" ]]
verdict $? "exit 71: a step with a loss that is not finite, and no later one" "$(tail -qn 1 wild.log tame.log)"
