# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $work is the caller's
#
# Crews that train on the digits of digits.sh, for scripts that source this file after scene.sh, and ways to disturb them.

. "$root/tests/integration/digits.sh"

# training_start [OPTION…]: the data, the plane with the volumes digits and runs, and an operator with these options
training_start() {
    mkdir -p runs
    make_digits
    plane_start --volume "digits=$work" --volume "runs=$work/runs"
    operator_start "$work/state/kubeconfig" "$@"
}

# delay JOB MS: from now on, each reading of a batch takes the job's workers that much longer; the job may be applied later. So
# a crew cannot be done before the test disturbs it
delay() {
    echo "$2" >"$1.delay.new"
    mv "$1.delay.new" "$1.delay"
}

undelay() {
    rm -f "$1.delay"
}

# worker_template JOB: the template of the workers. It tells their containers where the job's delay is and, where `recorded` is
# set, where to write the job's record
worker_template() {
    echo "\"template\":{\"spec\":{\"containers\":[{\"name\":\"trainer\",\"env\":[
        {\"name\":\"COXSWAIN_READ_DELAY\",\"value\":\"$work/$1.delay\"}
        ${recorded:+,{\"name\":\"COXSWAIN_RECORD\",\"value\":\"$work/$1.record\"\}}]}]}}"
}

# crew NAME WORKERS STEPS [PATH]: applies a job; PATH is its folder of checkpoints (default: its name). The caller may set
# model (an mlp), data (in the storage digits), shards (12), held (100 of the 700 digits, for validation), strategy, and, with a comma behind each, bounds
# (minReplicas and maxReplicas), more (further members of the spec) and ours (further members of its section coxswain).
crew() {
    local examples=${data:-}
    [[ -n $examples ]] || examples="\"format\":\"IDX\",\"storage\":\"digits\",\"train\":{\"images\":\"images\",\"labels\":\"labels\"},\"validation\":{\"last\":${held:-100}}"
    api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"$1\"},
        \"spec\":{\"workers\":{\"replicas\":$2,${bounds:-}$(worker_template "$1")},${more:-}
        \"runPolicy\":{\"backoffLimit\":100,\"cleanPodPolicy\":\"None\"},
        \"storage\":[{\"name\":\"digits\",\"persistentVolumeClaim\":{\"claimName\":\"digits\"},\"readOnly\":true},
            {\"name\":\"runs\",\"persistentVolumeClaim\":{\"claimName\":\"runs\"}}],
        \"coxswain\":{${ours:-}\"strategy\":{${strategy:-\"type\":\"MultiWorkerMirrored\"}},
        \"model\":{${model:-\"preset\":\"mlp\",\"width\":64}},
        \"data\":{$examples},
        \"training\":{\"steps\":$3,\"stepsPerEpoch\":1000,\"batchSize\":24,\"logicalShards\":${shards:-12},\"seed\":7,
            \"optimizer\":{\"type\":\"AdamW\",\"learningRate\":\"2e-4\"}},
        \"checkpoint\":{\"storage\":\"runs\",\"path\":\"${4:-$1}\",\"everySteps\":100,\"keep\":2},
        \"export\":{\"storage\":\"runs\",\"path\":\"$1.safetensors\"}}}}" >answer.json
    grep -q '"uid"' answer.json || cat answer.json
}

same_weights() {
    cmp "runs/$1.safetensors" "runs/$2.safetensors"
}

# step_of POD: the last step that this process has applied, as it tells itself
step_of() {
    local step
    step=$(curl -s --max-time 2 "http://$(address_of "$1"):8080/status" | sed -n 's/.*"step":\([0-9]*\).*/\1/p')
    echo "${step:-0}"
}

has_reached() {
    (($(step_of "$1") >= $2))
}

# await_step JOB STEP: until worker 0 has applied it
await_step() {
    until_true 60 field_is "$1" state Running && until_true 60 has_reached "$(member "$1" 0)" "$2"
}

# recoveries POD: the lines in which it tells that its crew is whole again
recoveries() {
    log_of "$1" | grep 'the crew is whole again'
}

has_recovered_more_than() {
    (($(recoveries "$1" | wc -l) > $2))
}

# sizes JOB [INDEX]: of the worlds that this worker has trained in, in order, where they vary
sizes() {
    log_of "$(member "$1" "${2:-0}")" | sed -n 's/.*the crew has \([0-9]*\) worker.*/\1/p' | tr '\n' ' '
}

# sizes_end_in JOB INDEX SIZES
sizes_end_in() {
    [[ " $(sizes "$1" "$2")" == *" $3 " ]]
}

# strike JOB INDEX SIGNAL
strike() {
    local process
    process=$(process_of "$(member "$1" "$2")")
    [[ -n $process ]] && kill "-$3" "$process"
}

# has_stepped_past JOB INDEX STEP
has_stepped_past() {
    (($(step_of "$(member "$1" "$2")") > $3))
}

# goes_on JOB INDEX: this worker steps on
goes_on() {
    until_true 60 has_stepped_past "$1" "$2" "$(step_of "$(member "$1" "$2")")"
}

# is_superseded POD: it has ended with 163
is_superseded() {
    api GET "$pods_path/$1" | tr -d '\n' | grep '"exitCode": *163' >/dev/null
}

# freeze JOB INDEX WITNESS: until the others have given it up; it returns, and its successor joins
freeze() {
    local frozen
    frozen=$(member "$1" "$2")
    strike "$1" "$2" STOP && goes_on "$1" "$3"
    verdict $? "$1: nobody waits for a frozen worker"
    until_true 60 sizes_end_in "$1" "$3" 2 && strike "$1" "$2" CONT && until_true 60 is_superseded "$frozen"
    verdict $? "$1: which is superseded when it returns" "$(log_of "$frozen" | tail -n 3)"
    until_true 60 sizes_end_in "$1" "$3" 3
    verdict $? "$1: and has a successor" "$(sizes "$1" "$3")"
}
