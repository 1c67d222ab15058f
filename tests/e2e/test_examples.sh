#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every example of deploy/examples on real nodes, as a user would apply it (tests/e2e/examples.py). Run by tests/e2e/check.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/e2e/scene.sh
. "$root/tests/e2e/scene.sh"

install
export PYTHONDONTWRITEBYTECODE=1
python3 "$root/tests/e2e/examples.py" make "$CLUSTER/volumes"
chmod -R a+rX "$CLUSTER/volumes"
for name in digits text runs; do claim $name "$CLUSTER/volumes/$name"; done
python3 "$root/tests/e2e/examples.py" run $space "$CLUSTER/volumes"
uninstall
