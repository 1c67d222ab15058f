# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034 # $bin, $work and $network are the caller's; pids is read there
#
# Elastic crews of PeerToPeer that a script starts by hand, each worker told of its job as an operator tells a pod: source this file
# in the script's own directory, `work`, with `bin` and `network` set.

pids=() # of the workers by their seats, those that have ended too
peers_name='' peers_storage='' peers_document=''
peers_batch=24 peers_workers=2

# peers NAME FOLDER STEPS_PER_EPOCH SAVE_EVERY: the job that workers join from now on, whose storage is the folder
peers() {
    local seat
    peers_name=$1 peers_storage=$2
    peers_document='{"name":"'$1'","namespace":"default","strategy":{"type":"PeerToPeer"},
        "workers":{"replicas":'$peers_workers'},"model":{"preset":"mlp","width":64},"devices":{"count":1},
        "data":{"format":"Synthetic","examples":1100,"validation":{"last":100}},
        "training":{"steps":100000000,"stepsPerEpoch":'$3',"batchSize":'$peers_batch',"seed":7,
            "optimizer":{"type":"AdamW","learningRate":"2e-4"}},
        "storage":[{"name":"runs"}],"checkpoint":{"storage":"runs","path":"'$1'","everySteps":'$4',"keep":2},
        "crew":{"roles":[{"name":"worker","count":'$peers_workers',"minCount":1,"maxCount":4}],
            "hostPattern":"{role}-{index}","port":2222}}'
    for seat in 0 1 2 3; do echo "$network.$((seat + 1)) worker-$seat"; done >hosts
}

# join SEAT INCARNATION: its log is NAME.SEAT.INCARNATION.log
join() {
    COXSWAIN_JOB=$peers_document COXSWAIN_JOB_UID=hand COXSWAIN_ATTEMPT=1 COXSWAIN_INCARNATION=$2 COXSWAIN_ROLE=worker \
        COXSWAIN_INDEX=$1 COXSWAIN_POD_IP=$network.$(($1 + 1)) COXSWAIN_HOSTS_FILE=$work/hosts COXSWAIN_THREADS=1 \
        COXSWAIN_STORAGE=runs=$peers_storage COXSWAIN_TERMINATION_LOG=$work/ended.$1.$2 \
        "$bin/coxswain-worker" >"$peers_name.$1.$2.log" 2>&1 &
    pids[$1]=$!
}

# worlds SEAT INCARNATION: the sizes of those that this worker tells of, a blank behind each
worlds() {
    sed -n 's/.*the crew has \([0-9]*\) worker.*/\1/p' "$peers_name.$1.$2.log" | tr '\n' ' '
}
