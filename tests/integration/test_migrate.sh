#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cox migrate: what it prints, and its exit codes. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=$(cd "${BUILD:-$root/build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit

# shellcheck source=tests/integration/verdict.sh
. "$root/tests/integration/verdict.sh"
cox_command=("$bin/cox")
. "$root/tests/integration/cox.sh"

cat >old.yaml <<'YAML'
apiVersion: coxswain.dev/v1alpha1
kind: TrainingJob
metadata: {name: digits}
spec:
  strategy: {type: MultiWorkerMirrored} # a comment
  workers: 2
  model: {preset: mlp}
  data: {format: synthetic, examples: 100}
  training: {steps: 5, batchSize: 10}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data: {a.py: "print(1)\n"}
YAML

cox 0 migrate old.yaml && printed '^apiVersion: coxswain.dev/v1beta1$' '^    replicas: 2$' '^---$' '^kind: ConfigMap$' &&
    grep -q '^cox migrate: ConfigMap scripts: printed as it is$' err && (($(wc -l <err) == 1))
verdict $? "a job is translated, and other documents stay" "$(said)"
cp out new.yaml
cox 0 migrate new.yaml && cmp out new.yaml
verdict $? "what is translated already stays" "$(said)"
"$bin/cox" migrate - <old.yaml 2>err | cmp - new.yaml
verdict $? "- is the standard input" "$(said)"
sed 's/steps: 5/&, weightRounding: Stochastic/' old.yaml >rounded.yaml
cox 4 migrate rounded.yaml && cmp out new.yaml &&
    grep -q '^cox migrate: TrainingJob digits: spec.training.weightRounding: left out: ' err
verdict $? "what is left out is named" "$(said)"
printf 'apiVersion: v1\nkind: List\nitems:\n' >list.yaml
sed '/^---/,$d; s/^/  /; 1s/^ /-/' old.yaml >item.yaml
cat item.yaml item.yaml >>list.yaml
cox 0 migrate list.yaml && (($(grep -c '^kind: TrainingJob' out) == 2))
verdict $? "a List is translated item by item" "$(cat list.yaml; said)"
cat >kubeflow.yaml <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: cnn}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 4, metrics: [{type: Resource}]}
  pytorchReplicaSpecs:
    Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: me/cnn:1}]}}}
---
{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: mpi}}
YAML
cox 4 migrate kubeflow.yaml && printed '^  pytorch: {}' '^  image: .*me/cnn:1' '^    maxReplicas: 4' '^kind: MPIJob' &&
    grep -q '^cox migrate: PyTorchJob cnn: spec.elasticPolicy.metrics: left out: create a HorizontalPodAutoscaler' err &&
    grep -q '^cox migrate: MPIJob mpi: kind: not translated' err
verdict $? "jobs of Kubeflow are translated as far as they can be" "$(said)"
cat >trainer.yaml <<'YAML'
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: cnn, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    image: me/cnn:1
    command: [torchrun, train.py]
    numNodes: 4
    numProcPerNode: 2
    resourcesPerNode: {limits: {nvidia.com/gpu: 2}}
  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {zone: a}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: trees}
spec: {runtimeRef: {name: xgboost-distributed}}
YAML
cox 4 migrate trainer.yaml && printed '^  pytorch: {}' '^  image: .*me/cnn:1' '^    replicas: 4' '^    count: 2' 'queue-name: .*q' \
    'zone: .*a' '^kind: TrainJob' && ! grep -q 'nvidia.com/gpu' out && (($(wc -l <err) == 3)) &&
    grep -q '^cox migrate: TrainJob cnn: spec.runtimeRef: left out: look up the runtime with .kubectl get clustertrainingruntimes torch-distributed -o yaml' err &&
    grep -q '^cox migrate: TrainJob trees: spec.runtimeRef.name: not translated: ' err &&
    grep -q '^cox migrate: TrainJob trees: printed as it is$' err
verdict $? "a TrainJob is translated but for its runtime" "$(said)"
sed '/^---/,$d' out >one.yaml
cox 0 migrate one.yaml && cmp out one.yaml
verdict $? "what became of a TrainJob stays" "$(said)"
: >empty.yaml
echo 'a: [' >broken.yaml
cox 1 migrate empty.yaml && grep -q 'holds no document' err && cox 1 migrate broken.yaml && cox 1 migrate none.yaml && [[ ! -s out ]] &&
    cox 2 migrate && cox 2 migrate --fred && cox 2 migrate old.yaml new.yaml && cox 0 migrate --help && printed '^usage: cox migrate FILE'
verdict $? "nothing is printed when the file cannot be read" "$(said)"
