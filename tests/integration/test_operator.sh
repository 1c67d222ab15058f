#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# coxswain-operator against the embedded control plane, with pods that are shell scripts: a healthy life, replacement of
# killed and deleted pods, suspend and resume, deadline, TTL, bad input, and SIGKILL of the operator at random moments.
# Prints ok/not ok lines (see tests/run).
# shellcheck disable=SC2016 # the pods' scripts are expanded in the pods
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"

plane_start
operator_start

job calm '{"cleanPodPolicy":"None"}' 3 'test $(wc -c <$COXSWAIN_CREW_KEY_FILE) = 32 || exit 64; until [ -e '"$work/go"' ]; do sleep 0.1; done'
wait_for calm state Running && touch go && wait_for calm state Succeeded
verdict $? "a healthy job runs and succeeds"
[[ $(field calm total) == "" && $(pods calm | wc -l) == 3 ]]
verdict $? "nothing was replaced on the way"
secrets() { api GET api/v1/namespaces/default/secrets | grep -c '"name": *"calm-crew-'; }
no_secrets() { [[ $(secrets) == 0 ]]; }
[[ $(secrets) == 1 ]]
verdict $? "the crew has a key in a Secret" "$(secrets)"
api DELETE "$jobs_path/calm" >/dev/null
until_true 15 no_secrets
verdict $? "which goes with the job" "$(secrets)"

job wrong '{}' 2 'if [ $COXSWAIN_INDEX = 1 ]; then echo no such file >&2; exit 65; fi; sleep 60'
wait_for wrong state Failed
verdict $? "a permanent exit code fails the job"
api GET "$jobs_path/wrong" | contains 'no such file (pod wrong-worker-1-1, exit code 65: the training data is wrong or missing)'
verdict $? "it is told with its meaning and the program's error line" "$(api GET "$jobs_path/wrong")"
api PATCH "$jobs_path/wrong" '{"spec":{"runPolicy":{"ttlSecondsAfterFinished":2}}}' >/dev/null # not before it was looked at
is_gone() { api GET "$jobs_path/$1" | contains NotFound; }
until_true 60 is_gone wrong
verdict $? "the job goes after its TTL"

job late '{"activeDeadlineSeconds":1}' 1 'sleep 60'
wait_for late state Failed && wait_for late readySummary 0/1
verdict $? "a deadline ends the job"

job flaky '{"backoffLimit":2}' 2 'if [ $COXSWAIN_INDEX = 1 ]; then exit 137; fi; sleep 60'
wait_for flaky state Failed 30 && [[ $(field flaky failures) == 3 ]]
verdict $? "backoffLimit is exact"

job pause '{}' 2 'quit() { exit 0; }; trap quit TERM; sleep 60 & wait'
wait_for pause state Running
api PATCH "$jobs_path/pause" '{"spec":{"suspend": true}}' >/dev/null
wait_for pause state Suspended && until_true 60 no_pods_of pause && field_is pause state Suspended
verdict $? "suspend ends the pods, which is no success, although they exit 0" "$(field pause state)"
api PATCH "$jobs_path/pause" '{"spec":{"suspend": false}}' >/dev/null
wait_for pause state Running && [[ $(field pause attempt) == 2 && $(field pause total) == "" ]]
verdict $? "resume starts a new attempt and counts no restart"
api DELETE "$jobs_path/pause" >/dev/null

# Disruptions while the operator is killed again and again: each is counted once, and the crew always comes back.
job storm '{}' 3 'sleep 1000'
wait_for storm state Running
for round in 1 2 3 4 5; do
    victim=$(pods storm coxswain.dev/current=true | sed -n "$((round % 3 + 1))p")
    api DELETE "api/v1/namespaces/default/pods/$victim" >/dev/null
    sleep "0.0$((RANDOM % 90 + 10))"
    operator_kill
    operator_start
    if ! wait_for storm disruptions "$round" 40 || ! wait_for storm state Running 40; then break; fi
done
[[ $(field storm disruptions) == 5 && $(field storm total) == 5 && $(field storm attempt) == 1 ]]
verdict $? "five disruptions and five kills of the operator make five restarts" "$(field storm disruptions)"
[[ $(pods storm coxswain.dev/current=true | wc -l) == 3 ]]
verdict $? "one current pod for each index"

# A pod is the job's by its owner reference, and by no label.
job owned '{}' 2 'sleep 600'
wait_for owned state Running 60
first=$(pods owned coxswain.dev/index=1)
owners() { api GET "api/v1/namespaces/default/pods/$1" | grep -c '"controller": *true'; }
is_owned() { [[ $(owners "$first") == 1 ]]; }
! api PATCH "api/v1/namespaces/default/pods/$first" '{"metadata":{"ownerReferences":null}}' | contains '"controller"' &&
    until_true 60 is_owned
verdict $? "a pod that lost its owner is adopted" "$(api GET "api/v1/namespaces/default/pods/$first")"
[[ $(pods owned coxswain.dev/index=1) == "$first" && $(field owned total) == "" ]]
verdict $? "and goes on, without a restart" "$(pods owned)"

# Init containers: what they exit with counts, and which it was is told.
job prepared '{"backoffLimit":1}' 1 'sleep 600' '{}' '"initContainers":[{"name":"fetch","image":"busybox","command":["/bin/sh","-c","echo no route >&2; exit 65"]}],'
wait_for prepared state Failed 60 && [[ $(field prepared failures) == 2 && $(field prepared disruptions) == "" ]]
verdict $? "a failing init container spends backoffLimit" "$(api GET "$jobs_path/prepared")"
api GET "$jobs_path/prepared" | contains 'init container fetch of pod prepared-worker-0-2 exited with code 65; backoffLimit 1 exceeded'
verdict $? "and is named with its exit code" "$(api GET "$jobs_path/prepared")"

# A typing error in a template does not vanish.
job typed '{}' 1 'sleep 600' '{}' '"terminationGracePeriodSecond":5,'
wait_for typed state Failed 60
api GET "$jobs_path/typed" | contains 'spec.workers.template: unknown field \\"spec.terminationGracePeriodSecond\\"'
verdict $? "a field of a template that does not exist is named" "$(api GET "$jobs_path/typed")"
[[ $(api GET "$jobs_path/typed") == *'"InvalidTemplate"'* && -z $(pods typed) ]]
verdict $? "and no pod is made without it"

# A key that somebody removes is made anew, for the whole crew.
job keyed '{}' 2 'test $(wc -c <$COXSWAIN_CREW_KEY_FILE) = 32 || exit 64; sleep 600'
wait_for keyed state Running 60
key=$(api GET api/v1/namespaces/default/secrets | grep -o '"name": *"keyed-crew-[^"]*' | sed 's/.*"//')
api DELETE "api/v1/namespaces/default/secrets/$key" >/dev/null
api DELETE "$pods_path/$(member keyed 1)" >/dev/null
wait_for keyed attempt 2 60 && wait_for keyed state Running 60
verdict $? "a crew with a removed key starts over" "$(api GET "$jobs_path/keyed")"
[[ $(api GET api/v1/namespaces/default/secrets | grep -c "\"name\": *\"$key\"") == 1 && $(field keyed attempt) == 2 ]]
verdict $? "once, under a new one"
