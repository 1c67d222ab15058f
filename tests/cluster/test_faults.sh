#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What befalls an operator in the long run, on a real control plane: its token is revoked while it watches, its rights are
# taken away, the cluster's authority and the API server's certificate are replaced, the leader is stopped for longer than its
# term and woken. Nothing is lost, counted twice or done twice. Deadlines are measured by the API server's clock. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"
# shellcheck source=tests/cluster/pki.sh
. "$root/tests/cluster/pki.sh"

finish() {
    local operator
    for operator in "${operators[@]}"; do kill -CONT "$operator" 2>/dev/null; done
    cluster_operators_end
    rm -rf "$work"
}
trap finish EXIT

# token NAME: the operator's, good for as long as the Secret NAME is there
token() {
    kubectl -n coxswain-system create secret generic "$1" >/dev/null &&
        kubectl -n coxswain-system create token coxswain-operator --duration=4h --bound-object-kind Secret --bound-object-name "$1"
}

# As in a pod: token and authority lie in files that are replaced while it runs.
file_kubeconfig() {
    local server
    server=$(sed -n 's/.*server: "\(.*\)",.*/\1/p' "$KUBECONFIG")
    cat <<YAML
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: "$server", certificate-authority: $work/authority}
users:
- name: operator
  user: {tokenFile: $work/token}
contexts:
- name: test
  context: {cluster: test, user: operator}
current-context: test
YAML
}

# ask PATH: what the first operator answers there
ask() {
    local address
    address=$(sed -n 's/.*serving metrics.*address="\?\([0-9.]*\)"\?.*port="\?\([0-9]*\)"\?.*/\1:\2/p' "$work/operator-0.log" | tail -n 1)
    curl -s --max-time 5 "http://$address/$1"
}

# metric PATTERN: the sum of its counters that match, 0 when it does not answer
metric() {
    ask metrics | awk -v pattern="$1" '$0 ~ pattern { sum += $NF } END { print sum + 0 }'
}
counts() {
    (($(metric "$1") > 0))
}

# An operator that no Lease ends: here it must come back by itself.
lone_operator_start() {
    "$bin/coxswain-operator" --kubeconfig "$work/operator.kubeconfig" >"$work/operator-${#operators[@]}.log" 2>&1 &
    operators+=($!)
}

if ! cluster_prepare; then
    echo "not ok preparation"
    exit 1
fi
cp "$CLUSTER/pki/ca.crt" "$work/authority"
token first >"$work/token"
file_kubeconfig >"$work/operator.kubeconfig"
lone_operator_start
played_job steady 3 '{backoffLimit: 2}' >/dev/null
expect steady readySummary 3/3
verdict $? "a job runs" "$(status_of steady conditions)"

# disturbed INDEX: deletes that worker's pod; the old one is in $old
disturb() {
    old=$(current steady "$1")
    k delete pod "$old" --wait=false >/dev/null
}

# ---------------------------------------------------------------- the token
token second >"$work/next"
kubectl -n coxswain-system delete secret first >/dev/null
until_true 20 counts 'requests_total.*code="401"'
verdict $? "a revoked token is refused, watches included" "$(tail -n 3 "$work/operator-0.log")"
disturb 1
sleep 5
cp "$work/next" "$work/token"
until_true 20 replaced steady 1 "$old"
verdict $? "with the new one the operator goes on, and has missed nothing" "$(tail -n 3 "$work/operator-0.log")"
expect steady readySummary 3/3
expect steady restarts.disruptions 1
verdict $? "the disruption is counted once" "$(status_of steady restarts)"

# ---------------------------------------------------------------- the rights
is_ready() { [[ $(ask readyz) == ok ]]; }
until_true 30 is_ready
verdict $? "it is ready" "$(ask readyz)"
kubectl delete clusterrolebinding coxswain-operator >/dev/null
until_true 60 counts 'watch_refused.*pods' # the API server ends its watches after 20 s
verdict $? "rights that are taken away are told as a metric" "$(ask metrics | grep watch_refused | tr '\n' ' ')"
[[ $(ask readyz) == *'is forbidden'* ]]
verdict $? "and it is ready no more, and says why" "$(ask readyz)"
kubectl apply -k "$root/deploy/rbac" >/dev/null
until_true 60 is_ready
verdict $? "until it has them again" "$(ask readyz)"

# ---------------------------------------------------------------- authority and certificate
# The others of this control plane know both at once; the operator is told later.
CLUSTER=$work/new
mkdir -p "$work/new/pki"
server_address=$(sed -n 's/.*server: "https:\/\/\([^:]*\):.*/\1/p' "$KUBECONFIG")
key ca
openssl req -x509 -new -key "$work/new/pki/ca.key" -subj /CN=next-authority -days 2 -out "$work/new/pki/ca.crt"
certificate apiserver /CN=kube-apiserver "subjectAltName=IP:$server_address,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
CLUSTER=${KUBECONFIG%/*}
cat "$work/authority" "$work/new/pki/ca.crt" >"$work/both"
cp "$work/both" "$CLUSTER/pki/ca.crt"
program_stop kube-apiserver # with which it also shows itself to etcd
program_stop etcd
program_start etcd
cp "$work/new/pki/apiserver.crt" "$work/new/pki/apiserver.key" "$CLUSTER/pki/"
program_start kube-apiserver
until_true 120 api_server_answers
for program in kube-controller-manager kube-scheduler kwok; do
    program_stop $program
    program_start $program
done
until_true 20 grep -qi 'certificate' "$work/operator-0.log"
verdict $? "a certificate of an unknown authority is not trusted" "$(tail -n 3 "$work/operator-0.log")"
disturb 2
sleep 5
[[ $(current steady 2) == "$old" || -z $(current steady 2) ]]
verdict $? "as long as it is unknown nothing is done" "$(current steady 2)"
cp "$work/both" "$work/authority"
until_true 30 replaced steady 2 "$old"
verdict $? "with the new authority the operator goes on" "$(tail -n 3 "$work/operator-0.log")"
expect steady readySummary 3/3
expect steady restarts.disruptions 2
verdict $? "and counts what happened meanwhile once" "$(status_of steady restarts)"
kill -0 "${operators[0]}"
verdict $? "one and the same process did all this"
kill "${operators[0]}"
wait "${operators[0]}" 2>/dev/null

# ---------------------------------------------------------------- the leader, stopped and woken
cluster_operator_start
cluster_operator_start
cluster_operator_start # should the second end too: a busy API server may not answer in time
until_true 30 leader >/dev/null
stopped=$(leader)
since=$SECONDS
kill -STOP "$stopped"
disturb 0
another_leads() { local now; now=$(leader) && [[ $now != "$stopped" ]]; }
until_true 30 another_leads
verdict $? "a leader that was stopped is succeeded"
until_true 30 replaced steady 0 "$old"
verdict $? "by one that sees what happened"
successor=$(current steady 0)
expect steady readySummary 3/3
# KWOK's pods answer no request (though another program might, at their address in the machine's own network). That must be the last status
# of the progress, a minute after the new leader's first request.
silence() { [[ $(status_of steady 'conditions[?(@.type=="Running")].message') == *'its progress is unknown'* ]]; }
until_true 150 silence
verdict $? "a minute without an answer of the chief is told" "$(status_of steady conditions)"
held=$((SECONDS - since))
((held >= 60))
verdict $? "the old leader was stopped for $held s"
before=$(k get tj steady -o 'jsonpath={.metadata.resourceVersion} {.status.controllerState.incarnation}')
kill -CONT "$stopped"
gone() { ! kill -0 "$stopped" 2>/dev/null; }
until_true 20 gone
verdict $? "woken, the old one ends"
sleep 5
[[ $(k get tj steady -o 'jsonpath={.metadata.resourceVersion} {.status.controllerState.incarnation}') == "$before" && $(current steady 0) == "$successor" ]]
verdict $? "and has written nothing" "$(k get tj steady -o jsonpath='{.metadata.resourceVersion} {.status.controllerState.incarnation}'), not $before"
[[ $(k get pods -l coxswain.dev/job-name=steady -o name | wc -l) == 3 ]] && status_is steady restarts.disruptions 3
verdict $? "three pods, three disruptions" "$(k get pods -o name | tr '\n' ' ') $(status_of steady restarts)"

# ---------------------------------------------------------------- deadlines, by the API server's clock
# record JOB: records a line for each version of the job: when its status was written, by the API server's clock, and its conditions
record() {
    local condition='{.status.conditions[?(@.type=="%s")].status}'
    # shellcheck disable=SC2059 # the formats are ours
    k get tj "$1" --watch --request-timeout=0 -o "jsonpath={.metadata.managedFields[?(@.subresource==\"status\")].time}|{.status.startTime}|$(
        printf "$condition|$condition" Succeeded Failed){\"\\n\"}" >"$work/$1.versions" &
    recorders+=($!)
}

# written JOB FIELD VALUE: prints when the first version with this value of the field (2: startTime, 3: Succeeded, 4: Failed) was written
written() {
    local time
    time=$(awk -F '|' -v field="$2" -v value="$3" '$field ~ value { print $1; exit }' "$work/$1.versions")
    date -d "${time:?}" +%s
}
has_written() { written "$@" >/dev/null 2>&1; }

# lateness SECONDS: by how much a bare client is late that writes, waits for so long and writes again; nothing: it could not
lateness() {
    local begun ended
    k create configmap begun >/dev/null && sleep "$1" && k create configmap ended >/dev/null || return
    begun=$(stamp configmap begun .metadata.creationTimestamp) && ended=$(stamp configmap ended .metadata.creationTimestamp) &&
        echo $((ended - begun - $1))
}

# in_time FROM TO SECONDS WHAT: within a second, as far as the API server's times, which are whole ones, can tell; where a bare client
# was late, so may the operator have been, but nothing is known of a machine where that was much
in_time() {
    if [[ -z $1 || -z $2 || -z $late ]]; then
        verdict 1 "$4: from '$1' to '$2' (a bare client: '$late' s late)" "$(cat "$work/"{late,gone}.versions)"
    elif ((late > 3)); then
        echo "skip $4: a bare client was $late s late"
    else
        (($2 - $1 >= $3 - 1 && $2 - $1 <= $3 + 1 + 2 * late))
        verdict $? "$4 after $(($2 - $1)) s (a bare client: $late s late)" "$(cat "$work/"{late,gone}.versions)"
    fi
}

recorders=()
played_job late 1 '{activeDeadlineSeconds: 6}' >/dev/null
record late
played_job gone 1 '{ttlSecondsAfterFinished: 6}' 0 1s >/dev/null
record gone
k patch tj gone --type=merge -p '{"metadata":{"finalizers":["test.coxswain.dev/look"]}}' >/dev/null # to read when it was deleted
late=$(lateness 6)
until_true 120 has_written late 4 True
verdict $? "a job with a deadline ends" "$(status_of late conditions)"
in_time "$(written late 2 .)" "$(written late 4 True)" 6 "activeDeadlineSeconds: 6 ended the job"
is_deleted() { [[ -n $(k get tj gone -o 'jsonpath={.metadata.deletionTimestamp}') ]]; }
until_true 120 is_deleted
verdict $? "a job with a time to live goes" "$(status_of gone conditions)"
in_time "$(written gone 3 True)" "$(stamp tj gone .metadata.deletionTimestamp)" 6 "ttlSecondsAfterFinished: 6 removed it"
k patch tj gone --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
kill "${recorders[@]}" 2>/dev/null
