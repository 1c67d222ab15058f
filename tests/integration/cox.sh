# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $work and $cox_command are the caller's
#
# cox as a person runs it, for scripts that source this file with `cox_command` (how it is called, an array) and `work` (a
# directory of their own) set.

# cox CODE WORD…: fails unless cox ends with CODE. Its output is in $work/out and $work/err.
cox() {
    local wanted=$1 code=0
    shift
    "${cox_command[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    ((code == wanted)) && return
    echo "# cox $*: exit code $code, not $wanted: $(said)"
    return 1
}

# printed TEXT…: each stands in the output, as basic regular expressions
printed() {
    local text
    for text in "$@"; do
        grep -q -- "$text" "$work/out" || return
    done
}

said() {
    cat "$work/out" "$work/err"
}
