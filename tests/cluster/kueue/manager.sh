# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $root and $work are the caller's, CLUSTER and KUBECONFIG are from tests/cluster/with
#
# The real Kueue manager beside the control plane of tests/cluster/with: its definitions and webhooks from the pinned module,
# pointed at a port of this machine, with certificates of the cluster's authority. The API server asks it for the order of its queues
# (visibility.kueue.x-k8s.io). The caller has sourced tests/cluster/cluster.sh.

# shellcheck source=tests/cluster/pki.sh
. "$root/tests/cluster/pki.sh"

# kueue_here ADDRESS: reads objects as JSON, one after the other, and lets whatever calls a webhook call it there; prints those of Kueue's own API
kueue_here() {
    python3 "$root/tests/cluster/webhooks_here.py" "$1" "$CLUSTER/pki/ca.crt" kueue.x-k8s.io
}

# kueue_objects FOLDER: the module's objects in it, as JSON
kueue_objects() {
    kubectl kustomize "$1" | kubectl create --dry-run=client --validate=false -o json -f -
}

# kueue_queues_served HOST PORT: the aggregated API of its queues
kueue_queues_served() {
    kubectl create -f - >/dev/null <<YAML
apiVersion: v1
kind: Service
metadata: {name: visibility-server, namespace: kueue-system}
spec: {type: ExternalName, externalName: "$1", ports: [{port: $2}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta2.visibility.kueue.x-k8s.io}
spec:
  group: visibility.kueue.x-k8s.io
  version: v1beta2
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: visibility-server, namespace: kueue-system, port: $2}
YAML
}

# kueue_start PROGRAM MODULE CONFIGURATION: answers once the manager takes Workloads. CONFIGURATION: more lines of Kueue's. The caller may
# set gates (feature gates, a comma before each)
kueue_start() {
    local host port queues_port folder=$CLUSTER/pki/kueue
    server=$(sed -n 's#^ *cluster: {server: "\([^"]*\)".*#\1#p' "$KUBECONFIG")
    host=${server#https://} host=${host%:*}
    port=$(free_port "$host") queues_port=$(free_port "$host")
    identity kueue /O=system:masters/CN=kueue
    certificate kueue-webhook /CN=kueue-webhook "subjectAltName=IP:$host"
    mkdir -p "$folder"
    cp "$CLUSTER/pki/kueue-webhook.crt" "$folder/tls.crt"
    cp "$CLUSTER/pki/kueue-webhook.key" "$folder/tls.key"
    cat >"$CLUSTER/kueue.yaml" <<YAML
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "$host:0"}
metrics: {bindAddress: "0"}
webhook: {host: $host, port: $port, certDir: $folder}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
integrations: {frameworks: [batch/job], externalFrameworks: [TrainingJob.v1beta1.coxswain.dev]}
visibilityServer: {bindAddress: $host, bindPort: $queues_port}
${gates:+featureGates: {${gates#, }\}}
$3
YAML
    kubectl create namespace kueue-system >/dev/null
    kueue_objects "$2/config/components/crd" | kueue_here "$host:$port" | kubectl create -f - >/dev/null || return
    # Without a cert-controller the manager reads certificates from fixed paths, /etc/kueue/metrics/certs and /visibility: so it gets a root
    # of its own, with nothing but these, the cluster's folder and the program.
    mkdir -p "$CLUSTER/root"
    # shellcheck disable=SC2016 # for the inner shell
    setpriv --pdeathsig KILL -- "$root/tests/cluster/keep" "$CLUSTER" kueue unshare -rm sh -ec '
        cluster=$1 certificates=$2 tools=${3%/*}
        shift 2
        mount -t tmpfs none "$cluster/root"
        cd "$cluster/root"
        mkdir -p etc/kueue/metrics tmp "./$cluster" "./$tools"
        ln -s "$certificates" etc/kueue/metrics/certs
        ln -s "$certificates" visibility
        mount --bind "$tools" "./$tools"
        mount --bind "$cluster" "./$cluster"
        exec setpriv --pdeathsig KILL -- chroot . "$@"' sh "$CLUSTER" "$folder" \
        "$1" --config "$CLUSTER/kueue.yaml" --kubeconfig "$CLUSTER/kueue.kubeconfig" &
    kueue_objects "$2/config/components/webhook" | kueue_here "$host:$port" | kubectl create -f - >/dev/null || return
    kueue_queues_served "$host" "$queues_port" || return
    until_true 120 answers "$host" "$port"
}
