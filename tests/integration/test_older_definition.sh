#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# An operator in a cluster with an older definition of TrainingJob, which drops fields of the status that it writes: it goes on
# without them, says so once, and does not write them again and again. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/scene.sh"
patience=60

# without NAME…: the definition without those properties
without() {
    awk -v names="$*" '
        BEGIN { count = split(names, list, " "); for (i = 1; i <= count; i++) gone[list[i] ":"] = 1 }
        { match($0, /^ */) }
        skips && RLENGTH > indent { next }
        { skips = 0 }
        $1 in gone { skips = 1; indent = RLENGTH; next }
        { print }' "$root/deploy/crd/coxswain.dev_trainingjobs.yaml"
}

mkdir older
without chiefFinishTime backingOff >older/trainingjobs.yaml
"$bin/coxswain-standalone" --state state --crd older >>standalone.log 2>&1 &
standalone=$!
plane_await "$patience"
verdict $? "an older definition is served" "$(tail -n 3 standalone.log)"
operator_start state/kubeconfig

# Each worker ends with 0 when it is told to.
script="trap 'exit 0' USR1; while :; do sleep 1000 & wait \$!; done"
api POST "$jobs_path" "{\"apiVersion\":\"coxswain.dev/v1beta1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"elastic\"},
    \"spec\":{\"image\":\"none\",\"pytorch\":{},\"runPolicy\":{\"cleanPodPolicy\":\"None\"},
    \"workers\":{\"replicas\":2,\"minReplicas\":1,\"maxReplicas\":2,\"template\":{\"spec\":{\"containers\":[{
        \"name\":\"trainer\",\"readinessProbe\":null,\"command\":[\"/bin/sh\",\"-c\",\"$script\"]}]}}}}}" >answer.json
wait_for elastic state Running "$patience"
verdict $? "a job runs" "$(cat answer.json; tail -n 3 operator.log)"

# listens INDEX: its script has set its trap
listens() {
    local caught
    process=$(process_of "$(member elastic "$1")")
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/${process:-none}/status" 2>/dev/null)
    [[ -n $caught ]] && ((0x$caught & 1 << 9))
}

# end INDEX
end() {
    until_true "$patience" listens "$1" && kill -USR1 "$process"
}

until_true "$patience" listens 1 && end 0
wait_for elastic completed 0 "$patience"
verdict $? "its chief ends before the others" "$(api GET "$jobs_path/elastic")"
told() { api GET apis/events.k8s.io/v1/namespaces/default/events | grep -c '"reason": *"StatusFieldDropped"'; }
is_told() { (($(told) > 0)); }
until_true "$patience" is_told
verdict $? "an event says that a field is dropped" "$(tail -n 3 operator.log)"
api GET apis/events.k8s.io/v1/namespaces/default/events | contains 'does not keep status.controllerState.chiefFinishTime: '
verdict $? "and names it" "$(api GET apis/events.k8s.io/v1/namespaces/default/events | grep 'does not keep')"
[[ -z $(field elastic chiefFinishTime) ]]
verdict $? "it is not there" "$(field elastic chiefFinishTime)"

writes() { metric 'coxswain_kube_requests_total{verb="patch",resource="trainingjobs",code="200"}'; }
looks() { metric 'coxswain_reconciles_total{result="[^"]*"}' | awk '{ sum += $1 } END { print sum + 0 }'; }
has_looked() { (($(looks) > seen)); }
# look_again NUMBER: something of the job is another, which the operator looks at
look_again() {
    seen=$(looks)
    api PATCH "$jobs_path/elastic" "{\"metadata\":{\"annotations\":{\"changed\":\"$1\"}}}" >answer.json
    until_true "$patience" has_looked
}
before=$(writes)
for ((number = 1; number <= 10; number++)); do look_again "$number" || break; done
after=$(writes)
((number > 10 && before > 0 && after <= before + 2))
verdict $? "it is not written again and again" "$before writes, and $after after $((number - 1)) looks; $(cat answer.json)"
[[ $(told) == 1 ]]
verdict $? "and told of once" "$(told) events"
end 1
wait_for elastic state Succeeded "$patience"
verdict $? "the job comes to its end" "$(api GET "$jobs_path/elastic")"
