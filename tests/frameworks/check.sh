#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of deploy/examples/foreign with the real frameworks: PyTorch DDP, JAX, TensorFlow MultiWorkerMirrored and
# ParameterServer and the Trainer of Hugging Face Transformers, each as a TrainingJob in the embedded control plane, with a kill on the
# way; PyTorch DDP also with a frozen worker; and the sweep over jobs of PyTorch.
# Prints ok/not ok/skip lines (see tests/run).
#
#   FRAMEWORKS=names     which of pytorch, transformers, jax and tensorflow (default: all)
#   TORCH_PYTHON=path, JAX_PYTHON=path, TF_PYTHON=path   the python3 that has the package (default: that of check-python's environment, with
#                                                        PyTorch, Transformers and JAX; for TensorFlow that of PATH)
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
cox=

finish_also() {
    if [[ -n $cox ]]; then kill "$cox" 2>/dev/null; fi
}

# wanted FRAMEWORK
wanted() {
    [[ " ${FRAMEWORKS:-pytorch transformers jax tensorflow} " == *" $1 "* ]]
}

# has PYTHON PACKAGE NAME: whether it can be imported; says so when not
has() {
    if "$1" -c "import $2" >/dev/null 2>&1; then return 0; fi
    echo "skip $3: $1 has no $2; pip install $2 in a venv and name its python in ${4}_PYTHON"
    return 1
}

# start NAME PYTHON STEPS: runs deploy/examples/foreign/NAME.yaml with this python as python3, and with enough steps that a
# kill finds it training
start() {
    rm -rf state runs path
    mkdir runs path
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$2" >path/python3
    chmod +x path/python3
    sed -e 's/^\( *\)command: \[python3.*/&\n\1env: [{name: STEPS, value: "'"$3"'"}]/' \
        -e 's/progressDeadlineSeconds: .*/progressDeadlineSeconds: 60/' "$root/deploy/examples/foreign/$1.yaml" \
        >"$1.yaml"
    PATH="$work/path:$PATH" "$bin/cox" run "$1.yaml" --state "$work/state" \
        --volume "scripts=$root/deploy/examples/foreign" --volume "runs=$work/runs" >"$1.log" 2>&1 &
    cox=$!
    plane_await 30
}

# progress_has JOB EXPRESSION
progress_has() {
    api GET "$jobs_path/$1" | tr -d ' \n' | contains -- "\"progress\":{.*$2"
}

# current JOB ROLE INDEX: the name of the pod that holds that place
current() {
    api GET "$pods_path?labelSelector=coxswain.dev/job-name%3D$1,coxswain.dev/current=true,coxswain.dev/role=$2" |
        tr -d '\n' | grep -o "\"name\": *\"$1-$2-$3-[0-9]*\"" | head -n 1 | cut -d '"' -f 4
}

said() {
    grep -q -- "$2" "$1.log"
}

# strike JOB ROLE INDEX [SIGNAL]
strike() {
    local process
    process=$(process_of "$(current "$1" "$2" "$3")")
    [[ -n $process ]] && kill "-${4:-KILL}" "$process"
}

# ended [SECONDS]: the run's exit code
ended() {
    local status=0
    until_true "${1:-240}" have_ended "$cox" || kill "$cox"
    wait "$cox" || status=$?
    cox=
    return $status
}

has_saved() {
    compgen -G "runs/$1/*" >/dev/null
}

# goes_on JOB NAME [SECONDS [RESTART_SECONDS]]: worker 1 is killed; the crew goes on from the checkpoint and ends
goes_on() {
    strike "$1" worker 1
    verdict $? "$2: worker 1 is killed"
    until_true "${4:-120}" said "$1" 'attempt 2: begins after step [1-9]'
    verdict $? "$2: the whole crew goes on from its checkpoint" "$(tail -n 5 "$1.log")"
    ended "${3:-240}"
    verdict $? "$2: and succeeds" "$(tail -n 5 "$1.log")"
}

# crew_starts_over JOB NAME PYTHON STEPS: a worker is killed, a second attempt goes on from the checkpoint
crew_starts_over() {
    start "$1" "$3" "$4" && until_true 120 has_saved "$1"
    verdict $? "$2: two workers train" "$(tail -n 5 "$1.log")"
    goes_on "$1" "$2"
}

# crew_hangs JOB NAME PYTHON STEPS: a worker is frozen, and its peer waits for it in an all-reduce, until the deadline for progress
crew_hangs() {
    start "$1" "$3" "$4" && until_true 120 has_saved "$1"
    strike "$1" worker 1 STOP
    verdict $? "$2: worker 1 is frozen"
    until_true 180 said "$1" "$1 is Restarting: no new step for" && until_true 120 said "$1" 'attempt 2: begins after step [1-9]'
    verdict $? "$2: the crew that hangs goes on from its checkpoint" "$(tail -n 5 "$1.log")"
    api GET apis/events.k8s.io/v1/namespaces/default/events | contains "pod $1-worker-1-1 printed no stack before it was killed, .*; pod $1-worker-0-1 was at .* < main ($1.py:"
    verdict $? "$2: an event names the frozen worker, and quotes the stack of the one that waited for it" \
        "$(api GET apis/events.k8s.io/v1/namespaces/default/events | grep note)"
    ended
    verdict $? "$2: and succeeds although it hung" "$(tail -n 5 "$1.log")"
}

# The Trainer sends its progress to the operator, not to the log. A worker is killed; the crew goes on from the Trainer's checkpoint.
trainer_reports() {
    local job=pytorch-transformers name="Transformers"
    start $job "$1" 800 && until_true 240 progress_has $job '"name":"loss","value":"[0-9.]*","step":[1-9]' &&
        progress_has $job '"totalSteps":800,' && progress_has $job '"secondsRemaining":[0-9]'
    verdict $? "$name: the Trainer's steps and loss are the job's progress" "$(api GET "$jobs_path/$job"; tail -n 5 $job.log)"
    said $job 'rank 0 of 2, attempt 1'
    verdict $? "$name: its two workers are one crew" "$(grep rank $job.log)"
    until_true 120 has_saved $job
    verdict $? "$name: saves a checkpoint" "$(tail -n 5 $job.log)"
    goes_on $job "$name" 900 240
    said $job 'done: loss'
    verdict $? "$name: says its loss at the end" "$(tail -n 5 $job.log)"
}

torch_lacks() { [[ -z ${TORCH_PYTHON:-} ]] && { wanted pytorch || wanted transformers; }; }
jax_lacks() { [[ -z ${JAX_PYTHON:-} ]] && wanted jax; }
prepared=
if { torch_lacks || jax_lacks; } && environment=$("$root/scripts/python-environment" "$root/python/requirements-test.txt"); then
    prepared=$environment/bin/python
    if torch_lacks; then "$root/scripts/torch-without-cuda" "$environment"; fi
fi

torch=${TORCH_PYTHON:-${prepared:-python3}}
if wanted pytorch && has "$torch" torch "PyTorch DDP" TORCH; then
    crew_starts_over pytorch-ddp "PyTorch DDP" "$torch" 6000
    crew_hangs pytorch-ddp "PyTorch DDP" "$torch" 6000

    # In `path` python3 is still the one that has PyTorch.
    PATH="$work/path:$PATH" "$bin/cox" run "$root/deploy/examples/sweeps/pytorch.yaml" --state "$work/sweep" >sweep.log 2>&1 &
    cox=$!
    ended && grep -q 'pytorch is complete: 8 of 8 trials succeeded' sweep.log && grep -q ' best  *pytorch-[0-7]: validationAccuracy 0\.7' sweep.log
    verdict $? "PyTorch: a sweep finds the trial with the best accuracy" "$(tail -n 12 sweep.log)"
fi

if wanted transformers && has "$torch" accelerate "Transformers" TORCH && has "$torch" transformers "Transformers" TORCH; then
    trainer_reports "$torch"
fi

jax=${JAX_PYTHON:-${prepared:-python3}}
if wanted jax && has "$jax" jax "JAX" JAX; then
    crew_starts_over jax-spmd "JAX" "$jax" 6000
fi

tensorflow=${TF_PYTHON:-python3}
if wanted tensorflow && has "$tensorflow" tensorflow "TensorFlow" TF; then
    crew_starts_over tensorflow-mirrored "TensorFlow MultiWorkerMirrored" "$tensorflow" 2000

    name="TensorFlow ParameterServer" job=tensorflow-parameter-server
    start "$job" "$tensorflow" 600 && until_true 120 has_saved "$job"
    verdict $? "$name: chief, ps and two workers train" "$(tail -n 5 "$job.log")"
    strike "$job" worker 1
    verdict $? "$name: worker 1 is killed"
    until_true 120 said "$job" "worker 1: ready ($job-worker-1-2)" &&
        [[ $(field "$job" attempt) == 1 ]]
    verdict $? "$name: it alone is replaced" "$(tail -n 5 "$job.log")"
    strike "$job" ps 0
    verdict $? "$name: the ps is killed"
    until_true 120 said "$job" 'attempt 2: begins after step [1-9]'
    verdict $? "$name: the whole crew goes on from its checkpoint" "$(tail -n 5 "$job.log")"
    ended
    verdict $? "$name: and succeeds" "$(tail -n 5 "$job.log")"
fi
