# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For scripts that check something: wait until it holds, and report whether it does, as tests/run counts it.

# until_true SECONDS COMMAND…: waits until the command succeeds, up to SECONDS on an idle machine and four times as long on a busy
# one. After a while it tries less often, because each try starts several processes.
until_true() {
    local end=$((SECONDS + 4 * $1 + 1)) looks=0 pause=0.05
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        if ((++looks == 40)); then pause=0.2; fi
        sleep "$pause"
    done
}

# have_ended PID…: children of the script
have_ended() {
    ! kill -0 "$@" 2>/dev/null
}

# verdict $? NAME [WHY]: reports that status. Given as a word, since $(…) in WHY sets $? anew.
verdict() {
    if (($1 == 0)); then echo "ok $2"; else echo "not ok $2${3:+: $3}"; fi
}

# contains [OPTION…] PATTERN: whether the input has a line that matches, as grep -q says; but it reads the whole input. Once grep -q has
# found a line and ended, SIGPIPE may end the program that writes to it, and with pipefail the pipeline fails although the line is there.
contains() {
    (($(grep -c "$@") > 0))
}
