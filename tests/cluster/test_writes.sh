#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How many writes the operator makes in a job's life, by kind, from the API server's audit log: jobs of four pods that nothing
# befalls, of each sort that has objects of its own. Pods are played by KWOK, schedulers by this script. Prints a table and
# ok/not ok lines. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    [[ ! -d $work/crds ]] || kubectl delete -f "$work/crds" --timeout=60s >/dev/null 2>&1
    rm -rf "$work"
}
trap finish EXIT

audit=$CLUSTER/audit.log
cluster_prepare || { echo "not ok preparation"; exit 1; }
schedulers=yes
if ! why=$("$root/tests/cluster/scheduler-crds" "$work/crds" 2>&1 && kubectl create -f "$work/crds" 2>&1 && established -f "$work/crds" 2>&1); then
    schedulers=
fi
cluster_operator_start
if ! until_true 60 leader >/dev/null || [[ ! -s $audit ]]; then
    echo "not ok an operator leads, and the API server keeps an audit log (tests/cluster/with --audit)"
    exit 1
fi

# four NAME [RUN_POLICY [LABELS]]: a job of four workers that ends well; the caller may set what played_job reads
four() {
    played_job "$1" 4 "${2:-{\}}" 0 5s "${3:-}" >/dev/null
}

bound() {
    bind "$1"
    status_is "$1" state Succeeded
}

admit() {
    kueue "$(says QuotaReserved True QuotaReserved),$(says Admitted True Admitted)" \
        '{"clusterQueue":"research","podSetAssignments":[{"name":"worker","flavors":{},"resourceUsage":{},"count":4}]}' >/dev/null
}

# judged NAME BESIDES SORT: the job has at most this number of writes besides its pods, and one more for every two seconds of its
# run, in which numbers are reported
judged() {
    local begun ran
    sleep 8 # what is gathered is written within five seconds
    begun=$(stamp tj "$1" .metadata.creationTimestamp)
    ran=$(stamp tj "$1" .status.completionTime)
    "$root/tests/cluster/writes.py" "$audit" "$offset" "$3" 4 $(($2 + (ran - begun - 5) / 2)) | tee -a "$work/verdicts" | sed -n 's/^row //p' >>"$work/table"
    k delete tj "$1" --timeout=90s >/dev/null
}

# begin: what is counted comes after this
begin() {
    offset=$(stat -c %s "$audit")
}

begin
four plain
expect plain state Succeeded
judged plain 7 "plain"
begin
bounds='minReplicas: 2, maxReplicas: 4, ' four elastic
expect elastic state Succeeded
judged elastic 8 "elastic"
begin
ours='encryption: {type: TLS}' four encrypted
expect encrypted state Succeeded
judged encrypted 12 "encryption TLS"
if [[ -n $schedulers ]]; then
    begin
    four gang '{gang: {scheduler: Coscheduling}}'
    until_true 90 bound gang
    judged gang 10 "gang (Coscheduling)"
    begin
    four queued '' 'kueue.x-k8s.io/queue-name: research'
    until_true 60 admit
    expect queued state Succeeded
    judged queued 14 "queue (Kueue)"
else
    echo "skip writes of gangs and queues: $(tail -n 1 <<<"$why")"
fi
echo "| job of four workers | writes | besides the pods | by kind |"
echo "|---|---|---|---|"
cat "$work/table"
grep -E '^(not )?ok ' "$work/verdicts"
