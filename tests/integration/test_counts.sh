#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tests/run counts as a failure: what a sanitizer reports, also beside a case that fails and passes when it is tried again.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=tests/integration/verdict.sh
. "$root/tests/integration/verdict.sh"

# program NAME LINE…: prints these lines
program() {
    printf '#!/bin/sh\n' >"$work/$1"
    printf "echo '%s'\n" "${@:2}" >>"$work/$1"
    chmod +x "$work/$1"
}
readonly LEAK='SUMMARY: ThreadSanitizer: thread leak'
program fine 'ok one' 'skip two: not here'
program failing 'ok one' 'not ok two: why'
program leaking 'ok one' "$LEAK"
program both 'ok one' 'not ok two: why' "$LEAK"

# counts PROGRAM SUMMARY: the last line of tests/run
counts() {
    out=$(TEST_RETRIES=${retries:-0} "$root/tests/run" "$work/$1" 2>&1)
    [[ $(tail -n 1 <<<"$out") == "$2" ]]
}
counts fine '1 passed, 0 failed, 1 skipped'
verdict $? "a program that passes" "$out"
counts failing '1 passed, 1 failed'
verdict $? "a case that fails" "$out"
counts leaking '1 passed, 1 failed'
verdict $? "a sanitizer's report without a case that fails" "$out"
counts both '1 passed, 2 failed'
verdict $? "a sanitizer's report beside a case that fails" "$out"
retries=1 counts both '1 passed, 2 failed'
verdict $? "and when it is tried again" "$out"
