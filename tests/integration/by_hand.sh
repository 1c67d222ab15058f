# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $root is the caller's
#
# Starts workers by hand, without a control plane: alone, or as crews that TF_CONFIG describes. Source this file first, with `root` set to
# the sources. Sets `worker` (the program) and `work`, a directory of the script's own, which is the working directory and the storage
# "runs" of its jobs. The job NAME is the document NAME.yaml there; its processes write NAME.log when alone, else NAME.INDEX.log, servers
# NAME.psINDEX.log, others NAME.ROLE.log. A file NAME.delay (NAME.INDEX.delay) makes each reading of a batch take that process as many
# milliseconds longer. At the end, all processes are killed and the directory is removed.

bin=$(cd "${BUILD:?}" && pwd) || exit 1
worker=$bin/coxswain-worker
work=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/integration/verdict.sh"
. "$root/tests/integration/digits.sh"
. "$root/tests/integration/network.sh"
unset COXSWAIN_JOB COXSWAIN_JOB_UID TF_CONFIG
worker_options=(--threads 1) # the caller may set others
cluster=                     # of the crew that was started last, as TF_CONFIG has it
of_servers=()                # NAME=VALUE…: what is in the environment of servers and of a chief of its own, and in no other's
ended=                       # see ended_with
pids=()                      # its processes: workers by their index, servers from 100 on

# set_up NAME PLACE: what else the environment of that process has, by its place in `pids`; the caller may say it anew
set_up() {
    :
}

# launch NAME LOG: becomes the worker
launch() {
    COXSWAIN_READ_DELAY=${2%.log}.delay exec "$worker" --job "$1.yaml" --storage runs="$work" "${worker_options[@]}" >>"$2" 2>&1
}

# delay NAME INDEX MS: from now on, and also one that is started later
delay() {
    echo "$3" >"$1.$2.delay.new"
    mv "$1.$2.delay.new" "$1.$2.delay"
}

# undelay NAME: all of its processes
undelay() {
    rm -f "$1".*delay
}

# lone NAME: a process without a crew, from start to end
lone() {
    rm -f "$1.log"
    (set_up "$1" 0 && launch "$1" "$1.log")
}

# refused CODE WORDS NAME: a process without a crew ends with CODE, and its last line has WORDS
refused() {
    local status
    lone "$3"
    status=$?
    [[ $status == "$1" ]] && tail -n 1 "$3.log" | grep -q -- "$2"
    verdict $? "exit $1: $3" "got $status, $(tail -n 1 "$3.log")"
}

# hosts FIRST COUNT: prints that many hosts in TF_CONFIG's form
hosts() {
    local i list=()
    for ((i = $1; i < $1 + $2; i++)); do list+=("\"$network.$i:2222\""); done
    (IFS=,; echo "[${list[*]}]")
}

# start_member NAME ROLE INDEX [INCARNATION]: one process of the crew in `cluster`, a worker, a ps, a chief (place 200) or an evaluator
# (300); adds it to `pids`
start_member() {
    local place=$3 log=$1.$3.log settings=()
    case $2 in
    ps) place=$((100 + $3)) log=$1.ps$3.log settings=("${of_servers[@]}") ;;
    chief) place=200 log=$1.chief.log settings=("${of_servers[@]}") ;;
    evaluator) place=300 log=$1.evaluator.log ;;
    esac
    {
        set_up "$1" "$place"
        ((${#settings[@]} == 0)) || export "${settings[@]}"
        TF_CONFIG="{\"cluster\":$cluster,\"task\":{\"type\":\"$2\",\"index\":$3}}" COXSWAIN_INCARNATION=${4:-0} launch "$1" "$log"
    } &
    pids[place]=$!
}

# start_crew NAME WORKERS [SERVERS]
start_crew() {
    local i servers=${3:-0}
    cluster="{\"worker\":$(hosts 1 "$2")"
    ((servers == 0)) || cluster+=",\"ps\":$(hosts 101 "$servers")"
    cluster+='}'
    pids=()
    for ((i = 0; i < servers; i++)); do start_member "$1" ps "$i"; done
    for ((i = 0; i < $2; i++)); do start_member "$1" worker "$i"; done
}

# start_with NAME INDEX SETTINGS [INCARNATION]: a worker of the crew in `cluster` with these (VARIABLE=VALUE …) in its environment
start_with() {
    # shellcheck disable=SC2086 # several
    if [[ $3 ]]; then local -x $3; fi
    start_member "$1" worker "$2" "${4:-0}"
}

# start_pair NAME SETTINGS SETTINGS: a crew of two that are not alike
start_pair() {
    cluster="{\"worker\":$(hosts 1 2)}"
    pids=()
    start_with "$1" 0 "$2"
    start_with "$1" 1 "$3"
}

# await PID…: returns the status of the last one that failed, 0 if none did. Kills processes that do not end within a minute, so that the
# test fails instead of hanging.
await() {
    local pid status=0
    until_true 60 have_ended "$@" || kill -KILL "$@" 2>/dev/null
    for pid in "$@"; do wait "$pid" || status=$?; done
    return "$status"
}

await_crew() {
    await "${pids[@]}"
}

# end_crew SIGNAL: to all of them, until they have ended; their status says something unless they were killed
end_crew() {
    local status=0
    kill "-$1" "${pids[@]}" 2>/dev/null
    await_crew 2>/dev/null || status=$?
    pids=()
    [[ $1 == KILL ]] || return "$status"
}

# any_has_ended PID…: children of the script
any_has_ended() {
    local pid
    for pid in "$@"; do
        if have_ended "$pid"; then return 0; fi
    done
    return 1
}

# ended_with CODE WORDS NAME INDEX: that process of the crew, a server from 100 on, ends so: with the code, and WORDS (a regular
# expression) in its last line. How it did end is in `ended`
ended_with() {
    local status=0 log=$3.$4.log
    if (($4 >= 100)); then log=$3.ps$(($4 - 100)).log; fi
    await "${pids[$4]}" || status=$?
    ended="$status, $(tail -n 1 "$log")"
    [[ $status == "$1" && $ended =~ $2 ]]
}

# lose INDEX…: these workers are killed
lose() {
    local index
    for index in "$@"; do kill -KILL "${pids[index]}"; done
    for index in "$@"; do wait "${pids[index]}" 2>/dev/null || true; done
}

# has_ended_or_waits NAME INDEX: this worker has ended, or waits for a member that is not there
has_ended_or_waits() {
    have_ended "${pids[$2]}" || [[ $(tail -qn 1 "$1.$2.log") == waiting* ]]
}

# crew NAME WORKERS [SERVERS]: a whole crew, from start to end. With servers, the chief does not wait for the other workers: one
# that comes when all is done waits for a chief, in vain.
crew() {
    local i
    start_crew "$@"
    if ((${3:-0} == 0)); then
        await_crew
        return
    fi
    await "${pids[0]}" "${pids[@]:100}" || return
    for ((i = 1; i < $2; i++)); do
        until_true 60 has_ended_or_waits "$1" "$i" || return
        if have_ended "${pids[i]}"; then await "${pids[i]}" || return; else lose "$i"; fi
    done
}

# saved_step FOLDER: of its newest checkpoint, 0 when there is none
saved_step() {
    local step
    step=$(find "$1" -maxdepth 1 -name 'step-*' 2>/dev/null | sort | tail -n 1 | sed 's/.*step-0*\([0-9]*\)\..*/\1/')
    echo "${step:-0}"
}

# has_saved FOLDER [STEP]: one is committed, of that step or a later one
has_saved() {
    (($(saved_step "$1") >= ${2:-1}))
}

# same_weights NAME [REFERENCE]
same_weights() {
    cmp -s "$1.safetensors" "${2:-reference}.safetensors"
}

# tails NAME: what its processes have said last, in one line
tails() {
    tail -qn 2 "$1".*log | tr '\n' ' '
}
