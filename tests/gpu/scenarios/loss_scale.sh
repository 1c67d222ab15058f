# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# float16, whose losses are scaled. Its jobs are called as those of other scenarios, and have a folder of their own.
work+=/float16
mkdir "$work" && cd "$work" || exit 1
device=GPU
. "$root/tests/integration/loss_scale.sh"
work=${work%/*}
cd "$work" || exit 1
