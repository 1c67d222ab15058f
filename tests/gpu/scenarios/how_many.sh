# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# A worker on a machine with fewer GPUs than its job asks for, or with drivers and libraries that are missing or too old.
# Emulated only.

# on_cpu NAME WORDS: Auto has taken the CPU for all devices, because of WORDS, and has trained
on_cpu() {
    (($(grep -c "devices.type Auto takes the CPU: $2" "$1.log") == 1)) && grep -q '^crew .* CPU' "$1.log" && grep -q '^step .*20/20' "$1.log"
}

job either 20 Auto Mirrored either Auto Crew 4 4
lone either && grep -q '4 devices each: GPU' either.log && ! grep -q 'takes the CPU' either.log
verdict $? "Auto takes the GPUs where there are as many as are asked for" "$(tail -n 2 either.log)"
rm -r either
EMULATED_GPUS=2 lone either && on_cpu either 'there are only 2 of the 4 GPUs that devices.count asks for'
verdict $? "with fewer all devices are the CPU's, and it says so" "$(tail -n 2 either.log)"
job instead 20 CPU Mirrored instead Auto Crew 4 4 && lone instead && same_weights either instead
verdict $? "with the bits of devices.type CPU"
rm -r either
EMULATED_GPUS=0 lone either && on_cpu either 'no NVIDIA GPU can be used here (none is visible)'
verdict $? "without any" "$(tail -n 2 either.log)"
rm -r either
EMULATED_DRIVER=12080 lone either && on_cpu either 'the NVIDIA driver is too old: it is for CUDA 12.8, and this worker was built with CUDA 13.0'
verdict $? "with too old a driver" "$(tail -n 2 either.log)"
rm -r either
EMULATED_DRIVER=0 lone either && on_cpu either 'no NVIDIA GPU can be used here (there is no driver)'
verdict $? "without one" "$(tail -n 2 either.log)"
rm -r either
EMULATED_GPUS=1 LD_LIBRARY_PATH=$work lone either && on_cpu either 'there is only 1 of the 4 GPUs'
verdict $? "what is missing first is said first" "$(tail -n 2 either.log)"
rm -r either
LD_LIBRARY_PATH=$work lone either && on_cpu either 'there is a GPU, but no libcublas'
verdict $? "and without cuBLAS, which is found missing once a GPU is open" "$(tail -n 2 either.log)"
mkdir halves
ln -s "$BUILD/libcublas.so.0" halves/
job half 8 GPU OneDevice half
COXSWAIN_GPU_LT=1 LD_LIBRARY_PATH=$work/halves refused 69 'there is a GPU, but no libcublasLt.so.0: install cuBLAS' half
LD_LIBRARY_PATH=$work/halves lone half
verdict $? "and without COXSWAIN_GPU_LT=1 there is no need of cuBLASLt" "$(tail -n 2 half.log)"
ln -s "$BUILD/libcublasLt.so.0" halves/
COXSWAIN_GPU_DNN=1 LD_LIBRARY_PATH=$work/halves refused 69 'COXSWAIN_GPU_DNN asks for cuDNN, and there is no libcudnn.so.0: install cuDNN 9' half
COXSWAIN_GPU_DNN=1 EMULATED_DNN_VERSION=8907 refused 69 'the cuDNN of this machine calls itself 8907; install cuDNN 9' half
job both 8 GPU OneDevice both && COXSWAIN_GPU_LT=1 COXSWAIN_GPU_DNN=1 lone both && job neither 12 GPU OneDevice both && lone neither &&
    grep -q 'was computed with sm_90+d92801+l arithmetic, and this worker has sm_90: ' neither.log
verdict $? "a checkpoint tells which of cuDNN and cuBLASLt computed" "$(tail -n 2 neither.log)"
job alike 20 Auto PeerToPeer alike Auto Crew 4 2
lone alike && grep -q '2 devices each: GPU' alike.log && ! grep -q 'takes the CPU' alike.log && grep -q '^step .*20/20' alike.log
verdict $? "but two for a peer" "$(tail -n 2 alike.log)"
job halved 20 Auto Pipeline halved Auto Crew 4 2
sed -i 's/^strategy: {/&stages: 2, /' halved.yaml
lone halved && grep -q '2 devices each: GPU' halved.log && ! grep -q 'takes the CPU' halved.log && grep -q '^step .*20/20' halved.log
verdict $? "and two for two stages" "$(tail -n 2 halved.log)"
varied global 26 global && sed -i 's/{type: BatchNorm}/{type: BatchNorm, statistics: Global}/; s/type: GPU/type: Auto/' global.yaml
lone global && grep -q 'takes the CPU: statistics: Global' global.log && grep -q 'step 26/26' global.log
verdict $? "and the CPU where they could not compute such a model" "$(tail -n 2 global.log)"
job fixed 20 GPU Mirrored fixed Auto Crew 4 4
EMULATED_GPUS=2 refused 69 'devices.type: there are only 2 of the 4 GPUs that devices.count asks for; write CPU or Auto' fixed
job bare 20 Auto OneDevice bare
EMULATED_DRIVER_FAULT=100 lone bare && on_cpu bare 'no NVIDIA GPU can be used here'
verdict $? "that there is none is no fault, and Auto goes on" "$(tail -n 2 bare.log)"
