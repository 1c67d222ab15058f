# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# float16, whose losses are scaled: a test of its own, on emulated GPUs.
BUILD=$bin EMULATED_GPUS=3 DEVICE=GPU "$root/tests/integration/test_loss_scale.sh"
verdict $? "float16, whose losses are scaled, on GPUs" "see above"
