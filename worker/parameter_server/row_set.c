/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/parameter_server/row_set.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

void row_set_release(struct row_set *set)
{
    free(set->rows);
    *set = (struct row_set){0};
}

void row_set_clear(struct row_set *set)
{
    set->listed = true;
    set->count = 0;
}

void row_set_all(struct row_set *set)
{
    set->listed = false;
    set->count = 0;
}

static void reserve(struct row_set *set, unsigned count)
{
    if (count <= set->capacity)
        return;
    set->capacity = 2 * count;
    set->rows = memory_resize(set->rows, set->capacity, sizeof *set->rows);
}

bool row_set_add(struct row_set *set, uint32_t row)
{
    if (set->count == ROW_SET_MAX || (set->count > 0 && row <= set->rows[set->count - 1]))
        return false;
    reserve(set, set->count + 1);
    set->rows[set->count++] = row;
    return true;
}

void row_set_copy(struct row_set *to, const struct row_set *from)
{
    reserve(to, from->count);
    to->listed = from->listed;
    to->count = from->count;
    if (from->count > 0)
        memcpy(to->rows, from->rows, from->count * sizeof *to->rows);
}
