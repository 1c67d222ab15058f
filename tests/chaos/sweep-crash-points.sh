#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Kills the operator before and after each write to a sweep and its trials, which are jobs with real workers: statuses, creation, suspension,
# resumption. Lives: one in which TPE draws the values and the sweep is suspended and resumed; one in which ASHA pauses trials
# and lets some go on; and a population, whose second generation goes on from the checkpoints of the first. After a crash at any point, the
# successor must bring the sweep to the same end as one that was left alone: the same values, parents, rungs and objectives, digit for digit,
# each trial created once, no pod left.
#
#   BUILD=build tests/chaos/sweep-crash-points.sh        make crash-points
#   CRASH_LANES=n   lives at a time (2)
#   CRASH_FROM=n CRASH_TO=n   only these points
#   CRASH_CREATES=yes   the points are the creations of trials alone
#   CRASH_SWEEPS="TPE ASHA PBT"   only these lives
# Prints ok/not ok lines (see tests/run).
# shellcheck disable=SC2154,SC2317 # plane.sh sets variables; until_true calls functions
set -uo pipefail

bin=$(cd "${BUILD:?}" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/chaos/crashing.sh"
if ! command -v python3 >/dev/null; then
    echo "skip sweep-crash-points: python3 is not installed"
    exit 0
fi

# ---- one lane: a control plane of its own, and one life for each of its points

if [[ ${1:-} == lane ]]; then
    lane=$2 work=$3
    lane_begin
    . "$root/tests/integration/sweep.sh"
    mkdir runs
    plane_start --volume "runs=$work/runs"
    policy='"storage":[{"name":"runs","persistentVolumeClaim":{"claimName":"runs"}}],'
    coxswain='"checkpoint":{"storage":"runs","everySteps":1000,"keep":1},"evaluation":{"everySteps":10},'
    rates='"parameters":[{"path":"coxswain.training.optimizer.learningRate","logUniform":{"min":0.0001,"max":0.5}}]'
    counted='"writes": true, "path": "/training"'
    [[ -z ${CRASH_CREATES:-} ]] || counted='"method": "POST", "path": "/trainingjobs"'
    # What the end of a sweep is compared by.
    outcome='json.dumps([{k: r.get(k) for k in ("state", "values", "parent", "rungs", "objective")} for r in status.get("results", [])])'

    # start NAME: the sweep of this life
    start() {
        echo 10 >delay
        [[ $kind != TPE ]] || echo 40 >delay # slow enough to be suspended while it runs
        case $kind in
            TPE) sweep "$1" '"algorithm":{"type":"TPE","seed":5,"startupTrials":1},"maxTrials":3,"parallelism":1,'"$rates" 30 ;;
            ASHA) sweep "$1" '"algorithm":{"type":"Grid"},"parallelism":1,"earlyStopping":{"type":"ASHA","minSteps":10,"reductionFactor":2,
                "action":"Pause"},"parameters":[{"path":"coxswain.training.optimizer.learningRate","values":[0.0001,0.05,0.1]}]' 40 ;;
            PBT) sweep "$1" '"algorithm":{"type":"PBT","population":2,"seed":2},"maxTrials":4,"parallelism":2,'"$rates" 20 ;;
        esac
    }

    # reached NAME STATE
    reached() {
        if has_crashed; then operator_start; fi
        is_told "$1" "state(s) == '$2'"
    }

    no_pod_is_left() {
        local trial
        for trial in 0 1 2 3; do
            api GET "$pods_path?labelSelector=coxswain.dev/job-name%3D$1-$trial" | contains '"phase": *"\(Running\|Pending\)"' && return 1
        done
        return 0
    }

    # to_its_end NAME: true when it went as it should; says what did not
    to_its_end() {
        if [[ $kind == TPE ]]; then
            second_runs() { ! reached "$1" Failed && is_told "$1" 'len(t) > 1'; }
            until_true $patience second_runs "$1" || { echo "its second trial never comes"; return 1; }
            api PATCH "$sweeps_path/$1" '{"spec":{"suspend":true}}' >/dev/null
            halted() { reached "$1" Suspended || reached "$1" Complete; } # on a busy machine it may end before
            until_true $patience halted "$1" || { echo "is never suspended"; return 1; }
            api PATCH "$sweeps_path/$1" '{"spec":{"suspend":false}}' >/dev/null
        fi
        until_true $patience reached "$1" Complete || { echo "never completes: $(told "$1" status)"; return 1; }
        until_true $patience no_pod_is_left "$1" || { echo "a pod is left"; return 1; }
    }

    # as_undisturbed NAME TRIALS
    as_undisturbed() {
        told "$1" "$outcome" >ended
        cmp -s ended "outcome-$kind" || { echo "ends in $(cat ended), without a crash in $(cat "outcome-$kind")"; return 1; }
        kill -0 "$watcher" 2>/dev/null || { echo "the watch of its trials has ended before"; return 1; }
        "$root/tests/chaos/watched.py" watch.json "$(told "$1" 'len(status["results"])')" 2>&1
    }

    # undisturbed: the outcome that crashes must not change
    undisturbed() {
        operator_start
        start "undisturbed-${kind,,}"
        to_its_end "undisturbed-${kind,,}" >why && told "undisturbed-${kind,,}" "$outcome" >"outcome-$kind" && grep -q objective "outcome-$kind"
        local result=$?
        operator_kill
        ((result == 0)) || echo "not ok $kind without a crash: $(cat why "outcome-$kind")"
        return "$result"
    }

    # killed POINT WHEN: fails if no life has this number of writes
    killed() {
        local point=$1 afterwards=$2 result where
        name=${kind,,}-$point-$afterwards
        watch_objects "$jobs_path?labelSelector=coxswain.dev/sweep-name%3D$name"
        crashed "$counted" "$point" "$afterwards"
        start "$name"
        { to_its_end "$name" && as_undisturbed "$name"; } >why
        result=$?
        where=$(where_crashed)
        life_end
        api DELETE "$sweeps_path/$name" >/dev/null
        if ((result != 0)); then
            echo "not ok $kind killed at write $point, ${where:-nowhere}: $(cat why)"
        elif [[ -z $where ]]; then
            [[ -z ${CRASH_CREATES:-} ]] || echo "not ok $kind: trial $point is never created"
            echo "# with $kind a sweep has fewer than $point writes"
            return 1
        else
            echo "ok $kind killed at write $point, $where"
        fi
    }

    for kind in ${CRASH_SWEEPS:-TPE ASHA PBT}; do
        undisturbed || continue
        lane_points false true
    done
    exit
fi

lanes_run
