# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
#
# Emulated streams that begin as late as possible, so that a missing wait reads too early.
reference alone slow
# late WHICH: trains to the bits of `alone` with these streams as late as possible and the others
# immediate
late() {
    job "late-$1" 12 GPU OneDevice "late-$1" && EMULATED_LATE=$1 lone "late-$1" && same_weights "late-$1" alone
}
late even && late odd && late all
verdict $? "streams wait for each other's work: the same bits with late streams" "$(tail -qn 2 late-*.log)"
varied all-late 26 all-late && EMULATED_LATE=all lone all-late && same_weights all-late slow
verdict $? "also where a GPU goes from step to step by itself" "$(tail -n 2 all-late.log)"
