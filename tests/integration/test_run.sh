#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/run itself, on programs that say what Criterion binaries and scripts say. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/verdict.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# program NAME: what stands on the standard input is a program
program() {
    cat >"$1"
    chmod +x "$1"
}

# said WORDS…: each stands in what tests/run has said
said() {
    local words
    for words in "$@"; do
        grep -qF -- "$words" log || return
    done
}

program unit-hangs <<'SH'
#!/usr/bin/env bash
printf '[RUN ] pool::fills\n[PASS] pool::fills: (0.01s)\n[RUN ] pool::drains\n[RUN ] pool::rests\n[SKIP] pool::rests: not here\n'
exec sleep 600
SH
TEST_RETRIES=0 TEST_SECONDS=2 "$root/tests/run" ./unit-hangs >log
status=$?
[[ $status != 0 ]] && said 'unit-hangs: did not end within 2 s, with cases under way: pool::drains' '0 passed, 1 failed, 1 skipped'
verdict $? "a binary that hangs is told with the case that does" "$(tail -n 4 log | tr '\n' ' ')"

# The second time, and of one case, it succeeds.
program unit-shaky <<'SH'
#!/usr/bin/env bash
if [[ $* == *--filter\ pool/drains* ]]; then
    printf '[SKIP] pool::fills: Test is disabled\n[RUN ] pool::drains\n[PASS] pool::drains: (0.01s)\n'
    echo '[====] Synthesis: Tested: 1 | Passing: 1 | Failing: 0 | Crashing: 0'
    exit
fi
printf '[RUN ] pool::fills\n[PASS] pool::fills: (0.01s)\n[RUN ] pool::drains\n[FAIL] pool::drains: (0.01s)\n'
echo '[====] Synthesis: Tested: 2 | Passing: 1 | Failing: 1 | Crashing: 0'
exit 1
SH
program shaky.sh <<'SH'
#!/usr/bin/env bash
echo 'ok waits'
if [[ -e again ]]; then echo 'ok ends'; else echo 'not ok ends: too early'; fi
touch again
SH
TEST_RETRIES=1 "$root/tests/run" ./unit-shaky ./shaky.sh >log
verdict $? "what failed once and then passed counts" "$(tail -n 4 log | tr '\n' ' ')"
said 'unit-shaky: pool/drains' 'shaky.sh: ends: too early' '4 passed, 0 failed' && ! grep -q skipped log
verdict $? "it is named as flaky, and each case is counted once" "$(tail -n 4 log | tr '\n' ' ')"

# It has tried again itself.
program patient.sh <<'SH'
#!/usr/bin/env bash
echo run >>patient.log
printf 'flaky draws: too late\nok draws\nflaky paints: no paint\nnot ok paints: no paint\n'
SH
TEST_RETRIES=2 "$root/tests/run" ./patient.sh >log
said 'patient.sh: draws: too late' 'patient.sh: paints: no paint' '1 passed, 1 failed' && (($(wc -l <patient.log) == 1))
verdict $? "what a script has tried again itself is named, and not run a third time" "$(tail -n 8 log | tr '\n' ' ')"

rm again
TEST_RETRIES=0 "$root/tests/run" ./unit-shaky ./shaky.sh >log
status=$?
[[ $status != 0 ]] && said 'unit-shaky: pool::drains' 'shaky.sh: ends: too early' '2 passed, 2 failed'
verdict $? "without another try it is a failure" "$(tail -n 4 log | tr '\n' ' ')"

echo 'exit 0' | program silent.sh
! TEST_RETRIES=0 "$root/tests/run" ./silent.sh >log && said 'reported no case at all'
verdict $? "a program that reports nothing has failed" "$(tail -n 4 log | tr '\n' ' ')"

program unit-told <<'EOF'
#!/usr/bin/env bash
printf '[RUN ] pool::%s\n[FAIL] pool::%s: Timed out.\n' fills fills
echo "$*" >told
echo '[====] Synthesis: Tested: 1 | Passing: 0 | Failing: 1 | Crashing: 0'
exit 1
EOF
! CASE_SECONDS=7 TEST_RETRIES=0 "$root/tests/run" ./unit-told >log && grep -q -- '--timeout 7$' told && said 'unit-told: pool::fills: Timed out.'
verdict $? "a binary's cases have CASE_SECONDS each" "$(tail -n 4 log | tr '\n' ' ')"
