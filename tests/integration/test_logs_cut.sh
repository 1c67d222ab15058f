#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The streams of `cox logs -f` and `cox run` are cut: both continue where they were, and every line is printed once.
# tests/faultproxy stands before the embedded control plane. Prints ok/not ok lines (see tests/run).
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

# And refused, as by a kubelet that has just come back and does not know its pods yet.
cat >rules.json <<JSON
[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 6}, {"path": "/log", "fault": "status", "status": 404, "times": 2},
 {"path": "/log", "fault": "status", "status": 400, "times": 1}]
JSON
faulty_serve 1
HOME=$work KUBECONFIG=$work/faulty timeout 300 "$bin/cox" logs talking -f >followed 2>troubles &
follower=$!
all_said() { [[ $(grep -c ' line 60$' followed) == 2 ]]; }
until_true 60 all_said
verdict $? "a log that is cut is followed further" "$(tail -n 3 followed troubles)"
touch heard
wait "$follower"
verdict $? "and to its end" "$(cat troubles)"
(($(grep -c '^cut .*/pods/talking-worker-[01]-.*/log' proxy.log) >= 2))
verdict $? "its streams were cut" "$(cat proxy.log)"
follower=
for worker in 0 1; do
    diff <(sed -n "s/^worker-$worker | //p" followed) <(seq -f 'line %g' 60 && echo 'the last') >difference
    verdict $? "each line of worker $worker came once, in its order" "$(head -n 5 difference)"
done

faulty_stop
wait "$proxy" 2>/dev/null
rm faulty
echo '[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 3}]' >rules.json
faulty_serve 1
# manifest NAME WORKERS RUN_POLICY SCRIPT: a job of a foreign framework
manifest() {
    cat <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  image: any
  pytorch: {}
  runPolicy: $3
  workers: {replicas: $2, template: {spec: {containers: [{name: pytorch, command: [/bin/sh, -c, "$4"]}]}}}
YAML
}
manifest loud 1 '{}' "i=0; while [ \$i -lt 60 ]; do i=\$((i + 1)); echo line \$i; sleep 0.05; done; until [ -e $work/cut ]; do sleep 0.1; done; echo the last" \
    >loud.yaml
HOME=$work timeout 300 "$bin/cox" run loud.yaml --kubeconfig "$work/faulty" >shown 2>troubles </dev/null &
follower=$!
until_true 60 grep -q '^chief: line 60$' shown && [[ $(grep -c '^cut .*/pods/loud-worker-0-.*/log' proxy.log) == 3 ]]
verdict $? "the log of a job that is run is followed further, too" "$(tail -n 3 shown troubles proxy.log)"
touch cut
wait "$follower"
follower=
diff <(sed -n 's/^chief: //p' shown) <(seq -f 'line %g' 60 && echo 'the last') >difference
verdict $? "and each line of it came once" "$(head -n 5 difference)"

# ---- of jobs that are over

# cut RULES: what the API server does from now on
cut() {
    faulty_stop
    wait "$proxy" 2>/dev/null
    rm -f faulty
    echo "$1" >rules.json
    faulty_serve 1
}

# ends CODE COMMAND…: with that exit code
ends() {
    local wanted=$1 code=0
    shift
    "$@" || code=$?
    ((code == wanted))
}

said_all() {
    diff <(cat) <(seq -f 'line %g' 60 && echo 'the last') >difference
}

# An end that does not look like a fault, each time at another place.
thrice='[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 1}, {"path": "/log", "fault": "cut", "afterBytes": 500, "times": 1},
         {"path": "/log", "fault": "cut", "afterBytes": 900, "times": 1}]'
cut "$thrice"
ends 0 env HOME="$work" KUBECONFIG="$work/faulty" timeout 300 "$bin/cox" logs talking -f --role worker --index 0 >followed 2>troubles &&
    said_all <followed && [[ $(grep -c '^cut ' proxy.log) == 3 ]]
verdict $? "the log of a pod that has ended is read further, too" "$(head -n 5 difference troubles)"

cut "$thrice"
ends 0 env HOME="$work" timeout 300 "$bin/cox" run loud.yaml --kubeconfig "$work/faulty" >shown 2>troubles </dev/null &&
    sed -n 's/^chief: //p' shown | said_all && [[ $(grep -c '^cut ' proxy.log) == 3 && ! -s troubles ]]
verdict $? "and by cox run" "$(head -n 5 difference troubles)"

cut '[{"path": "/log", "fault": "status", "status": 503, "times": 2}]'
ends 0 env HOME="$work" KUBECONFIG="$work/faulty" timeout 300 "$bin/cox" logs talking --role worker --index 0 >followed 2>troubles &&
    said_all <followed
verdict $? "a log that is read once is asked for again" "$(head -n 5 difference troubles)"

# Heard once, then refused for a while, as by an API server that has just come back.
cut '[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 1}, {"path": "/log", "fault": "status", "status": 403, "times": 2}]'
ends 0 env HOME="$work" KUBECONFIG="$work/faulty" timeout 300 "$bin/cox" logs talking -f --role worker --index 0 >followed 2>troubles &&
    said_all <followed && grep -q 'made by faultproxy' troubles
verdict $? "a follower that has read something waits for a refusal to pass" "$(head -n 5 difference troubles proxy.log)"

cut '[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 1}, {"path": "/log", "fault": "status", "status": 503}]'
ends 1 env HOME="$work" KUBECONFIG="$work/faulty" timeout 300 "$bin/cox" logs talking -f --role worker --index 0 >followed 2>troubles &&
    grep -q '^cox logs: worker-0: its log could not be read to the end' troubles && head -n 1 followed | contains -x 'line 1'
verdict $? "what cannot be had is told, with exit code 1" "$(head -n 5 followed troubles)"
cut '[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 1}, {"path": "/log", "fault": "status", "status": 503}]'
ends 0 env HOME="$work" timeout 300 "$bin/cox" run loud.yaml --kubeconfig "$work/faulty" >shown 2>troubles </dev/null &&
    grep -q '^cox run: the log of loud-worker-0-1 could not be read to its end' troubles
verdict $? "and by cox run, although its job has succeeded" "$(tail -n 5 shown troubles)"

# Its chief lives on, and goes on talking.
# shellcheck disable=SC2016 # for the pod's shell
manifest outlived 2 '{cleanPodPolicy: None, backoffLimit: 0}' \
    'if [ $COXSWAIN_INDEX = 1 ]; then exit 65; fi; while :; do echo a long line of the chief; sleep 0.1; done' >outlived.yaml
ends 1 env HOME="$work" timeout 120 "$bin/cox" run outlived.yaml --kubeconfig state/kubeconfig >shown 2>troubles </dev/null &&
    grep -q '^chief: a long line' shown
verdict $? "a pod that outlives its job does not keep cox run" "$(tail -n 5 shown troubles)"
ends 0 env HOME="$work" KUBECONFIG=state/kubeconfig timeout 120 "$bin/cox" logs outlived -f >followed 2>troubles </dev/null &&
    grep -q '^worker-0 | a long line' followed && grep -q '^cox logs: worker-0: .* this pod still runs' troubles
verdict $? "and does not keep cox logs -f" "$(tail -n 5 followed troubles)"
cut '[{"path": "/log", "fault": "cut", "afterBytes": 300, "times": 1}, {"path": "/log", "fault": "status", "status": 503}]'
ends 1 env HOME="$work" timeout 120 "$bin/cox" run outlived.yaml --kubeconfig "$work/faulty" >shown 2>troubles </dev/null &&
    grep -q '^cox run: the log of outlived-worker-0-1 could not be read to its end' troubles
verdict $? "a pod with a log that cannot be read any more does not keep cox run" "$(tail -n 5 shown troubles)"

# The API server goes away for good: that is one thing, however many logs are followed.
job left '{}' 2 'echo begun; sleep 600'
wait_for left readySummary 2/2 60
HOME=$work KUBECONFIG=$work/state/kubeconfig timeout 300 "$bin/cox" logs left -f >followed 2>troubles &
follower=$!
both_begun() { [[ $(grep -c begun followed) == 2 ]]; }
until_true 60 both_begun || verdict 1 "preparation" "$(cat troubles)"
kill -KILL "$standalone"
until_true 60 grep -q 'until the API server answers' troubles
sleep 3
kill "$follower"
wait "$follower" 2>/dev/null
follower=
[[ $(grep -c 'https://' troubles) == 1 ]] && ! grep -q '?' troubles
verdict $? "an API server that goes away is told once, without the query that was asked for" "$(cat troubles)"
