#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Kills the operator before and after every single write of a job's life: creation, eviction of a pod, suspend, resume, success; once with
# a job whose first pods wait for a PodGroup, and once with one whose pods wait for nothing. After a crash at any point, the successor must
# bring the job to the same end: one disruption, one suspension, no pod created twice and none left. In a third life, pods are removed by
# force between the two operators: those that are in no status, and those that the status still promises. tests/faultproxy counts the
# writes and kills the operator.
#
#   BUILD=build tests/chaos/crash-points.sh        make crash-points
#   CRASH_LANES=n   lives at a time (2)
#   CRASH_FROM=n CRASH_TO=n   only these points
#   CRASH_CREATES=yes   the points are the answers to creates of pods alone, whose number no timing changes
#   CRASH_SCHEDULERS="Coscheduling None Removed"   only these lives: with a PodGroup, without, and without whose pods are removed
# Prints ok/not ok lines (see tests/run).
# shellcheck disable=SC2016,SC2154,SC2317 # the pods' scripts are expanded in the pods; plane.sh sets variables; until_true calls functions
set -uo pipefail

bin=$(cd "${BUILD:?}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/chaos/crashing.sh"
creates=${CRASH_CREATES:-}

# ---- one lane: a control plane of its own, and one life for each of its points

if [[ ${1:-} == lane ]]; then
    lane=$2 work=$3
    lane_begin
    mkdir crds
    cp "$root/tests/integration/crds/coscheduling.yaml" crds
    plane_start --crd "$work/crds"
    counted='"writes": true'
    [[ -z $creates ]] || counted='"method": "POST", "path": "/pods"'
    group=apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups

    # remove_promised NAME: by force, as from nodes that are cut off, the pods that the status promises, or that it knows
    # nothing of. False: there is none
    remove_promised() {
        local pod incarnation indices removed=1
        incarnation=$(field "$1" incarnation)
        indices=$(field "$1" pending) # of two workers: "0", "1", "0-1" or none
        for pod in $(pods "$1"); do
            [[ -z $incarnation || $pod =~ -worker-[${indices:-none}]-$incarnation$ ]] || continue
            api DELETE "$pods_path/$pod" '{"gracePeriodSeconds":0}' >/dev/null
            removed=0
        done
        return "$removed"
    }

    # The successor comes once the first one is dead.
    follow() {
        has_crashed || return 0
        if [[ $scheduler != Removed ]]; then
            operator_start
            return
        fi
        remove_promised "$name" || kept=yes
        api DELETE "$lease" >/dev/null
        operator_start faulty --leader-elect --lease-namespace default
    }

    # Where nothing was removed the life is one without: it is cut short.
    reached() {
        follow
        [[ -n $kept ]] || field_is "$@"
    }

    # life NAME: true when it went as it should; says what did not
    life() {
        local name=$1
        job "$name" '{"cleanPodPolicy":"None","gang":{"scheduler":"'"${scheduler/Removed/None}"'"}}' 2 \
            'until [ -e '"$work/$name"' ]; do sleep 0.1; done'
        until_true $patience reached "$name" state Running || { echo "never runs"; return 1; }
        api POST "$pods_path/$(member "$name" 1)/eviction" '{"apiVersion":"policy/v1","kind":"Eviction"}' >/dev/null
        until_true $patience reached "$name" disruptions 1 || { echo "the eviction is not counted"; return 1; }
        until_true $patience reached "$name" state Running || { echo "the evicted pod does not come back"; return 1; }
        api PATCH "$jobs_path/$name" '{"spec":{"suspend": true}}' >/dev/null
        until_true $patience reached "$name" state Suspended || { echo "is never suspended"; return 1; }
        api PATCH "$jobs_path/$name" '{"spec":{"suspend": false}}' >/dev/null
        until_true $patience reached "$name" state Running || { echo "is never resumed"; return 1; }
        touch "$name"
        until_true $patience reached "$name" state Succeeded || { echo "never succeeds"; return 1; }
        until_true $patience group_gone "$name" || { echo "the PodGroup stays"; return 1; }
        said="$(field "$name" disruptions) disruptions, $(field "$name" total) restarts, attempt $(field "$name" attempt)"
        [[ $said == "1 disruptions, 1 restarts, attempt 2" ]] || { echo "$said"; return 1; }
        kill -0 "$watcher" 2>/dev/null || { echo "the watch of its pods has ended before"; return 1; }
        # Two, one more for the one that was evicted, and two after the pause.
        "$root/tests/chaos/watched.py" watch.json 5 2>&1 || return
    }

    group_gone() {
        follow
        api GET "$group/$1" | contains '"code": *404'
    }

    # killed POINT WHEN: fails if no life has this number of writes, or no relevant one
    killed() {
        local point=$1 afterwards=$2
        kept=''
        name=life-$point-$afterwards-${scheduler,,}
        watch_objects "$pods_path?labelSelector=coxswain.dev/job-name%3D$name"
        crashed "$counted" "$point" "$afterwards"
        # A job that appears while the operator holds the lease gets its first crew without a promise
        # (operator/controller/plan/first_crew.h), so the operator must be ready before.
        [[ $scheduler == Coscheduling ]] || until_true $patience grep -q 'caches are complete, jobs are reconciled from now on' operator.log
        life "$name" >why
        result=$?
        where=$(where_crashed)
        life_end
        api DELETE "$jobs_path/$name" >/dev/null
        if [[ -n $creates && ($scheduler == Removed && -n $kept || -z $where) ]]; then
            echo "not ok pod $point is created, and none was there to be removed: $(cat why)"
        elif [[ -n $kept && -n $where ]]; then
            echo "# killed at write $point, $where: no pod is there that is still promised"
        elif ((result != 0)); then
            echo "not ok killed at write $point, ${where:-nowhere}: $(cat why)"
        elif [[ -z $where ]]; then
            echo "# a life with gang scheduler $scheduler has fewer than $point writes"
            return 1
        else
            echo "ok killed at write $point, $where"
        fi
    }

    for scheduler in ${CRASH_SCHEDULERS:-Coscheduling None Removed}; do
        if [[ -n $creates ]]; then lane_points true; else lane_points false true; fi
    done
    exit
fi

lanes_run
