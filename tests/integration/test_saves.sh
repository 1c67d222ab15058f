#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume that fills while a job trains: training goes on, the job's status and `cox` say so, and take it back once there is
# room. Where no tmpfs can be mounted the worker may write no large files for a while instead (RLIMIT_FSIZE). Prints
# ok/not ok lines (see tests/run).
set -uo pipefail

if ! command -v prlimit >/dev/null; then
    echo "skip saves: prlimit is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"

finish_also() {
    plane_stop
    umount "$work/runs" 2>/dev/null
}

. "$root/tests/integration/training.sh"

mkdir runs
reason=SaveFailed
if mount -t tmpfs -o size=8m tmpfs runs 2>/dev/null; then reason=VolumeFull; fi

# fill PROCESS: no more can be written by it
fill() {
    if [[ $reason == VolumeFull ]]; then
        dd if=/dev/zero of=runs/ballast bs=64k 2>/dev/null
        [[ -s runs/ballast ]]
    else
        prlimit --fsize=1024: --pid "$1"
    fi
}

make_room() {
    if [[ $reason == VolumeFull ]]; then rm runs/ballast; else prlimit --fsize=unlimited: --pid "$1"; fi
}

# condition JOB: CheckpointsFailing as it stands
condition() {
    api GET "$jobs_path/$1" | tr -d '\n' | grep -o '"type": *"CheckpointsFailing"[^}]*'
}

# failing JOB STATUS REASON
failing() {
    condition "$1" | grep "\"status\": *\"$2\".*\"reason\": *\"$3\"" >/dev/null
}

event() {
    api GET apis/events.k8s.io/v1/namespaces/default/events | tr -d '\n' | grep "\"reason\": *\"$1\"" >/dev/null
}

make_digits
plane_start --volume "digits=$work" --volume "runs=$work/runs"
operator_start
crew full 1 10000000
await_step full 200
! condition full
verdict $? "as long as checkpoints are saved nothing is said"
worker=$(process_of "$(member full 0)")
fill "$worker"
until_true 60 failing full True "$reason"
verdict $? "a full volume is a condition of the job ($reason)" "$(condition full)"
goes_on full 0
verdict $? "and training goes on"
until_true 20 event "$reason"
verdict $? "an event tells it"
export KUBECONFIG=$work/state/kubeconfig
"$bin/cox" why full | grep "but it cannot save ($reason): save step .*the newest checkpoint is of step" >/dev/null
verdict $? "cox why tells it" "$("$bin/cox" why full)"
"$bin/cox" describe full | grep "CheckpointsFailing *True.*$reason" >/dev/null
verdict $? "cox describe tells it" "$("$bin/cox" describe full | grep -A9 Conditions)"
curl -s "http://$(address_of "$(member full 0)"):8080/metrics" | grep '^coxswain_worker_failed_saves [1-9]' >/dev/null
verdict $? "and the worker's metrics count it"
make_room "$worker"
until_true 60 failing full False Saved
verdict $? "once there is room the condition ends" "$(condition full)"
until_true 20 event Saved
verdict $? "with an event"
[[ $(process_of "$(member full 0)") == "$worker" && $(field full total) == "" ]]
verdict $? "and nothing was restarted"
