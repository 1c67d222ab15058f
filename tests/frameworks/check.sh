#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The examples of deploy/examples/foreign with the real frameworks: PyTorch DDP, JAX, TensorFlow MultiWorkerMirrored and
# ParameterServer, each as a TrainingJob in the embedded control plane, with a kill on the way; PyTorch DDP also with
# a frozen worker; and the sweep over jobs of PyTorch.
# Prints ok/not ok/skip lines (see tests/run).
#
#   TORCH_PYTHON=path, JAX_PYTHON=path, TF_PYTHON=path   the python3 that has the package (default: that of PATH)
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
cox=

finish_also() {
    if [[ -n $cox ]]; then kill "$cox" 2>/dev/null; fi
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

# ended FILE: the run's exit code
ended() {
    local status=0
    until_true 240 have_ended "$cox" || kill "$cox"
    wait "$cox" || status=$?
    cox=
    return $status
}

has_saved() {
    compgen -G "runs/$1/*" >/dev/null
}

# crew_starts_over JOB NAME PYTHON STEPS: a worker is killed, a second attempt goes on from the checkpoint
crew_starts_over() {
    start "$1" "$3" "$4" && until_true 120 has_saved "$1"
    verdict $? "$2: two workers train" "$(tail -n 5 "$1.log")"
    strike "$1" worker 1
    verdict $? "$2: worker 1 is killed"
    until_true 120 said "$1" 'attempt 2: begins after step [1-9]'
    verdict $? "$2: the whole crew goes on from its checkpoint" "$(tail -n 5 "$1.log")"
    ended
    verdict $? "$2: and succeeds" "$(tail -n 5 "$1.log")"
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

torch=${TORCH_PYTHON:-python3}
if has "$torch" torch "PyTorch DDP" TORCH; then
    crew_starts_over pytorch-ddp "PyTorch DDP" "$torch" 6000
    crew_hangs pytorch-ddp "PyTorch DDP" "$torch" 6000

    # In `path` python3 is still the one that has PyTorch.
    PATH="$work/path:$PATH" "$bin/cox" run "$root/deploy/examples/sweeps/pytorch.yaml" --state "$work/sweep" >sweep.log 2>&1 &
    cox=$!
    ended && grep -q 'pytorch is complete: 8 of 8 trials succeeded' sweep.log && grep -q ' best  *pytorch-[0-7]: validationAccuracy 0\.7' sweep.log
    verdict $? "PyTorch: a sweep finds the trial with the best accuracy" "$(tail -n 12 sweep.log)"
fi

jax=${JAX_PYTHON:-python3}
if has "$jax" jax "JAX" JAX; then
    crew_starts_over jax-spmd "JAX" "$jax" 6000
fi

tensorflow=${TF_PYTHON:-python3}
if has "$tensorflow" tensorflow "TensorFlow" TF; then
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
