/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/xla/client.h"

int64_t xla_value_elements(const struct xla_value *value)
{
    int64_t elements = 1;
    for (unsigned i = 0; i < value->rank; i++)
        elements *= value->shape[i];
    return elements;
}
