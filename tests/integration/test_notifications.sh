#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Notifications to a sink (sink.py), in the embedded control plane: the types, a restart, a sink that is away while a job ends and its
# operator is killed, a TTL that waits, an operator without a sink. Prints ok/not ok lines (see tests/run).
set -uo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip notifications: python3 is not installed"
    exit 0
fi
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"

finish_also() {
    kill "$sink" 2>/dev/null
}

python3 "$root/tests/integration/sink.py" "$work/port" "$work/events" &
sink=$!
plane_start
until_true 30 test -s "$work/port"
start_with_sink() {
    operator_start "$work/state/kubeconfig" --notification-sink "http://127.0.0.1:$(cat "$work/port")/hook"
}
start_with_sink

# taken JOB TYPE: how many of that type the sink has taken
taken() {
    grep -s "^application/cloudevents+json" "$work/events" | grep "trainingjobs/$1\"" | grep -c "dev.coxswain.trainingjob.$2\""
}

# took JOB TYPE
took() {
    [[ $(taken "$@") == 1 ]]
}

job good '{}' 1 'exit 0'
until_true 60 took good succeeded
verdict $? "the sink is notified of a job that has succeeded" "$(cat "$work/events" operator.log)"
job bad '{}' 1 'echo token=geheim; exit 65'
until_true 60 took bad failed && ! grep -q geheim "$work/events"
verdict $? "and of one that has failed, without any text of its program" "$(cat "$work/events")"
job again '{"backoffLimit":0}' 1 'exit 137'
until_true 60 took again failed
job lost '{}' 1 'sleep 600'
wait_for lost state Running 60
api DELETE "$pods_path/$(member lost 0)" >/dev/null
until_true 60 took lost restarting
verdict $? "and of a restart" "$(cat "$work/events")"

touch "$work/events.away"
job late '{"ttlSecondsAfterFinished":0}' 1 'exit 0'
until_true 60 grep -qs 'trainingjobs/late"' "$work/events.refused"
operator_kill
api GET "$jobs_path/late" | contains noticeSince
verdict $? "while the sink is away the status remembers the end, and the TTL waits" "$(api GET "$jobs_path/late")"
rm "$work/events.away"
start_with_sink
until_true 60 took late succeeded
verdict $? "the restarted operator sends it" "$(cat "$work/events"; tail -n 5 operator.log)"
gone() {
    ! api GET "$jobs_path/late" | contains '"uid"'
}
until_true 60 gone
verdict $? "then the job is deleted"
[[ $(taken good succeeded) == 1 && $(taken bad failed) == 1 ]]
verdict $? "what was delivered before is not sent again" "$(cat "$work/events")"
[[ $(metric 'coxswain_notifications_total{result="delivered"}') -ge 1 ]]
verdict $? "a metric counts them"

operator_kill
operator_start
job mute '{}' 1 'exit 0'
wait_for mute state Succeeded 60
! api GET "$jobs_path/mute" | contains noticeSince && ! grep -q 'trainingjobs/mute"' "$work/events"
verdict $? "without a sink nothing is sent or remembered"
