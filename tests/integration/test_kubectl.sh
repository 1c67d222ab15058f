#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What kubectl must be able to do against the embedded control plane and against a real one alike, one line a case.
#   tests/integration/test_kubectl.sh [BUILD]
# kubectl is $KUBECTL or the one on PATH; without one everything is skipped. With CONFORMANCE=cluster nothing is started:
# the cluster of $KUBECONFIG is asked, whose default namespace must be empty (tests/cluster). Its nodes need not run
# anything: cases about what a container says are for the embedded plane, whose pods are processes.
# shellcheck disable=SC2016,SC2317 # expanded by the editor; called by the trap and by check
set -uo pipefail

build=${1:-${BUILD:-build}}
root=$(cd "$(dirname "$0")/../.." && pwd)
kubectl=${KUBECTL:-$(command -v kubectl || true)}
given=
[ "${CONFORMANCE:-}" = cluster ] && given=yes
if [ -z "$kubectl" ] || { [ -z "$given" ] && [ ! -x "$build/coxswain-standalone" ]; }; then
    echo "skip kubectl: no kubectl on PATH or in KUBECTL, or no $build/coxswain-standalone"
    exit 0
fi

work=$(mktemp -d)
server=
finish() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

if [ -z "$given" ]; then
    "$build/coxswain-standalone" --state "$work/state" --crd "$root/deploy/crd" >"$work/log" 2>&1 </dev/null &
    server=$!
    for _ in $(seq 1200); do [ -f "$work/state/kubeconfig" ] && break; sleep 0.05; done
    export KUBECONFIG=$work/state/kubeconfig
fi
export HOME=$work

k() { timeout 180 "$kubectl" "$@"; }
failures=0

# check NAME PATTERN COMMAND…: the output of the command holds the pattern (an extended regular expression).
check() {
    local name=$1 pattern=$2 output
    shift 2
    output=$("$@" 2>&1)
    if grep -Eq -- "$pattern" <<<"$output"; then
        echo "ok $name"
    else
        echo "not ok $name: $(head -c 400 <<<"$output" | tr '\n' ' ')"
        failures=$((failures + 1))
    fi
}

# absent NAME PATTERN COMMAND…: and here it does not.
absent() {
    local name=$1 pattern=$2 output
    shift 2
    output=$("$@" 2>&1)
    if grep -Eq -- "$pattern" <<<"$output"; then
        echo "not ok $name: $(head -c 400 <<<"$output" | tr '\n' ' ')"
        failures=$((failures + 1))
    else
        echo "ok $name"
    fi
}

# quietly COMMAND…: prints only how it ends, because its output depends on timing
quietly() {
    "$@" >/dev/null 2>&1
    echo "ended with $?"
}

# until_shown PATTERN COMMAND…: what a command without end says, until a line holds the pattern or a minute is over
until_shown() {
    local pattern=$1 line teller
    shift
    exec 3< <(exec timeout 180 "$@" 2>&1)
    teller=$!
    while IFS= read -r line <&3; do
        echo "$line"
        if grep -Eq -- "$pattern" <<<"$line"; then break; fi
    done
    kill "$teller" 2>/dev/null
    exec 3<&-
}

# The same for what a container said.
check_log() {
    if [ -n "$given" ]; then echo "skip $1: pods are not processes here"; else check "$@"; fi
}

absent_log() {
    if [ -n "$given" ]; then echo "skip $1: pods are not processes here"; else absent "$@"; fi
}

cat >"$work/job.yaml" <<'YAML'
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: digits, labels: {team: a}}
spec:
  workers: {replicas: 2, minReplicas: 1, maxReplicas: 4}
  coxswain:
    strategy: {type: MultiWorkerMirrored}
    model: {preset: lenet}
    data: {format: Synthetic, examples: 100}
    training: {steps: 10, batchSize: 8, optimizer: {type: SGD, learningRate: "0.1"}}
YAML
sed -e 's/MultiWorkerMirrored/Nonsense/; s/name: digits/name: bad/' "$work/job.yaml" >"$work/bad.yaml"
sed -e 's/^  workers:/  wurkers: 3\n&/; s/name: digits/name: strict/' "$work/job.yaml" >"$work/unknown.yaml"
cat >"$work/pod.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: echo, labels: {app: echo, tier: "1"}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: none, command: [sh, -c, "echo first; echo second; exec sleep 300"], env: [{name: A, value: "1"}]}
YAML
cat >"$work/map.yaml" <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: echo}}
data: {x: "1", y: "2"}
YAML
sed 's/x: "1"/x: "7"/' "$work/map.yaml" >"$work/map2.yaml"

printf '#!/bin/sh\nsed -i "s/color: red/color: blue/" "$1"\n' >"$work/editor"
chmod +x "$work/editor"

check "version" 'v1\.[0-9]+' k get --raw /version
check "health" '^ok' k get --raw /healthz
check "api-resources" 'trainingjobs +tj +coxswain.dev/v1beta1 +true +TrainingJob' k api-resources
check "api-versions" '^coxswain.dev/v1beta1' k api-versions
check "explain a custom field" 'type.*<string>' k explain tj.spec.coxswain.strategy
check "explain a rule" 'action.*<string> -required-' k explain tj.spec.runPolicy.failurePolicy.rules
check "explain a gang" 'Volcano' k explain tj.spec.runPolicy.gang.scheduler
check "explain a built-in type" 'KIND: +Pod' k explain pods
check "auth can-i" '^yes' k auth can-i create pods
check "auth whoami" 'admin' k auth whoami
check "get namespaces" 'default +Active' k get ns
check "get nodes" 'Ready' k get nodes
check "get crd" 'trainingjobs.coxswain.dev' k get crd

check "apply a job" 'created' k apply -f "$work/job.yaml"
check "apply it again" 'unchanged' k apply -f "$work/job.yaml"
check "table of jobs" 'NAME +STATE +READY +STEP +LOSS +RESTARTS +AGE' k get tj
check "wide table of jobs" 'STRATEGY +THROUGHPUT +ETA' k get tj -o wide
check "yaml of a job" '^    replicas: 2' k get tj digits -o yaml
check "jsonpath" '^lenet$' k get tj digits -o 'jsonpath={.spec.coxswain.model.preset}'
check "defaults are stored" 'restartScope: Auto' k get tj digits -o yaml
check "schema refuses" 'spec.coxswain.strategy.type.*Unsupported value.*Nonsense' k apply -f "$work/bad.yaml"
check "unknown field refused" 'unknown field "spec.wurkers"' k apply -f "$work/unknown.yaml"
check "unknown field warned" 'Warning: unknown field "spec.wurkers"' k create --validate=warn --dry-run=server -f "$work/unknown.yaml"
check "dry run stores nothing" 'not found' k get tj strict
check "rule refuses a change" 'The TrainingJob "digits" is invalid: spec.coxswain: Invalid value: .*is immutable; delete the job and create it anew' k patch tj digits --type=merge -p '{"spec":{"coxswain":{"model":{"preset":"mlp"}}}}'
check "scale" 'scaled' k scale tj digits --replicas=3
check "scaled" '^3$' k get tj digits -o 'jsonpath={.spec.workers.replicas}'
check "generation rises" '^2$' k get tj digits -o 'jsonpath={.metadata.generation}'
check "status is a subresource" 'patched' k patch tj digits --subresource=status --type=merge -p '{"status":{"readySummary":"2/3","conditions":[{"type":"Running","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-11-20T14:00:00Z"}],"progress":{"step":7,"metrics":[{"name":"loss","value":"0.5"}]}}}'
check "columns from status" 'digits +Running +2/3 +7 +0.5' k get tj
check "generation stays" '^2$' k get tj digits -o 'jsonpath={.metadata.generation}'
check "wait for a condition" 'condition met' k wait tj/digits --for=condition=Running --timeout=120s
check "wait for jsonpath" 'condition met' k wait tj/digits --for=jsonpath='{.status.readySummary}'=2/3 --timeout=120s
k patch tj digits --subresource=status --type=json -p '[{"op":"add","path":"/status/conditions/-","value":{"type":"Succeeded","status":"True","reason":"ChiefSucceeded","message":"","lastTransitionTime":"2026-11-20T14:00:00Z"}}]' >/dev/null
check "wait for success" 'condition met' k wait tj/digits --for=condition=Succeeded --timeout=120s
check "describe a job" 'Ready Summary: +2/3' k describe tj digits
check "label" 'labeled' k label tj digits color=red
check "annotate" 'annotated' k annotate tj digits note=x
check "select by label" 'digits' k get tj -l 'color in (red,blue),team!=b'
absent "select nothing" '^digits' k get tj -l 'color=green'
check "json patch" 'patched' k patch tj digits --type=json -p '[{"op":"add","path":"/metadata/labels/size","value":"s"}]'
check "edit" 'edited' env EDITOR="$work/editor" timeout 180 "$kubectl" edit tj digits
check "server-side apply" 'serverside-applied' k apply --server-side -f "$work/map.yaml"
check "server-side apply by another" 'conflict with "kubectl"' k apply --server-side --field-manager=other -f "$work/map2.yaml"
check "server-side apply by force" 'serverside-applied' k apply --server-side --field-manager=other --force-conflicts -f "$work/map2.yaml"
check "server-side apply remembers its managers" '^kubectl other$' k get cm settings -o 'jsonpath={.metadata.managedFields[*].manager}' --show-managed-fields
k delete cm settings >/dev/null

check "apply a pod" 'created' k apply -f "$work/pod.yaml"
check "wait for a pod" 'condition met' k wait pod/echo --for=jsonpath='{.status.phase}'=Running --timeout=120s
check "table of pods" 'echo +1/1 +Running +0 +[0-9]+s' k get pods
check "wide table of pods" 'IP +NODE' k get pods -o wide
check "field selector" 'echo' k get pods --field-selector status.phase=Running,metadata.name=echo
check "bad field selector" 'field label not supported' k get pods --field-selector spec.nothing=1
check_log "logs" '^second' k logs echo
check_log "logs --tail" '^second' k logs echo --tail=1
absent_log "logs --tail leaves out" '^first' k logs echo --tail=1
check_log "logs -f" '^first' until_shown '^first' "$kubectl" logs -f echo
check "describe a pod" 'Events:' k describe pod echo
check "events" 'pod/echo' k get events
check "kubectl events" 'Pod/echo' k events --for pod/echo
check "strategic patch" 'patched' k patch pod echo -p '{"metadata":{"labels":{"tier":"2"}}}'
check "pod spec is immutable" 'pod updates may not change fields' k patch pod echo -p '{"spec":{"containers":[{"name":"main","command":["true"]}]}}'
check "watch" '^echo +1/1 +Running' until_shown '^echo' "$kubectl" get pods -w
check "watch as events" '^ADDED +echo +1/1 +Running' until_shown '^ADDED' "$kubectl" get pods -w --output-watch-events
check "delete a pod" 'deleted' k delete pod echo
absent "the pod is gone" '^echo' k get pods

check "apply a map" 'created' k apply -f "$work/map.yaml"
sed -i 's/y: "2"/z: "3"/' "$work/map.yaml"
check "apply a change" 'configured' k apply -f "$work/map.yaml"
check "apply removed a key" '^\{"x":"1","z":"3"\}' k get cm settings -o 'jsonpath={.data}'
check "diff is empty" '^$' k diff -f "$work/map.yaml"
check "replace" 'replaced' k replace -f "$work/map.yaml"
check "create refuses a second" 'AlreadyExists' k create -f "$work/map.yaml"
check "get all kinds" 'configmap/settings' k get cm,svc,secret -o name
check "secret from literals" 'created' k create secret generic s --from-literal=a=b
check "secret is base64" '^Yg==' k get secret s -o 'jsonpath={.data.a}'
check "service" 'created' k create service clusterip headless --clusterip=None
check "service table" 'headless +ClusterIP +None' k get svc
check "bad name" 'RFC 1123' k create configmap Bad_Name
check "paging" 'configmap/settings' k get cm --chunk-size=1 -o name

# Preconditions, conflicts, deletion.
k get cm settings -o yaml >"$work/old.yaml"
check "merge patch removes by null" '^\{"x":"1"\}' k patch cm settings --type=merge -p '{"data":{"z":null}}' -o 'jsonpath={.data}'
check "a stale write conflicts" '\(Conflict\): .*Operation cannot be fulfilled on configmaps "settings": the object has been modified; please apply your changes' k replace -f "$work/old.yaml"
check "json patch tests first" '^The request is invalid: the server rejected our request due to an error in our request' k patch cm settings --type=json -p '[{"op":"test","path":"/data/x","value":"9"},{"op":"remove","path":"/data/x"}]'
check "and changes nothing then" '^1$' k get cm settings -o 'jsonpath={.data.x}'
check "another version of it" '\(Conflict\): Operation cannot be fulfilled on ConfigMap "settings": the UID in the precondition \(00000000-0000-0000-0000-000000000000\) does not match the UID in record ' k delete --raw /api/v1/namespaces/default/configmaps/settings -f - <<<'{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}'
check "still there" 'settings' k get cm settings -o name
check "a finalizer" 'patched' k patch cm settings --type=merge -p '{"metadata":{"finalizers":["test.coxswain.dev/hold"]}}'
check "delete waits for it" 'deleted' k delete cm settings --wait=false
check "marked only" '^20[0-9][0-9]-' k get cm settings -o 'jsonpath={.metadata.deletionTimestamp}'
check "a marked object takes no new finalizer" 'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted' k patch cm settings --type=merge -p '{"metadata":{"finalizers":["test.coxswain.dev/hold","test.coxswain.dev/more"]}}'
check "the finalizer off" 'patched' k patch cm settings --type=merge -p '{"metadata":{"finalizers":null}}'
check "and it is gone" 'not found' k get cm settings
check "generated names" 'gen-[a-z0-9]{5}' k create -f - -o name <<<'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"gen-","labels":{"app":"echo"}}}'
owner=$(k get tj digits -o 'jsonpath={.metadata.uid}')
check "a child" 'created' k create -f - <<<'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child","ownerReferences":[{"apiVersion":"coxswain.dev/v1beta1","kind":"TrainingJob","name":"digits","uid":"'"$owner"'","controller":true,"blockOwnerDeletion":true}]}}'
check "a bad label" 'Invalid value' k patch cm child --type=merge -p '{"metadata":{"labels":{"a":"b c"}}}'
check "status ignores the spec" '^3$' k patch tj digits --subresource=status --type=merge -p '{"spec":{"workers":{"replicas":4}}}' -o 'jsonpath={.spec.workers.replicas}'
check "the spec ignores status" '^2/3$' k patch tj digits --type=merge -p '{"status":{"readySummary":"0/3"}}' -o 'jsonpath={.status.readySummary}'
check "status is checked" 'status.restarts.total: Invalid value: "string": .*total in body must be of type integer: "string"' k patch tj digits --subresource=status --type=merge -p '{"status":{"restarts":{"total":"many"}}}'
check "a condition is whole" 'status.conditions\[0\].reason: Required value' k patch tj digits --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Running","status":"True","message":"","lastTransitionTime":"2026-11-20T14:00:00Z"}]}}'
check "its reason is a word" 'status.conditions\[0\].reason: Invalid value: "Not one word"' k patch tj digits --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Running","status":"True","reason":"Not one word","message":"","lastTransitionTime":"2026-11-20T14:00:00Z"}]}}'
check "scale of a scale" '"replicas": *3' k get --raw /apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs/digits/scale
check "a list of limit one goes on" '"continue": *"[^"]' k get --raw '/api/v1/namespaces?limit=1'
check "a lost continuation" '\(BadRequest\): invalid continue token: continue key is not valid: ' k get --raw '/api/v1/namespaces?limit=1&continue=bm9uc2Vuc2U'
check "delete by label" 'deleted' k delete cm -l app=echo

check "namespace" 'created' k create ns other
check "job in a namespace" 'created' k -n other apply -f "$work/job.yaml"
check "all namespaces" 'other +digits' k get tj -A
check "delete a namespace" 'deleted' k delete ns other --timeout=120s
absent "its contents are gone" 'other +digits' k get tj -A
check "not found" 'trainingjobs.coxswain.dev "none" not found' k get tj none
check "unknown type" "doesn't have a resource type" k get wibbles
check "delete a job" 'deleted' k delete tj digits
check "wait for delete" '^ended with 0$' quietly k wait tj/digits --for=delete --timeout=120s
check "its children too" '^ended with 0$' quietly k wait cm/child --for=delete --timeout=120s
check "not one is left" 'configmaps "child" not found' k get cm child
exit $((failures > 0))
