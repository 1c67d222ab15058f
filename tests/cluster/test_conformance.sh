#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The suite that `make test` runs against the embedded control plane, against a real one. Run by tests/cluster/check.
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/integration/verdict.sh
. "$root/tests/integration/verdict.sh"
kubectl apply -f "$root/deploy/crd" >/dev/null &&
    until_true 60 kubectl wait --for=condition=Established crd/trainingjobs.coxswain.dev --timeout=60s >/dev/null || exit
CONFORMANCE=cluster KUBECTL=$(command -v kubectl) exec "$root/tests/integration/test_kubectl.sh"
