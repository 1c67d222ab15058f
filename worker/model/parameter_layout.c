/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/model/parameter_layout.h"

#include <stddef.h>
#include <string.h>

#include "common/crc32c.h"

const struct parameter_tensor *parameter_layout_find(const struct parameter_layout *layout, const char *name)
{
    for (unsigned i = 0; i < layout->tensor_count; i++)
        if (strcmp(layout->tensors[i].name, name) == 0)
            return &layout->tensors[i];
    return NULL;
}

int64_t parameter_layout_place(const struct parameter_layout *layout, const struct parameter_tensor *tensor)
{
    for (unsigned i = 0; i < layout->tensor_count; i++) {
        const struct parameter_tensor *here = &layout->tensors[i];
        if (here->place <= tensor->place && tensor->place + tensor->elements <= here->place + here->elements)
            return here->offset + tensor->place - here->place;
    }
    return -1;
}

uint32_t parameter_layout_digest(const struct parameter_layout *layout)
{
    uint32_t digest = 0;
    for (unsigned i = 0; i < layout->tensor_count; i++) {
        const struct parameter_tensor *tensor = &layout->tensors[i];
        digest = crc32c(digest, tensor->name, strlen(tensor->name) + 1);
        digest = crc32c(digest, tensor->shape, tensor->rank * sizeof tensor->shape[0]);
        digest = crc32c(digest, &tensor->offset, sizeof tensor->offset);
    }
    return digest;
}
