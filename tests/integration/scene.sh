# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $root is the caller's
#
# The environment of scripts that drive the embedded control plane. Source this file first, with `root` set to the sources.
# It sets `bin` (the build directory) and `work`, a directory of the script's own, which is the working directory, and
# sources plane.sh. Everything is removed at the end; a script with more to end defines finish_also. Without curl, the
# script prints a skip line and ends.

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
