#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `cox logs -f` whose streams are cut: it goes on where they were, and every line comes once. tests/faultproxy stands before the
# embedded control plane. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/faulty.sh"
follower=

finish_also() {
    if [[ -n $follower ]]; then kill "$follower" 2>/dev/null; fi
    faulty_stop
}

plane_start
operator_start
job talking '{}' 2 "i=0; while [ \$i -lt 60 ]; do i=\$((i + 1)); echo line \$i; sleep 0.05; done; until [ -e $work/heard ]; do sleep 0.1; done; echo the last"
wait_for talking readySummary 2/2 60
verdict $? "preparation" "$(field talking readySummary)"

echo '[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 6}]' >rules.json
faulty_serve 1
HOME=$work KUBECONFIG=$work/faulty timeout 300 "$bin/cox" logs talking -f >followed 2>troubles &
follower=$!
all_said() { [[ $(grep -c ' line 60$' followed) == 2 ]]; }
until_true 60 all_said
verdict $? "a log that is cut is followed further" "$(tail -n 3 followed troubles)"
touch heard
wait "$follower"
verdict $? "and to its end" "$(cat troubles)"
follower=
for worker in 0 1; do
    diff <(sed -n "s/^worker-$worker | //p" followed) <(seq -f 'line %g' 60 && echo 'the last') >difference
    verdict $? "each line of worker $worker came once, in its order" "$(head -n 5 difference)"
done
