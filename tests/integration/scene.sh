# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $root is the caller's
#
# Where a script that drives the embedded control plane plays: source this file first, with `root` set to the sources. Sets
# `bin` (the build directory) and `work`, a directory of the script's own, which is the working directory, and brings
# plane.sh. All goes at the end; whoever has more to end defines finish_also. Without curl the script says so and is over.

if ! command -v curl >/dev/null; then
    echo "skip $(basename "$0" .sh | sed 's/^test_//'): curl is not installed"
    exit 0
fi
bin=$(cd "${BUILD:?}" && pwd)
work=$(mktemp -d)
export TMPDIR=$work # of pods, too, which stay behind when a control plane is killed

finish_also() {
    :
}

finish() {
    finish_also
    plane_stop
    rm -rf "$work"
}

trap finish EXIT
cd "$work" || exit 1
. "$root/tests/integration/plane.sh"
