# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# GPUs and drivers that fail. Emulated only.

# dies_of CUDA_ERROR CODE WORDS: the GPU has this error during a worker's steps
dies_of() {
    local name=error-$1${EMULATED_FAULT_SEEN_BY:+-by-$EMULATED_FAULT_SEEN_BY}
    job "$name" 1000000 GPU OneDevice "$name"
    EMULATED_FAULT=$1 refused "$2" "$3" "$name"
}
dies_of 214 162 'uncorrectable ECC error.*/cuda_[a-z]*.c:[0-9]*, CUDA error 214); another GPU may do'
dies_of 719 162 'unspecified launch failure.*another GPU may do'
dies_of 700 70 'illegal memory access.*CUDA error 700); this is a bug of the worker'
EMULATED_FAULT_SEEN_BY=cublas EMULATED_FAULT_GRID=3 dies_of 700 70 'this is a bug of the worker'
EMULATED_FAULT_SEEN_BY=cublas EMULATED_FAULT_GRID=3 dies_of 214 162 'another GPU may do'
dies_of 801 70 'operation not supported.*this is a bug of the worker'
job unready 4 GPU OneDevice unready
EMULATED_DRIVER_FAULT=802 refused 162 'looking for GPUs.*cudaGetDeviceCount at .*CUDA error 802); another GPU may do' unready
job mismatched 4 Auto OneDevice mismatched
EMULATED_DRIVER_FAULT=803 refused 162 'looking for GPUs.*CUDA error 803); another GPU may do' mismatched
