# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $bin and $jobs_path are the caller's
#
# A worker that gets a tenth of its time, and what is said about it, for scripts that source this file after training.sh. A
# script that has more than one calls end_slow between them.

slowed=
export KUBECONFIG=$work/state/kubeconfig

finish_also() {
    end_slow
}

end_slow() {
    if [[ -n $slowed ]]; then kill "$slowed" 2>/dev/null; fi
    slowed=
}

# slow JOB INDEX: its present process has a tenth of the time from now on, half a second at a time
slow() {
    local process
    process=$(process_of "$(member "$1" "$2")")
    while kill -STOP "$process"; do
        sleep 0.45
        kill -CONT "$process"
        sleep 0.05
    done 2>/dev/null &
    slowed=$!
}

# condition JOB: the status of its condition Straggling
condition() {
    api GET "$jobs_path/$1" | tr -d '\n' | grep -o '"type": *"Straggling", *"status": *"[A-Za-z]*"' | cut -d '"' -f 8
}

is_straggling() {
    [[ $(condition "$1") == "$2" ]]
}

# is_measured JOB INDEX: the chief's metrics have it as slow
is_measured() {
    curl -s --max-time 2 "http://$(address_of "$(member "$1" 0)"):8080/metrics" | contains "^coxswain_worker_straggler_ratio{role=\"worker\",index=\"$2\"} [2-9]\|[1-9][0-9]"
}

# has_event JOB REASON
has_event() {
    "$bin/cox" describe "$1" | contains "$2"
}

# is_other JOB INDEX POD: the member's pod is another one now
is_other() {
    local now
    now=$(member "$1" "$2")
    [[ -n $now && $now != "$3" ]]
}
