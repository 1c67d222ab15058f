# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154 # $trials, $parallelism and $limit are the caller's, $took and $peak are for it
#
# How `cluster` and `katib` measure the process that runs a sweep's trials, for scripts that source this file.

# memory PROCESS FIELD: of /proc/PROCESS/status, in kB
memory() {
    awk -v field="$2:" '$1 == field {print $2}' "/proc/$1/status"
}

# processor_time PROCESS: in seconds
processor_time() {
    awk -v hertz="$(getconf CLK_TCK)" '{printf "%.1f", ($14 + $15) / hertz}' "/proc/$1/stat"
}

# await_trials PROCESS COMPLETE: until that command succeeds; sets took (s) and peak (RssAnon in kB). Fails after $limit seconds, or when
# the process ends.
await_trials() {
    local began=$SECONDS now
    peak=0
    until "$2"; do
        now=$(memory "$1" RssAnon)
        ((now <= peak)) || peak=$now
        if ((SECONDS - began > limit)) || ! kill -0 "$1"; then
            took=$((SECONDS - began))
            return 1
        fi
        sleep 1
    done
    took=$((SECONDS - began))
}

# print_row WHO PROCESS IDLE SUCCEEDED: IDLE is its RssAnon before the trials, in kB
print_row() {
    echo "| trials, at a time | time | trials a minute | $1: RssAnon before, at most | peak RSS | processor time |"
    echo "|---|---|---|---|---|---|"
    awk -v trials="$4" -v parallelism="$parallelism" -v took="$took" -v idle="$3" -v peak="$peak" -v rss="$(memory "$2" VmHWM)" \
        -v processor="$(processor_time "$2")" 'BEGIN {
            printf "| %d, %d | %d s | %d | %.1f MB, ", trials, parallelism, took, trials * 60 / took, idle / 1024
            printf "%.1f MB | %.1f MB | %s s |\n", peak / 1024, rss / 1024, processor}'
    echo
}
