# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # $bin, $work and $worker are of by_hand.sh
#
# Disks that take their time, for workers by hand: source this file after by_hand.sh. Workers that are started from then on read and
# write by tests/slowdisk, each job as the file NAME.slow says.

cat >slow-worker <<SH
#!/bin/sh
SLOW_DISK=\${SLOW_DISK_OF:?}.slow LD_PRELOAD=$bin/tests/slow-disk.so exec "$bin/coxswain-worker" "\$@"
SH
chmod +x slow-worker
worker=$work/slow-worker

# disk_of NAME: the workers that are started next are of this job
disk_of() {
    export SLOW_DISK_OF=$work/$1
}

# slow NAME MS WORD…: from now on, each call on a file takes that many milliseconds longer if its path contains one of the words
slow() {
    echo "${@:2}" >"$1.slow.new"
    mv "$1.slow.new" "$1.slow"
}

# hold NAME WORD…: they stand still
hold() {
    slow "$1" 86400000 "${@:2}"
}

quick() {
    rm -f "$1.slow"
}

# there_is PATTERN: a file of such a name
there_is() {
    compgen -G "$1" >/dev/null
}

# has_open PID WORD: the process has a file open whose path contains the word
has_open() {
    find "/proc/$1/fd" -lname "*$2*" 2>/dev/null | contains .
}
