# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sourced by what runs on GPUs that the processor plays. The build with them lies below the ordinary one, and whoever comes first
# makes it; who runs at the same time waits for that.

# build_emulated LOG PROGRAM…: these, and the libraries they look for; BUILD is the ordinary build's, and then that of these
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
