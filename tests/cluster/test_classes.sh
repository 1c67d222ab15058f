#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ClusterTrainingClass and TrainingClass on a real API server: the operator's and the users' rights, the definition's rules, what pods get,
# and the policies of deploy/examples/classes: a default class, and a namespace that is obliged to a class. Run by tests/cluster/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BUILD:-$root/build}
work=$(mktemp -d)
examples=$root/deploy/examples/classes

# shellcheck source=tests/cluster/cluster.sh
. "$root/tests/cluster/cluster.sh"

finish() {
    cluster_operators_end
    kubectl delete -f "$examples/policy.yaml" -f "$examples/default.yaml" --ignore-not-found >/dev/null
    kubectl delete ctc --all >/dev/null
    rm -rf "$work"
}
trap finish EXIT

cluster_prepare || { echo "not ok preparation"; exit 1; }
established crd/clustertrainingclasses.coxswain.dev crd/trainingclasses.coxswain.dev >/dev/null
cluster_operator_start

# The class, with storage that needs no provisioner.
class_apply() {
    sed -e 's/persistentVolumeClaim:/emptyDir: {}/' -e '/claimName:/d' "$examples/class.yaml" | kubectl apply -f - >/dev/null
}

reason() {
    status_of "$1" 'conditions[?(@.type=="Scheduled")].reason'
}

has_reason() {
    [[ $(reason "$1") == "$2" ]]
}

# ---- a job and its class

k apply -f "$examples/job.yaml" >/dev/null
until_true 90 has_reason classy TrainingClassMissing && [[ -z $(k get pods -o name) ]]
verdict $? "a job waits for its class" "$(status_of classy conditions)"
class_apply
expect classy readySummary 2/2
verdict $? "and starts when it is there" "$(status_of classy conditions)"
[[ $(k get pod "$(current classy 0)" -o 'jsonpath={.spec.tolerations[0].key} {.spec.containers[0].env[?(@.name=="SITE")].value} {.spec.containers[0].resources.limits.memory} {.spec.volumes[?(@.name=="runs")].emptyDir}') == "dedicated main 4Gi {}" ]]
verdict $? "pods have what the class gives" "$(k get pod "$(current classy 0)" -o 'jsonpath={.spec}')"
uid=$(kubectl get ctc standard -o 'jsonpath={.metadata.uid}')
[[ $(status_of classy 'trainingClass.uid} {.status.trainingClass.generation} {.status.trainingClass.defaults.runPolicy.activeDeadlineSeconds') == "$uid 1 86400" ]]
verdict $? "its status keeps a copy" "$(status_of classy trainingClass)"

# ---- changed and deleted, and the operator is another

kubectl patch ctc standard --type=merge -p '{"spec": {"template": {"spec": {"containers": [{"name": "trainer", "env": [{"name": "SITE", "value": "other"}]}]}}}}' >/dev/null
kubectl delete ctc standard >/dev/null
cluster_operators_end
operators=()
cluster_operator_start
old=$(current classy 1)
k delete pod "$old" --wait=false >/dev/null
until_true 90 replaced classy 1 "$old" && expect classy readySummary 2/2 &&
    [[ $(k get pod "$(current classy 1)" -o 'jsonpath={.spec.containers[0].env[?(@.name=="SITE")].value}') == main ]]
verdict $? "a job keeps what it was created with" "$(k get pod "$(current classy 1)" -o 'jsonpath={.spec}')"
answer=$(k patch tj classy --type=merge -p '{"spec": {"trainingClass": {"name": "other"}}}' 2>&1)
grep -q 'spec.trainingClass' <<<"$answer"
verdict $? "and cannot take another class" "$answer"

# ---- rules and rights

refused() {
    ! answer=$(kubectl create -f - 2>&1) && grep -q "$1" <<<"$answer"
}
refused 'each storage needs exactly one volume source' <<YAML
apiVersion: coxswain.dev/v1beta1
kind: ClusterTrainingClass
metadata: {name: bad}
spec: {storage: [{name: runs}]}
YAML
verdict $? "a class is checked when it is written" "$answer"
kubectl create -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: ClusterTrainingClass
metadata: {name: empty}
spec: {template: {spec: {containers: [{name: trainer, readinessProbe: null}]}}, storage: [{name: runs, emptyDir: {}}]}
YAML
# of_class NAME CLASS
of_class() {
    sed -e "s/^  name: classy/  name: $1/" -e "s/^    name: standard/    name: $2/" "$examples/job.yaml" | k create -f - >/dev/null
}
of_class refused empty
until_true 60 has_reason refused TrainingClassInvalid && [[ $(status_of refused conditions) == *'spec has null as readinessProbe'* ]]
verdict $? "a class with null is not taken, since its copy would lose that" "$(status_of refused conditions)"
k delete tj refused >/dev/null
kubectl create clusterrolebinding classes-editor --clusterrole=edit --user=ed >/dev/null 2>&1
can() {
    [[ $(kubectl auth can-i "$1" clustertrainingclasses.coxswain.dev --as "$2" 2>/dev/null) == "$3" ]]
}
until_true 30 can list ed yes && can create ed no && can patch ed no && can delete ed no
verdict $? "an editor sees classes and writes none"
kubectl delete clusterrolebinding classes-editor >/dev/null

# ---- a class of the namespace

k create -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingClass
metadata: {name: local}
spec: {template: {metadata: {labels: {word: namespace}}}, storage: [{name: runs, emptyDir: {}}]}
YAML
sed -e 's/^  name: classy/  name: near/' -e 's/^    name: standard/    kind: TrainingClass\n    name: local/' "$examples/job.yaml" | k create -f - >/dev/null
expect near readySummary 2/2 && [[ $(k get pod "$(current near 0)" -o 'jsonpath={.metadata.labels.word}') == namespace ]]
verdict $? "a TrainingClass gives to the jobs of its namespace" "$(status_of near conditions)"
k create rolebinding adam --clusterrole=admin --user=adam >/dev/null
k create rolebinding edna --clusterrole=edit --user=edna >/dev/null
may() {
    [[ $(k auth can-i "$1" trainingclasses.coxswain.dev --as "$2" 2>/dev/null) == "$3" ]]
}
until_true 30 may create adam yes && may patch adam yes && may list edna yes && may create edna no
verdict $? "its administrators write it, and editors see it"
operators_judged

# ---- a default class

class_apply
kubectl apply -f "$examples/default.yaml" >/dev/null
kubectl label clustertrainingclass standard coxswain.dev/default-class=true >/dev/null
# takes CLASS: a new job that names none has this class
takes() {
    k delete tj plain --ignore-not-found --timeout=90s >/dev/null
    played_job plain 1 '{}' >"$work/answer" 2>&1
    [[ $(k get tj plain -o 'jsonpath={.spec.trainingClass.kind}/{.spec.trainingClass.name}') == "$1" ]]
}
until_true 60 takes ClusterTrainingClass/standard
verdict $? "a job that names no class gets the default one" "$(cat "$work/answer"; k get tj plain -o yaml)"
expect plain state Running && [[ $(status_of plain trainingClass.name) == standard ]] &&
    [[ $(k get pod "$(current plain 0)" -o 'jsonpath={.spec.containers[0].env[?(@.name=="SITE")].value}') == main ]]
verdict $? "and what it gives" "$(status_of plain trainingClass)"
k delete tj near --timeout=90s >/dev/null
sed -e 's/^  name: classy/  name: near/' -e 's/^    name: standard/    kind: TrainingClass\n    name: local/' "$examples/job.yaml" | k create -f - >/dev/null
[[ $(k get tj near -o 'jsonpath={.spec.trainingClass.kind}/{.spec.trainingClass.name}') == TrainingClass/local ]]
verdict $? "a job that names another keeps it" "$(k get tj near -o yaml)"
kubectl label clustertrainingclass standard coxswain.dev/default-class- >/dev/null
until_true 60 takes /
verdict $? "without a labelled class there is no default" "$(k get tj plain -o yaml)"
kubectl delete -f "$examples/default.yaml" >/dev/null
k delete tj plain --timeout=90s >/dev/null

# ---- a namespace that is obliged

class_apply
kubectl apply -f "$examples/policy.yaml" >/dev/null
kubectl label namespace "$space" coxswain.dev/required-class=standard >/dev/null
k delete tj classy --timeout=90s >/dev/null
unruly() {
    played_job unruly 1 '{}' >"$work/answer" 2>&1 && k delete tj unruly >/dev/null
    grep -q 'jobs in this namespace need spec.trainingClass: {kind: ClusterTrainingClass, name: standard}' "$work/answer"
}
until_true 60 unruly
verdict $? "a policy obliges a namespace to a class" "$(cat "$work/answer")"
# denied WORDS SED: the job of the example, changed by SED, is refused with these words
denied() {
    ! answer=$(sed "$2" "$examples/job.yaml" | k create -f - 2>&1) && grep -q "$1" <<<"$answer"
}
denied 'the class decides image and storage' 's/^  trainingClass:/  image: own\n&/'
verdict $? "and to its image" "$answer"
k create -f - >/dev/null <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingClass
metadata: {name: standard}
spec: {image: own}
YAML
denied 'jobs in this namespace need' 's/^  trainingClass:/&\n    kind: TrainingClass/'
verdict $? "not to a TrainingClass of that name" "$answer"
only='templates have only containers with name, command, args, env and resources'
denied "$only" 's/^    replicas: 2/&\n    template: {spec: {containers: [{name: trainer, image: own}]}}/' &&
    denied "$only" 's/^    replicas: 2/&\n    template: {spec: {volumes: [{name: v, emptyDir: {}}]}}/' &&
    denied "$only" 's/^    replicas: 2/&\n    template: {metadata: {labels: {a: b}}}/' &&
    denied "$only" 's/^  workers:/  chief: {template: {spec: {hostNetwork: true}}}\n&/'
verdict $? "templates cannot go round it" "$answer"
denied 'the class decides the queue' 's/^  name: classy/&\n  labels: {kueue.x-k8s.io\/queue-name: own}/'
verdict $? "nor can another queue" "$answer"
sed -e 's/^  name: classy/  name: late/' -e 's/^  trainingClass:/  suspend: true\n&/' "$examples/job.yaml" | k create -f - >/dev/null
is_suspended() {
    [[ $(status_of late 'conditions[?(@.type=="Suspended")].status') == True ]]
}
until_true 60 is_suspended
# not_patched WORDS PATCH
not_patched() {
    ! answer=$(k patch tj late --type=merge -p "$2" 2>&1) && grep -q "$1" <<<"$answer"
}
not_patched 'the class decides image and storage' '{"spec": {"image": "own"}}' &&
    not_patched "$only" '{"spec": {"workers": {"template": {"spec": {"nodeName": "n"}}}}}' &&
    not_patched 'the class decides the queue' '{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "own"}}}'
verdict $? "nor can a change while the job is suspended" "$answer"
answer=$(k patch tj late --type=merge -p '{"spec": {"workers": {"template": {"spec": {"containers": [{"name": "trainer", "args": ["x"]}]}}}}}' 2>&1) &&
    answer=$(k annotate tj late a=b 2>&1) && answer=$(k delete tj late --cascade=foreground --timeout=60s 2>&1)
verdict $? "arguments may change, and jobs may be deleted" "$answer"
# sweep LINE: its template has that line as well
sweep() {
    k apply -f - >"$work/answer" 2>&1 <<YAML
apiVersion: coxswain.dev/v1beta1
kind: TrainingSweep
metadata: {name: many}
spec:
  algorithm: {type: Grid}
  parameters: [{path: coxswain.training.seed, values: [1, 2]}]
  template:
    $1
    coxswain:
      strategy: {type: OneDevice}
      model: {preset: mlp}
      data: {format: Synthetic, examples: 1000}
      training: {steps: 10, batchSize: 100}
YAML
}
! sweep '' && grep -q 'jobs in this namespace need' "$work/answer"
verdict $? "also sweeps" "$(cat "$work/answer")"
! sweep 'trainingClass: {kind: TrainingClass, name: standard}' && grep -q 'jobs in this namespace need' "$work/answer"
verdict $? "not to a TrainingClass" "$(cat "$work/answer")"
sweep 'trainingClass: {name: standard}' && until_true 60 k get tj many-0 >/dev/null
verdict $? "a sweep of the class gets its trials" "$(cat "$work/answer"; k get trainingsweep many -o yaml)"
k delete trainingsweep many >/dev/null
k create -f "$examples/job.yaml" >/dev/null
expect classy readySummary 2/2
verdict $? "a job of that class runs" "$(status_of classy conditions)"
