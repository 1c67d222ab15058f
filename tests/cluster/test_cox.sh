#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests cox as `kubectl cox` on a real control plane, as a user with the right to edit one namespace, which the kubeconfig names.
# KWOK's pods have no logs; a small server serves the chief's status document. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)
chief='' address=''

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    [[ -z $chief ]] || kill "$chief" 2>/dev/null
    cluster_operators_end
    [[ -z $address ]] || ip address delete "$address/32" dev lo
    rm -rf "$work"
}
trap finish EXIT

cox_command=(env "KUBECONFIG=$work/person" timeout 150 kubectl cox)
# shellcheck source=tests/integration/cox.sh
. "$root/tests/integration/cox.sh"

if ! cluster_prepare || ! person_kubeconfig person edit >"$work/person"; then
    echo "not ok preparation"
    exit 1
fi
mkdir "$work/path"
ln -s "$bin/cox" "$work/path/kubectl-cox"
PATH=$work/path:$PATH
cluster_operator_start
may_edit() { kubectl auth can-i create trainingjobs -n "$space" --as="system:serviceaccount:$space:person" >/dev/null 2>&1; }
until_true 60 may_edit
verdict $? "a user who may edit the namespace may edit jobs"

cox 0 get && grep -q "no training jobs in namespace $space" "$work/err"
verdict $? "kubectl cox, in the namespace of the context" "$(said)"
cox 1 get -n kube-system && grep -qi forbidden "$work/err"
verdict $? "what is forbidden is quoted" "$(said)"
cox 1 wait any -n kube-system && grep -q 'person" cannot watch resource "trainingjobs".*RoleBinding to the ClusterRole view' "$work/err" &&
    cox 1 top -n kube-system && grep -q 'cannot watch' "$work/err" && cox 1 get -w -n kube-system
verdict $? "and not waited for" "$(said)"

played_job steady 2 '{backoffLimit: 2}' >/dev/null
cox 0 wait steady --for Running --timeout 90s
verdict $? "wait" "$(said)"
cox 3 wait steady --timeout 1
verdict $? "and its time-out" "$(said)"
expect steady readySummary 2/2
# 2 where the operator did not yet hold its Lease when the job came
incarnation=$(status_of steady controllerState.incarnation)
cox 0 get && printed '^NAME *STATE *READY' '^steady *Running *2/2' && cox 0 get steady -o yaml && printed '^kind: TrainingJob' &&
    cox 0 get -l no=such -o name && [[ ! -s $work/out ]]
verdict $? "get" "$(said)"
cox 0 describe steady && printed '^Namespace *train' '^State *Running, 2/2 ready' 'CrewComplete' "steady-worker-1-$incarnation *ready *.*node-" \
    'a crew of 2 pods is being created' '^steady waits for nothing: it runs'
verdict $? "describe, with pods and events" "$(said)"
cox 0 top --once && printed '^steady *Running *2/2'
verdict $? "top" "$(said)"
cox 0 restart steady --index 1 && expect steady controllerState.incarnation $((incarnation + 1)) && cox 0 wait steady --for Running --timeout 90s
verdict $? "restart" "$(said)"
cox 1 scale steady --workers 3 && grep -q 'may change only with minReplicas and maxReplicas' "$work/err"
verdict $? "scale quotes the rule of the API server" "$(said)"

# ---------------------------------------------------------------- elastic, suspended, waiting
# manifest NAME STRATEGY TEMPLATE [BOUNDS [LINES]]: a job with KWOK's pods; BOUNDS are members of workers, each followed by a
# comma, and LINES are more of its spec
manifest() {
    cat <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingJob
metadata: {name: $1}
spec:
  workers: {${4:-}template: {$3}}
  coxswain:
    strategy: {type: $2}
    model: {preset: mlp}
    data: {format: Synthetic, examples: 1000}
    training: {steps: 10, batchSize: 100, optimizer: {type: SGD, learningRate: "0.1"}}
${5:-}
YAML
}

# elastic_job NAME NODE_SELECTOR
elastic_job() {
    manifest "$1" MultiWorkerMirrored "spec: {nodeSelector: $2}" 'replicas: 2, minReplicas: 1, maxReplicas: 4, '
}
elastic_job grows '{}' | k apply -f - >/dev/null
cox 0 wait grows --for Running --timeout 90s && cox 0 scale grows --workers 4 && expect grows readySummary 4/4
verdict $? "scale" "$(said) $(status_of grows readySummary)"
cox 0 suspend grows && cox 0 wait grows --for Suspended --timeout 90s && cox 0 why grows && printed 'waits for a user to resume it'
verdict $? "suspend, and why" "$(said)"
[[ -z $(k get pods -l coxswain.dev/job-name=grows -o name) ]]
verdict $? "without pods" "$(k get pods)"
cox 0 resume grows && cox 0 wait grows --for Running --timeout 90s
verdict $? "resume" "$(said)"
elastic_job nowhere '{no: such-node}' | k apply -f - >/dev/null
explained() { cox 0 why nowhere && printed 'waits for a node for pod nowhere-worker-[01]-1: 0/3 nodes are available'; }
until_true 60 explained
verdict $? "why, in the scheduler's words" "$(said)"
cox 0 delete grows --timeout 90s && cox 1 get grows && cox 0 wait grows --for Deleted
verdict $? "delete" "$(said)"

# played_manifest NAME [CODE [LINES]]: its pod ends with CODE, unless that is empty, after two seconds
played_manifest() {
    local annotations=
    [[ -z ${2:-} ]] || annotations="test.coxswain.dev/exit-code: \"$2\", test.coxswain.dev/runs-for: 2s"
    manifest "$1" OneDevice "metadata: {annotations: {$annotations}}" '' "${3:-}"
}

# ---------------------------------------------------------------- devices
# advertise OPERATION [, "value": "1"]: what a device plugin does for its node
advertise() {
    local place patch=
    for place in capacity allocatable; do patch+="${patch:+, }{\"op\": \"$1\", \"path\": \"/status/$place/example.com~1gpu\"${2:-}}"; done
    kubectl patch node node-1 --subresource=status --type=json -p "[$patch]" >/dev/null
}
played_manifest device '' '  devices: {type: GPU, resourceName: example.com/gpu}' | k apply -f - >/dev/null
lacks_device() { cox 0 why device && printed 'waits for a node for pod device-worker-0-[0-9]*: 0/3 nodes are available: 3 Insufficient example.com/gpu'; }
until_true 60 lacks_device
verdict $? "why, of a device that no node has" "$(said)"
advertise add ', "value": "1"' && expect device readySummary 1/1
[[ $(k get pods -l coxswain.dev/job-name=device -o 'jsonpath={.items[*].spec.nodeName}') == node-1 ]]
verdict $? "which runs on the node that gets one" "$(k get pods -o wide)"
k delete tj device >/dev/null && advertise remove

# ---------------------------------------------------------------- the chief's own words
# Not on loopback, where the API server refuses to go.
cat >"$work/chief.py" <<'PYTHON'
import http.server, json, sys
address, uid, mark = sys.argv[1:4]

class Chief(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"jobUID": uid, "role": "worker", "index": 0, "incarnation": 2, "phase": "Training", "step": 123,
                           "totalSteps": 1000, "metrics": [{"name": "loss", "value": 0.25}],
                           "failedSaves": 2, "saveFailure": "VolumeFull", "saveMessage": "save step 100: no space left"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if "X-Forwarded-For" in self.headers:
            open(mark, "a").close()

    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer((address, 8080), Chief).serve_forever()
PYTHON
candidate=10.$((RANDOM % 100 + 100)).$((RANDOM % 250 + 1)).$((RANDOM % 250 + 1))
if command -v python3 >/dev/null && ip address add "$candidate/32" dev lo 2>/dev/null; then
    address=$candidate
    played_manifest told >"$work/told.yaml"
    k apply -f "$work/told.yaml" >/dev/null
    expect told readySummary 1/1
    python3 "$work/chief.py" "$address" "$(k get tj told -o 'jsonpath={.metadata.uid}')" "$work/proxied" &
    chief=$!
    k patch pod "$(current told 0)" --subresource=status --type=merge \
        -p "{\"status\":{\"podIP\":\"$address\",\"podIPs\":[{\"ip\":\"$address\"}]}}" >/dev/null
    expect told progress.step 123
    verdict $? "the operator reads the chief's progress" "$(status_of told progress)"
    expect told 'conditions[?(@.type=="CheckpointsFailing")].reason' VolumeFull
    verdict $? "and that it cannot save" "$(status_of told conditions)"
    cox 0 why told && printed 'but it cannot save (VolumeFull): save step 100: no space left'
    verdict $? "why says so" "$(said)"
    KUBECONFIG=$work/person kubectl cox run "$work/told.yaml" --kubeconfig "$work/person" >"$work/followed" 2>&1 </dev/null &
    follower=$!
    until_true 30 test -e "$work/proxied"
    verdict $? "run asks the chief through the API server" "$(tail -n 5 "$work/followed")"
    kill "$follower"
    wait "$follower" 2>/dev/null
else
    echo "skip the chief's words: needs python3 and the right to add an address"
fi

# ---------------------------------------------------------------- run
played_manifest short 0 >"$work/short.yaml"
played_manifest wrong 65 >"$work/wrong.yaml"
cox 0 run "$work/short.yaml" --kubeconfig "$work/person" && status_is short state Succeeded
verdict $? "run follows a job in the context's namespace to its end" "$(said)"
cox 1 run "$work/wrong.yaml" --context mine --kubeconfig "$work/person" && printed 'Failed' && cox 1 wait wrong --timeout 60s && printed '65'
verdict $? "and to its failure" "$(said)"
cox 1 logs short && grep -qi 'log\|kubelet\|connect\|dial' "$work/err"
verdict $? "logs that cannot be had say why" "$(said)"
