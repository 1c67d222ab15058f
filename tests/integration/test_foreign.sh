#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Foreign programs as PyTorch and TensorFlow jobs in the embedded control plane, in both isolations: what they are told,
# that crews on the same port do not meet each other, a killed worker, the crew's new attempt from its own checkpoint. The
# program is foreign.py; the real frameworks are in tests/frameworks. And how an elastic crew ends, of which one has finished
# and is removed, one fails too late to be replaced, and more are asked for. And a sweep over an environment variable of a script
# that reports a metric in its termination message. And a crew that hangs because one of its processes is frozen. Prints ok/not ok
# lines (see tests/run).
set -uo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip foreign: python3 is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
steps=100

# foreign NAME FRAMEWORK WORKERS [HOLD]
foreign() {
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"image\":\"none\",
        \"runPolicy\":{\"cleanPodPolicy\":\"None\",\"backoffLimit\":1},
        \"storage\":[{\"name\":\"scripts\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"scripts\"}},
            {\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"${2,,}\":{\"checkpoint\":{\"storage\":\"runs\",\"path\":\"$1\"}},
        \"workers\":{\"replicas\":$3,\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",
            \"command\":[\"python3\",\"/coxswain/storage/scripts/foreign.py\",\"$steps\"${4:+,\"$4\"}]}]}}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

has_saved() {
    [[ -s runs/$1/sum ]]
}

# The sum of step * (1 + … + workers) over all steps
expected() {
    echo "sum $((steps * (steps - 1) * $1 * ($1 + 1) / 4))"
}

says() {
    log_of "$1" | grep -- "$2" >/dev/null
}

# A worker of `elastic` ends once the file end-INDEX has its exit code
await_order="until test -s /coxswain/storage/runs/end-\$COXSWAIN_INDEX; do sleep 0.1; done; \
exit \$(cat /coxswain/storage/runs/end-\$COXSWAIN_INDEX)"

elastic() {
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"image\":\"none\",\"pytorch\":{},
        \"storage\":[{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"workers\":{\"replicas\":$3,\"minReplicas\":$2,\"maxReplicas\":8,\"template\":{\"spec\":{\"containers\":[{
            \"name\":\"trainer\",\"command\":[\"/bin/sh\",\"-c\",\"$await_order\"]}]}}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

order() {
    echo "$2" >"runs/new-$1" && mv "runs/new-$1" "runs/end-$1"
}

has_finished() {
    [[ $(field elastic completed) == "$1" ]]
}

has_failed() {
    api GET "$jobs_path/elastic" | tr -d '\n ' | contains '"role":"worker",.*"failed":1'
}

counts_no_restart() {
    [[ -z $(field elastic total) || $(field elastic total) == 0 ]]
}

the_end_of_an_elastic_crew() {
    rm -rf state runs
    mkdir runs
    plane_start --volume "runs=$work/runs"
    operator_start
    elastic elastic 2 3
    wait_for elastic readySummary 3/3 60
    order 1 0
    until_true 60 has_finished 1
    verdict $? "a worker that has finished is told of" "$(api GET "$jobs_path/elastic")"

    operator_kill
    api DELETE "$pods_path/$(member elastic 1)" >/dev/null
    operator_start
    api PATCH "$jobs_path/elastic/scale" '{"spec":{"replicas":5}}' >/dev/null
    order 2 1
    until_true 60 has_failed && has_finished 1 && counts_no_restart && [[ $(field elastic incarnation) == 1 ]]
    verdict $? "nobody is made or replaced after that, though it is removed while no operator looks" \
        "$(api GET "$jobs_path/elastic")"

    order 0 0
    wait_for elastic state Succeeded 60 && counts_no_restart &&
        job_says elastic '2 of [35] workers are done: exit code 0; workers.minReplicas is 2'
    verdict $? "with minReplicas workers that have finished the job has succeeded" "$(api GET "$jobs_path/elastic")"
    plane_stop
    operator='' standalone=''
}

the_end_of_an_elastic_crew

# A script reports its best score at rate 0.3. Worker 1 reports a better one, which does not count.
report="case \$RATE in 0.3) bleu=27.4 ;; *) bleu=\$RATE ;; esac; test \$COXSWAIN_INDEX = 0 || bleu=99; \
printf 'epoch 1\\n{\\\"metrics\\\":{\\\"bleu\\\":%s},\\\"step\\\":40}\\n' \$bleu >/dev/termination-log"

# reporting KIND NAME SPEC COMMAND: a TrainingJob, or a TrainingSweep with that spec beside its template
reporting() {
    local job="\"image\":\"none\",${framework:-\"pytorch\":{\}},\"workers\":{\"replicas\":2,\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",
        \"command\":[\"/bin/sh\",\"-c\",\"$4\"]}]}}}"
    if [[ $1 == TrainingSweep ]]; then job="$3,\"template\":{$job}"; fi
    api POST "apis/coxswain.dev/v1beta1/namespaces/default/${1,,}s?fieldValidation=Strict" "{\"apiVersion\":\"coxswain.dev/v1beta1\",
        \"kind\":\"$1\",\"metadata\":{\"name\":\"$2\"},\"spec\":{$job}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

# The first trial comes to its end, the second one would take a minute.
slow="echo \\\"step 10/40 loss \$RATE\\\"; case \$RATE in 0.1) sleep 12 ;; *) sleep 90 ;; esac; echo \\\"step 40/40 loss \$RATE\\\""

stop_a_script_early() {
    framework='"pytorch":{"progress":{"logPatterns":["step (?<step>\\d+)/(?<totalSteps>\\d+) loss (?<loss>\\S+)"]}}' \
        reporting TrainingSweep scores '"algorithm":{"type":"Grid"},"parallelism":1,"objective":{"metric":"loss","goal":"Minimize"},
        "earlyStopping":{"type":"ASHA","minSteps":10,"reductionFactor":2},"parameters":[{"env":"RATE","values":[0.1,0.9]}]' "$slow"
    until_true 75 sweep_has 'any(c["type"] == "Complete" and c["status"] == "True" for c in s["conditions"])' &&
        sweep_has '[r["state"] for r in s["results"]] == ["Succeeded", "Stopped"] and s["results"][1]["step"] == 10'
    verdict $? "a script is stopped early by what it logs ($1)" "$(cat sweep.json answer.json)"
}

# sweep_has EXPRESSION: whether it is true, by Python, of the status of the sweep `scores`
sweep_has() {
    api GET apis/coxswain.dev/v1beta1/namespaces/default/trainingsweeps/scores >sweep.json
    python3 -c 'import json, sys
s = json.load(open("sweep.json")).get("status", {})
sys.exit(not eval(sys.argv[1]))' "$1"
}

a_sweep_over_a_script() {
    reporting TrainingSweep scores '"algorithm":{"type":"Grid"},"parallelism":2,"objective":{"metric":"bleu","goal":"Maximize"},
        "parameters":[{"env":"RATE","values":[0.1,0.2,0.3,0.4]}]' "$report"
    until_true 60 sweep_has 'any(c["type"] == "Complete" and c["status"] == "True" for c in s["conditions"])' &&
        sweep_has 's["trials"] == dict(total=4, running=0, succeeded=4, failed=0, diverged=0, stopped=0, paused=0)'
    verdict $? "trials of a script report a metric ($1)" "$(cat sweep.json)"
    sweep_has 's["best"] == dict(trial="scores-2", objective="27.4", parameters=[dict(name="RATE", value="0.3")])'
    verdict $? "and the best is found ($1)" "$(cat sweep.json)"
    api GET "$jobs_path/scores-0" | tr -d ' \n' | contains '"progress":{[^}]*"step":40'
    verdict $? "the job's status has the step that it reports, too ($1)" "$(api GET "$jobs_path/scores-0")"

    reporting TrainingJob unreadable '' "echo '{metrics}' >/dev/termination-log"
    wait_for unreadable state Succeeded 60 && until_true 10 has_event ProgressUnreadable
    verdict $? "a report that is no JSON is told, and fails nothing ($1)" "$(api GET "$jobs_path/unreadable")"
}

# A script prints its progress, and its last line before it ends. It waits for `go` in between.
talker="echo 'step 1/9 loss 2.5'; until test -e /coxswain/storage/runs/go; do sleep 0.1; done; echo 'step 9/9 loss 0.125'"

# talking NAME PATTERNS: a job whose log is read
talking() {
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"image\":\"none\",\"pytorch\":{\"progress\":{\"logPatterns\":[$2]}},
        \"storage\":[{\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"workers\":{\"replicas\":1,\"template\":{\"spec\":{\"containers\":[{
            \"name\":\"trainer\",\"command\":[\"/bin/sh\",\"-c\",\"$talker\"]}]}}}}}" >answer.json
}

# progress_has NAME TEXT
progress_has() {
    api GET "$jobs_path/$1" | tr -d ' \n' | contains -- "\"progress\":{[^}]*$2"
}

progress_from_a_log() {
    talking talker '"step (?<step>\\d+)/(?<totalSteps>\\d+)","loss (?<loss>\\S+)"'
    until_true 30 progress_has talker '"step":1,"totalSteps":9' && progress_has talker '"metrics":\[{"name":"loss","value":"2.5","step":1}'
    verdict $? "progress is read from the log while a script runs ($1)" "$(cat answer.json; api GET "$jobs_path/talker")"
    touch runs/go
    wait_for talker state Succeeded 60 && progress_has talker '"step":9,' && progress_has talker '"value":"0.125"'
    verdict $? "and its last line before the job ends ($1)" "$(api GET "$jobs_path/talker")"
    talking wrong '"loss (?<loss>"'
    until_true 10 grep -q 'is not a valid regular expression (PCRE2): missing closing parenthesis' answer.json
    verdict $? "a pattern that is none is refused in words ($1)" "$(cat answer.json)"
}

# hanging NAME STEP: a crew of two whose first attempt goes no further than STEP steps, and that may do without a step for five seconds
hanging() {
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"image\":\"none\",
        \"runPolicy\":{\"cleanPodPolicy\":\"None\",\"backoffLimit\":1,\"progressDeadlineSeconds\":5},
        \"storage\":[{\"name\":\"scripts\",\"readOnly\":true,\"persistentVolumeClaim\":{\"claimName\":\"scripts\"}},
            {\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"pytorch\":{\"checkpoint\":{\"storage\":\"runs\",\"path\":\"$1\"},
            \"progress\":{\"logPatterns\":[\"step (?<step>\\\\d+)/(?<totalSteps>\\\\d+)\"]}},
        \"workers\":{\"replicas\":2,\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":2,\"containers\":[{
            \"name\":\"trainer\",
            \"command\":[\"python3\",\"/coxswain/storage/scripts/foreign.py\",\"$steps\",\"$2\"]}]}}}}}" >answer.json
}

# run_hook PROCESS POD: runs the preStop hook of the pod's container in the container, as a kubelet does before it sends SIGTERM; the
# image has neither py-spy nor gdb
run_hook() {
    local hook
    hook=$(api GET "$pods_path/$2" | python3 -c 'import json, sys; print(json.load(sys.stdin)["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2])')
    PATH=$work/image "$(command -v nsenter)" -t "$1" -p -m "$work/image/sh" -c "$hook"
}

# A script that says nothing when it is asked to end, and is frozen: process 1 of a namespace, as in a container.
a_script_that_says_nothing() {
    local process
    if ! unshare --pid --fork --mount-proc true 2>/dev/null; then
        echo "skip what a frozen script's pod says: no PID namespace can be made here"
        return
    fi
    mkdir -p image
    ln -sf "$(command -v sh)" "$(command -v head)" image/
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"silent\"},
        \"spec\":{\"image\":\"none\",
        \"runPolicy\":{\"cleanPodPolicy\":\"None\",\"backoffLimit\":1,\"progressDeadlineSeconds\":8},
        \"pytorch\":{\"progress\":{\"logPatterns\":[\"step (?<step>\\\\d+)\"]}},
        \"workers\":{\"replicas\":1,\"template\":{\"spec\":{\"terminationGracePeriodSeconds\":2,\"containers\":[{
            \"name\":\"trainer\",\"command\":[\"unshare\",\"--pid\",\"--fork\",\"--mount-proc\",\"--kill-child=KILL\",\"sh\",\"-c\",
            \"echo step 50; test \$COXSWAIN_ATTEMPT != 1 || exec sleep 1000\"]}]}}}}}" >answer.json
    until_true 60 progress_has silent '"step":50'
    verdict $? "a script that is about to be frozen has made a step ($1)" "$(cat answer.json; api GET "$jobs_path/silent")"
    process=$(process_of "$(member silent 0)")
    process=$(tr -d ' ' <"/proc/$process/task/$process/children")
    kill -STOP "$process"
    run_hook "$process" "$(member silent 0)"
    says "$(member silent 0)" '^process 1, thread 1 (sleep): T (stopped) at .*, system call '
    verdict $? "the preStop hook writes what /proc says of the frozen process to the log ($1)" "$(log_of "$(member silent 0)" | tail -n 5)"
    wait_for silent state Succeeded 60 && [[ $(field silent attempt) == 2 ]]
    verdict $? "the job starts over and succeeds ($1)" "$(api GET "$jobs_path/silent")"
    has_note 'pod silent-worker-0-1 was at [A-Za-z_0-9?< ]* (T (stopped), system call [0-9a-z?-]*)'
    verdict $? "and the event quotes it ($1)" "$(api GET apis/events.k8s.io/v1/namespaces/default/events)"
}

# A rank that is frozen says nothing, and its peer waits for it in the sum of a step. Neither ends by itself.
a_frozen_rank() {
    hanging frozen 50
    until_true 60 progress_has frozen '"step":50,'
    verdict $? "a crew whose rank 1 is about to be frozen has made 50 steps ($1)" "$(cat answer.json; api GET "$jobs_path/frozen")"
    kill -STOP "$(process_of "$(member frozen 1)")"
    wait_for frozen state Succeeded 90 && [[ $(field frozen attempt) == 2 && $(field frozen failures) == 1 ]]
    verdict $? "the crew starts over when progressDeadlineSeconds has passed, and succeeds ($1)" "$(api GET "$jobs_path/frozen")"
    says "$(member frozen 0)" 'attempt 2, begins after step [1-9]' && says "$(member frozen 0)" "^$(expected 2)\$"
    verdict $? "from its own checkpoint to the right sum, too ($1)" "$(log_of "$(member frozen 0)")"
    api GET apis/events.k8s.io/v1/namespaces/default/events | contains \
        'progressDeadlineSeconds is 5: the last one is step 50 of 100; pods that ran: frozen-worker-0-1, frozen-worker-1-1'
    verdict $? "an event says after which step, and which pods ran ($1)" "$(api GET apis/events.k8s.io/v1/namespaces/default/events)"
    has_note 'pod frozen-worker-1-1 printed no stack before it was killed, so its process is frozen.*; pod frozen-worker-0-1 was at receive (foreign.py:'
    verdict $? "another names the frozen rank, and quotes the stack of the one that waited for it ($1)" "$(api GET apis/events.k8s.io/v1/namespaces/default/events)"
}

# has_note TEXT: an event of the job `frozen` says so
has_note() {
    api GET apis/events.k8s.io/v1/namespaces/default/events | contains -- "$1"
}

# A rank that waits for something else than its peers, and reacts to signals: which one it is, and where it was.
a_rank_that_waits_elsewhere() {
    hanging elsewhere 50
    wait_for elsewhere state Succeeded 120 && [[ $(field elsewhere attempt) == 2 ]]
    verdict $? "a crew starts over because rank 1 waits for data ($1)" "$(cat answer.json; api GET "$jobs_path/elsewhere")"
    has_note 'pod elsewhere-worker-1-1 is not in the collective operation of the others: it was at wait_for_data (foreign.py:[0-9]*) < main (foreign.py:[0-9]*) < '
    verdict $? "an event names the pod, and quotes its stack ($1)" "$(api GET apis/events.k8s.io/v1/namespaces/default/events)"
    has_note '; pod elsewhere-worker-0-1 was at receive (foreign.py:[0-9]*) < .*all_reduce (foreign.py:[0-9]*)'
    verdict $? "and its peer's, which waited for it ($1)" "$(api GET apis/events.k8s.io/v1/namespaces/default/events)"
}

has_event() {
    api GET apis/events.k8s.io/v1/namespaces/default/events | contains "\"$1\""
}

for isolation in auto rewrite; do
    rm -rf state runs
    mkdir runs
    plane_start --isolation "$isolation" --volume "scripts=$root/tests/integration" --volume "runs=$work/runs"
    operator_start

    foreign torch PyTorch 2 50
    foreign tensor TensorFlow 3
    until_true 60 has_saved torch && until_true 60 has_saved tensor
    verdict $? "two crews meet, each its own ($isolation)" "$(log_of "$(member torch 0)"; log_of "$(member tensor 0)")"
    says "$(member torch 1)" '^torch-worker-1: rank 1 of 2, attempt 1'
    verdict $? "a pod knows its name and place ($isolation)" "$(log_of "$(member torch 1)")"

    kill -KILL "$(process_of "$(member torch 1)")"
    wait_for torch state Succeeded 90 && [[ $(field torch attempt) == 2 && $(field torch failures) == 1 ]]
    verdict $? "after a kill the whole crew starts over, once ($isolation)" "$(api GET "$jobs_path/torch")"
    last=$(member torch 0)
    says "$last" 'attempt 2, begins after step [1-9]' && says "$last" "^$(expected 2)\$"
    verdict $? "from its own checkpoint to the right sum ($isolation)" "$(log_of "$last")"
    wait_for tensor state Succeeded 90 && [[ $(field tensor attempt) == 1 ]] && says "$(member tensor 0)" "^$(expected 3)\$"
    verdict $? "the other crew goes on undisturbed ($isolation)" "$(api GET "$jobs_path/tensor")"
    a_sweep_over_a_script "$isolation"
    progress_from_a_log "$isolation"
    api DELETE apis/coxswain.dev/v1beta1/namespaces/default/trainingsweeps/scores >answer.json
    [[ $isolation != auto ]] || stop_a_script_early "$isolation"
    [[ $isolation != auto ]] || a_frozen_rank "$isolation"
    [[ $isolation != auto ]] || a_rank_that_waits_elsewhere "$isolation"
    [[ $isolation != auto ]] || a_script_that_says_nothing "$isolation"

    plane_stop
    operator='' standalone=''
done
