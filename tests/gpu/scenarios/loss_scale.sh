# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# float16 with scaled losses.
device=GPU
. "$root/tests/integration/loss_scale.sh"
