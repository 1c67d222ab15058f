#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# float16 with scaled losses (loss_scale.sh), on CPUs. Prints ok/not ok lines (see tests/run).
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/integration/by_hand.sh"

# A worker has as many CPUs as it wants, and they sum with one another.
can_have() {
    :
}
can_sum() {
    :
}
device=CPU
. "$root/tests/integration/loss_scale.sh"
