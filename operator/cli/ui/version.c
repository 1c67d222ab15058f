/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/ui/version.h"

#include <sys/random.h>

#include "common/clock.h"

#define VERSION_BITS 50

uint64_t random_version(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint64_t)clock_now_ms() << 8;
    return number % (UINT64_C(1) << VERSION_BITS) + 1;
}
