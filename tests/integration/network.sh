# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# Sourced by tests that start crews by hand: $network, the first three numbers of addresses on this machine that no other test
# has while this one runs. Taken from the process's number: two drawn by chance are the same once in a while.
network=127.$((128 + $$ / 250 % 120)).$(($$ % 250))
