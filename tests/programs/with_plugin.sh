# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # $root is the caller's, and what is set here is for the caller
#
# Prepares a script whose workers compute through PJRT plugins. Source it first, with `root` set to the sources and BUILD to the ordinary
# build; the one with XLA=1 lies below it. Sets `newer` and `older` (the plugins' paths) and what by_hand.sh sets. Ends the script, with a
# line that counts as skipped, where the packages cannot be had.

. "$root/tests/integration/verdict.sh"

skip() {
    echo "skip programs: $1"
    exit 0
}

plain=$(realpath "${BUILD:?}")
packages=$("$root/scripts/python-environment" "$root/python/requirements-test.txt" "$root/tests/programs/requirements.txt") ||
    skip "their Python packages cannot be had"
"$root/scripts/pjrt-header" >/dev/null || skip "the header of PJRT cannot be had"
plugins=$(echo "$packages"/lib/python*/site-packages)
newer=$plugins/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so older=$plugins/fastatomstruct_xla_cpu/libpjrt_cpu.so
make_log=$(mktemp)
export BUILD=$plain/xla
"$root/tests/gpu/build" "$plain" XLA=1 BUILD="$BUILD" "$BUILD/coxswain-worker" >"$make_log" 2>&1
verdict $? "compiles with XLA=1" "$(grep -E 'error|Error' "$make_log" | head -n 5)"
rm -f "$make_log"
[[ -x $BUILD/coxswain-worker ]] || exit 1
. "$root/tests/integration/by_hand.sh"
export COXSWAIN_PJRT_PLUGIN=$newer

# python SCRIPT ARGUMENT…
python() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/python JAX_PLATFORMS=cpu KERAS_BACKEND=jax "$packages/bin/python" "$@"
}

# killed NAME REFERENCE: a process that trains NAME.yaml is killed once it has saved, and another one goes on
killed() {
    local victim hit
    echo 40 >"$1.delay"
    launch "$1" "$1.log" &
    victim=$!
    until_true 30 has_saved "$1"
    kill -KILL "$victim" 2>/dev/null
    wait "$victim" 2>/dev/null
    hit=$?
    undelay "$1"
    ((hit == 137)) && lone "$1" && same_weights "$1" "$2" && ! grep -q 'step *5/30' "$1.log"
    verdict $? "$1, by one process: killed and started again: the same bits" "it ended with $hit; $(tail -n 1 "$1.log")"
}

# lost NAME WORKERS REFERENCE: worker 1 of the crew that trains NAME.yaml is killed once it has saved, and another one takes its place
lost() {
    local i
    for ((i = 0; i < $2; i++)); do delay "$1" "$i" 40; done
    start_crew "$1" "$2"
    until_true 30 has_saved "$1"
    lose 1
    undelay "$1"
    start_member "$1" worker 1 1
    await_crew && same_weights "$1" "$3"
    verdict $? "$1: one of $2 workers is killed and replaced: the same bits" "$(tails "$1")"
}
