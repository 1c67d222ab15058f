#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/migration.md says of every field of PyTorchJob and TFJob what becomes of it: the definitions come out of the Go module
# of training-operator that training-operator/go.mod pins (checked against go.sum). Run by tests/cluster/check, for its kubectl.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck source=tests/integration/verdict.sh
. "$root/tests/integration/verdict.sh"

for program in go python3; do
    command -v $program >/dev/null || {
        echo "skip migration: there is no $program"
        exit 0
    }
done
cd "$root/tests/cluster/training-operator" || exit
module=github.com/kubeflow/training-operator
timeout 300 go mod download $module >"$work/log" 2>&1 || {
    echo "skip migration: $module could not be had"
    exit 0
}
definitions=$(go list -m -f '{{.Dir}}' $module)/manifests/base/crds

cat >"$work/fields.py" <<'PYTHON'
import json, sys

# Kubernetes defines the fields of a pod and of an autoscaler's metric; a selector is like any other.
WHOLE = {"template", "metrics", "labelSelector", "metadata"}

def fields(schema):
    for name, inner in schema.get("properties", {}).items():
        yield name
        if name not in WHOLE:
            yield from fields(inner)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from fields(inner)

for version in json.load(sys.stdin)["spec"]["versions"]:
    schema = version["schema"]["openAPIV3Schema"]
    print("\n".join(sorted(set(fields(schema)) - {"apiVersion", "kind", "metadata", "spec", "status"})))
PYTHON

for kind in pytorchjobs tfjobs; do
    kubectl create --dry-run=client --validate=false -o json -f "$definitions/kubeflow.org_$kind.yaml" |
        python3 "$work/fields.py" >"$work/$kind"
    (($(wc -l <"$work/$kind") > 25))
    verdict $? "the fields of $kind" "$(wc -l <"$work/$kind")"
    # In the left column of a table, as code.
    silent=$(while read -r field; do
        grep -Eq "^\|[^|]*[\`.]${field}[\`.:]" "$root/docs/migration.md" || echo "$field"
    done <"$work/$kind")
    [[ -z $silent ]]
    verdict $? "each field of $kind stands in docs/migration.md" "$(tr '\n' ' ' <<<"$silent")"
done
