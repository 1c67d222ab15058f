#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cox ui without a browser: a run of `cox run` while it goes on, and what it has left when it is over. tests/page looks at the page
# itself. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
page='' run=''

finish_also() {
    # shellcheck disable=SC2086 # either may be unset
    kill $page $run 2>/dev/null
}

# page_start WORD…: serves once this returns
page_start() {
    : >ui.log # else what the last one has printed could be found
    "$bin/cox" ui "$@" >ui.log 2>&1 &
    page=$!
    until_true 20 grep -q 'token=' ui.log || return
    url=$(grep -o 'http://[^?]*' ui.log)
    port=${url##*:}
    cookie=cox-ui-${port%/}=$(sed -n 's/.*token=//p' ui.log)
}

page_stop() {
    kill "$page"
    wait "$page"
}

# ask METHOD PATH
ask() {
    curl -sS -X "$1" -b "$cookie" -H "Origin: ${url%/}" "$url$2" >answer
}

# lists WORDS: stands in the list
lists() {
    ask GET api/list && grep -q "$1" answer
}

# idle: cox ui runs no control plane
idle() {
    ! pgrep -P "$page" >/dev/null
}

# tells WORDS…: they stand in the answer for the run of tiny
tells() {
    local words
    ask GET "api/job?$place&run=default-tiny" || return
    for words; do
        grep -q "$words" answer || return
    done
}

cat >tiny.yaml <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: tiny}
spec:
  workers: {replicas: 1}
  coxswain:
    strategy: {type: OneDevice}
    model: {preset: mlp, width: 16}
    data: {format: Synthetic, examples: 400, validation: {last: 100}}
    training: {steps: 30, batchSize: 50, optimizer: {type: SGD, learningRate: 0.1}}
YAML
export HOME=$work
place='namespace=default&name=tiny'

"$bin/cox" run tiny.yaml --state run --set spec.coxswain.training.steps=200000 >run.log 2>&1 &
run=$!
until_true 30 grep -q 'step ' run.log && page_start --state run && until_true 20 lists '"STATE":"Running"' && grep -q '"kept":false' answer
verdict $? "a run that goes on is shown" "$(cat ui.log run.log answer)"
ask POST "api/suspend?kind=job&$place" && [[ $(cat answer) == '{}' ]] && until_true 20 lists '"STATE":"Suspended"'
verdict $? "and can be suspended" "$(cat answer)"
echo 0 >ahead
LD_PRELOAD=$bin/tests/clock-shift.so CLOCK_SHIFT=$work/ahead "$bin/cox" wait tiny --state run --for Deleted --timeout 4s >wait.log 2>&1 &
waiter=$!
sleep 1
echo 3600 >ahead
sleep 1
kill -0 "$waiter" && ! wait "$waiter" && grep -q 'tiny: timed out' wait.log
verdict $? "cox wait waits its time, whatever the clock says" "$(cat wait.log)"
kill "$run"
wait "$run"
until_true 20 lists 'The API server has not answered since'
verdict $? "its end is told" "$(cat answer)"
page_stop
verdict $? "cox ui ends when it is told to" "$(cat ui.log)"

"$bin/cox" run tiny.yaml --state run --fresh >run.log 2>&1
verdict $? "a short run succeeds" "$(tail -n 3 run.log)"
page_start --state run && until_true 20 lists '"STATE":"Succeeded"' && grep -q '"kept":true' answer
verdict $? "what it has left is shown when it is over" "$(cat ui.log answer)"
ask GET "api/job?$place" && grep -q '"why":"tiny waits for nothing: it has succeeded' answer
verdict $? "with the sentence of cox why" "$(head -c 300 answer)"
ask GET "api/curves?$place" && grep -q '"points":\[\[1,' answer && ask GET "api/log?$place" && grep -q 'worker-0 | step' answer
verdict $? "with its curve and its log" "$(head -c 300 answer)"
ask POST "api/delete?kind=job&$place" && grep -q 'This run is over' answer && lists '"NAME":"tiny"'
verdict $? "and is not changed" "$(head -c 300 answer)"
timeout 60 "$bin/cox" ui --state run --port "${port%/}" >ui2.log 2>&1
[[ $? == 1 ]] && grep -q "cannot serve HTTP on 127.0.0.1 port ${port%/}" ui2.log
verdict $? "a port that another cox ui has is refused" "$(cat ui2.log)"
"$bin/cox" run tiny.yaml --state run >again.log 2>&1
[[ $? == 1 ]] && grep -qE 'another control plane uses the state directory run: that of process [0-9]+, .[^ ]*/cox ui --state run.; end it with Ctrl-C or kill [0-9]+' again.log
verdict $? "meanwhile no run uses the directory" "$(cat again.log)"
page_stop
verdict $? "its control plane ends with it" "$(cat ui.log)"
"$bin/cox" run tiny.yaml --state run >again.log 2>&1 && grep -q 'tiny is done' again.log
verdict $? "then the run is as it was" "$(cat again.log)"

# Two commands read at once: the second one uses the control plane of the first, which outlives the first.
# serves: there is a control plane for the run
serves() {
    pgrep -f "coxswain-standalone --state $work/run " >/dev/null
}
# explains: the API server is asked
explains() {
    ask GET "api/job?$place" && grep -q '"why":"tiny waits for nothing' answer
}
page_start --state run && first=$page && page_start --state run && explains && ! pgrep -P "$page" >/dev/null
verdict $? "two commands that read share a control plane" "$(cat ui.log answer)"
kill "$first"
wait "$first"
explains && grep -q '"kept":true' answer && "$bin/cox" get tiny --state run >get.log 2>&1 && grep -q '^tiny *Succeeded' get.log && explains
verdict $? "it serves the second one after the first has ended" "$(cat answer get.log)"
page_stop
until_true 10 eval '! serves' && "$bin/cox" run tiny.yaml --state run >again.log 2>&1 && grep -q 'tiny is done' again.log
verdict $? "and ends with the second one" "$(pgrep -af coxswain-standalone; cat again.log)"

# While another command starts a control plane there, the machine's clock is set.
echo 0 >ahead
python3 - run/lock <<'PY' &
import fcntl, sys, time
with open(sys.argv[1], "r+b") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    open("locked", "w").close()
    time.sleep(3)
PY
until_true 10 test -e locked
LD_PRELOAD=$bin/tests/clock-shift.so CLOCK_SHIFT=$work/ahead "$bin/cox" get tiny --state run >get.log 2>&1 &
reader=$!
sleep 1
echo 3600 >ahead
wait "$reader" && grep -q '^tiny *Succeeded' get.log
verdict $? "a command waits its time for another one, whatever the clock says" "$(cat get.log)"

# All runs of this machine, without a cluster.
unset KUBECONFIG
export XDG_STATE_HOME=$work/kept
runs=$work/kept/coxswain
"$bin/cox" run tiny.yaml >first.log 2>&1 && sed 's/name: tiny/name: wide/; s/width: 16/width: 32/' tiny.yaml | "$bin/cox" run - >second.log 2>&1
verdict $? "two runs succeed" "$(tail -n 3 first.log second.log)"
mkdir "$runs/default-broken" && : >"$runs/default-broken/objects.db"
page_start && lists '"runs":true' && [[ $(grep -o '"STATE":"Succeeded"' answer | wc -l) == 2 ]] && grep -q '"label":"wide"' answer &&
    grep -q '"SCORE":"[0-9.]* %"' answer && grep -q '"DISK":"[0-9.]* MB"' answer && grep -q '"unlisted":1' answer
verdict $? "without a cluster, cox ui lists all runs with state, score and disk" "$(cat ui.log answer)"
idle
verdict $? "and starts no control plane for that" "$(pgrep -aP "$page")"
ask GET "api/curves?$place&run=default-tiny" && grep -q '"points":\[\[1,' answer && ask GET 'api/job?namespace=default&name=wide&run=default-wide' &&
    grep -q '"width":32' answer && grep -q '"kept":true' answer && grep -q '"here":true' answer
verdict $? "the jobs of both can be looked at together" "$(head -c 300 answer)"
[[ $(pgrep -P "$page" | wc -l) == 2 ]] && ask GET "api/log?$place&run=default-tiny" && grep -q 'worker-0 | step' answer && [[ $(pgrep -P "$page" | wc -l) == 2 ]]
verdict $? "over one control plane each" "$(pgrep -aP "$page") $(head -c 300 answer)"
ask GET "api/job?$place&run=default-none" && grep -q 'There is no such run on this machine' answer
verdict $? "another run is told" "$(cat answer)"
ask GET "api/job?$place&run=..%2F..%2Frun" && grep -q 'There is no such run on this machine' answer
verdict $? "so is a path out of the folder" "$(cat answer)"
ask POST "api/suspend?kind=job&$place&run=default-tiny" && grep -q 'This run is over: start it again with cox run' answer
verdict $? "one that has ended cannot be changed" "$(cat answer)"
ask POST "api/delete?kind=job&$place&run=default-none" && grep -q 'There is no such run on this machine' answer && [[ -e $runs/default-tiny/run.json ]]
verdict $? "and only one that is there can be deleted" "$(cat answer)"
until_true 30 idle
verdict $? "the control planes end when nothing has been asked for a while" "$(pgrep -aP "$page")"
"$bin/cox" run tiny.yaml --fresh --set spec.coxswain.training.steps=200000 >run.log 2>&1 &
run=$!
until_true 30 grep -q 'step ' run.log && until_true 20 lists '"STATE":"Running"' &&
    until_true 20 tells '"kept":false' '"STATE":"Running"'
verdict $? "a run goes on while the page shows it" "$(tail -n 3 run.log) $(head -c 300 answer)"
kill "$run"
wait "$run"
until_true 20 lists '"STATE":"Interrupted"' && until_true 20 tells '"kept":true' && lists '"STATE":"Interrupted"'
verdict $? "and is shown after it was interrupted" "$(head -c 300 answer)"
page_stop
KUBECONFIG=$work/none page_start --runs && lists '"label":"wide"'
verdict $? "--runs shows them although there is a cluster" "$(cat ui.log answer)"
page_stop

"$bin/cox" ui --state missing >ui.log 2>&1
[[ $? == 1 && ! -e missing ]] && grep -q 'there is no run "missing"' ui.log
verdict $? "a run that does not exist is refused, and no directory is made" "$(cat ui.log)"
"$bin/cox" ui --state ./missing >ui.log 2>&1
[[ $? == 1 && ! -e missing ]] && grep -q 'missing is not a state directory of cox run' ui.log
verdict $? "another directory is refused, and not made" "$(cat ui.log)"
# misused SENTENCE WORD…: cox ui ends with exit code 2, and says so
misused() {
    "$bin/cox" ui "${@:2}" >ui.log 2>&1
    [[ $? == 2 ]] && grep -q -e "$1" ui.log
}
misused 'give one of them' --state run --context x
verdict $? "a run and a cluster cannot both be named" "$(cat ui.log)"
misused 'leave out the options' --runs --state run && misused 'leave out the options' --runs -n default
verdict $? "all runs and one cluster cannot both be chosen" "$(cat ui.log)"
misused 'give a port from 1 to 65535' --port 70000 --kubeconfig none && misused '"many"' --port many
verdict $? "a port that cannot be is refused before anything is asked" "$(cat ui.log)"
misused 'Team' -n Team
verdict $? "so is such a namespace" "$(cat ui.log)"
