#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Operators that lose their Lease: one that is stopped for longer than the Lease lasts, and is succeeded meanwhile; one that gets
# no answers for Leases from the API server; one that is asked to end. How each ends, and what it says. Prints ok/not ok lines
# (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
first='' second='' proxy=''

finish_also() {
    # shellcheck disable=SC2086 # any may be unset
    kill -CONT $first 2>/dev/null
    # shellcheck disable=SC2086
    kill -KILL $first $second $proxy 2>/dev/null
}

# lead LOG [KUBECONFIG]: an operator that competes for the Lease
lead() {
    "$bin/coxswain-operator" --kubeconfig "${2:-state/kubeconfig}" --leader-elect --lease-namespace default >>"$1" 2>&1 &
}

leads() {
    grep -qs 'controlling jobs' "$1"
}

# ends PROCESS CODE: within a minute and a half, with that exit code
ends() {
    local code
    until_true 90 have_ended "$1"
    wait "$1"
    code=$?
    [[ $code == "$2" ]] || { echo "# exit code $code, not $2"; return 1; }
}

plane_start
lead first.log
first=$!
until_true 60 leads first.log
verdict $? "an operator leads" "$(tail -n 3 first.log)"
job stays '{"cleanPodPolicy":"None"}' 2 'sleep infinity'
wait_for stays state Running 60
verdict $? "and looks after a job" "$(tail -n 3 first.log)"

kill -STOP "$first"
lead second.log
second=$!
until_true 90 leads second.log
verdict $? "one that is stopped is succeeded" "$(tail -n 3 second.log)"
lost=$(member stays 1)
api DELETE "$pods_path/$lost" >/dev/null
wait_for stays disruptions 1 60 && wait_for stays state Running 60
verdict $? "by one that sees what happens" "$(tail -n 3 second.log)"
kill -CONT "$first"
ends "$first" 1
verdict $? "woken, it ends with 1, to be started again" "$(tail -n 3 first.log)"
grep 'the lease is lost' first.log | grep 'was stopped, or got no CPU time, for' >/dev/null
verdict $? "and says that it was stopped" "$(tail -n 3 first.log)"
field_is stays disruptions 1
verdict $? "nothing was counted twice" "$now"

kill -TERM "$second"
ends "$second" 0
verdict $? "one that is asked to end ends with 0" "$(tail -n 3 second.log)"
echo '[]' >rules.json
"$bin/tests/faultproxy" --kubeconfig state/kubeconfig --rules rules.json --out through 2>proxy.log &
proxy=$!
until_true 60 test -s through
lead third.log through
first=$!
until_true 60 leads third.log
verdict $? "and leaves the Lease to the next" "$(tail -n 3 third.log)"
kill -STOP "$proxy"
ends "$first" 1
verdict $? "an operator with a silent API server ends with 1" "$(tail -n 3 third.log)"
grep 'the lease is lost' third.log | grep 'are allowed; ' >/dev/null
verdict $? "and says why" "$(tail -n 3 third.log)"
kill -CONT "$proxy"
