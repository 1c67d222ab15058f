# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds with emulated GPUs, below the folder of the ordinary build, for the scripts that source this. The first script makes the
# build, and others wait for it.

# build_emulated LOG PROGRAM…: builds these programs and the libraries that they load; BUILD is the ordinary build's folder, and
# then that of this one
build_emulated() {
    local log=$1 plain programs status
    shift
    : "${BUILD:?the folder of the ordinary build}" # in a substitution it would end that alone
    plain=$(realpath "$BUILD") BUILD=$(realpath "$BUILD")/emulated
    programs=("${@/#/$BUILD/}")
    mkdir -p "$BUILD"
    flock "$BUILD/in-the-making" "$(dirname "${BASH_SOURCE[0]}")/build" "$plain" CUDA=emulated BUILD="$BUILD" "${programs[@]}" \
        "$BUILD/libcublas.so.0" "$BUILD/libcublasLt.so.0" "$BUILD/libcudnn.so.0" "$BUILD/libnccl.so.0" >"$log" 2>&1
    status=$?
    verdict "$status" "compiles for emulated GPUs" "$(grep -E 'error|Error' "$log" | head -n 5)"
    ((status == 0)) || exit 1
    export BUILD LD_LIBRARY_PATH=$BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
