#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-operator through tests/faultproxy, which drops, delays, cuts, repeats and refuses at random: jobs come to
# their right end, and each disruption is counted once, although the API server seems unreliable. Prints ok/not ok lines
# (see tests/run).
#
#   FAULTS_SEED=n   the same choices for the same sequence of requests
# shellcheck disable=SC2016 # the pods' scripts are expanded in the pods
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
. "$root/tests/integration/faulty.sh"
seed=${FAULTS_SEED:-$RANDOM}

finish_also() {
    faulty_stop
}

echo "# FAULTS_SEED=$seed"
RANDOM=$seed

plane_start
faulty_start "$seed" 0.08 0.04
operator_start "$work/faulty"

# ---- all at once, so that the faults meet many requests

job calm '{"cleanPodPolicy":"None"}' 3 'sleep 1'
job wrong '{}' 2 'if [ $COXSWAIN_INDEX = 1 ]; then echo no such file >&2; exit 65; fi; sleep 60'
job flaky '{"backoffLimit":2}' 2 'if [ $COXSWAIN_INDEX = 1 ]; then exit 137; fi; sleep 60'
job late '{"activeDeadlineSeconds":3}' 1 'sleep 60'
job pause '{}' 2 'sleep 60'
job storm '{}' 3 'sleep 60'

wait_for calm state Succeeded 30 && [[ $(field calm total) == "" && $(pods calm) == "$(pods calm | grep -- '-1$')" ]]
verdict $? "a healthy job succeeds, nothing is replaced on the way" "$(pods calm | tr '\n' ' ')"
wait_for wrong state Failed 30
verdict $? "a permanent exit code fails the job"
wait_for late state Failed 30
verdict $? "a deadline ends the job"

wait_for pause state Running 30
api PATCH "$jobs_path/pause" '{"spec":{"suspend": true}}' >/dev/null
wait_for pause state Suspended 30
verdict $? "suspend"
api PATCH "$jobs_path/pause" '{"spec":{"suspend": false}}' >/dev/null
wait_for pause state Running 30 && [[ $(field pause attempt) == 2 && $(field pause total) == "" ]]
verdict $? "resume starts a new attempt and counts no restart"

wait_for storm state Running 30
for round in 1 2 3; do
    victim=$(member storm $((round % 3)))
    api DELETE "$pods_path/$victim" >/dev/null
    if ! wait_for storm disruptions "$round" 40 || ! wait_for storm state Running 40; then break; fi
done
[[ $(field storm disruptions) == 3 && $(field storm total) == 3 && $(field storm attempt) == 1 ]]
verdict $? "three disruptions make three restarts" "$(field storm disruptions)"
[[ $(pods storm coxswain.dev/current=true | wc -l) == 3 ]]
verdict $? "one current pod for each index" "$(pods storm coxswain.dev/current=true | tr '\n' ' ')"

wait_for flaky state Failed 30 && [[ $(field flaky failures) == 3 ]]
verdict $? "backoffLimit is exact" "$(field flaky failures)"

api DELETE "$jobs_path/storm" >/dev/null
until_true 20 no_pods_of storm
verdict $? "a deleted job leaves no pod" "$(pods storm | tr '\n' ' ')"
kill -0 "$operator" && ! grep -i 'assert\|sanitizer' operator.log
verdict $? "the operator lived through all of it" "$(tail -n 3 operator.log)"
