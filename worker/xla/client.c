/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/client.h"

#include <stdio.h>
#include <stdlib.h>

/* Without these variables the plugin takes the processors of the machine. PJRT_NPROC goes before NPROC, which older
 * plugins know alone. */
void xla_set_environment(int threads)
{
    char number[16];
    snprintf(number, sizeof number, "%d", threads);
    (void)setenv("NPROC", number, 1);
    (void)setenv("PJRT_NPROC", number, 1);
}

int64_t xla_value_elements(const struct xla_value *value)
{
    int64_t elements = 1;
    for (unsigned i = 0; i < value->rank; i++)
        elements *= value->shape[i];
    return elements;
}
