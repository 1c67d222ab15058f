/* SPDX-License-Identifier: Apache-2.0
 *
 * Ends a fuzz target that finds something untrue, so that the fuzzer keeps the input.
 */
#ifndef COXSWAIN_FUZZ_EXPECT_H
#define COXSWAIN_FUZZ_EXPECT_H

#include <stdbool.h>
#include <stdlib.h>

static inline void expect(bool truth)
{
    if (!truth)
        abort();
}

#endif
