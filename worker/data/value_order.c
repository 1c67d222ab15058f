/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/value_order.h"

#include <stdbool.h>
#include <stdio.h>

#define SHAPE_TEXT_MAX (EXAMPLE_RANK_MAX * 21 + 1)

static void print_shape(const struct example_shape *shape, char text[SHAPE_TEXT_MAX])
{
    int length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < shape->rank; i++)
        length += snprintf(text + length, SHAPE_TEXT_MAX - (size_t)length, "%s%lld", i > 0 ? "x" : "",
                           (long long)shape->dims[i]);
}

/* Whether joining neighbouring dimensions of `fine` can give `coarse`: the products of the first one, two … dimensions of
 * `coarse` are then among those of `fine`. */
static bool joins_to(const struct example_shape *fine, const struct example_shape *coarse)
{
    int64_t of_fine = 1, of_coarse = 1;
    unsigned next = 0;
    for (unsigned i = 0; i < coarse->rank; i++) {
        of_coarse *= coarse->dims[i];
        while (of_fine < of_coarse && next < fine->rank)
            of_fine *= fine->dims[next++];
        if (of_fine != of_coarse)
            return false;
    }
    return true;
}

static bool has_channels_first(const struct example_shape *wanted, const struct example_shape *stored)
{
    return wanted->rank == 3 && stored->rank == 3 && wanted->dims[0] == stored->dims[2] &&
           wanted->dims[1] == stored->dims[0] && wanted->dims[2] == stored->dims[1];
}

int value_order_check(const char *what, const struct example_shape *stored, const struct example_shape *wanted,
                      struct error *error)
{
    char stored_text[SHAPE_TEXT_MAX], wanted_text[SHAPE_TEXT_MAX];
    if (joins_to(stored, wanted) || joins_to(wanted, stored))
        return 0;
    print_shape(stored, stored_text);
    print_shape(wanted, wanted_text);
    return error_set(error, ERROR_INVALID,
                     "the %s are %s, but the model takes %s, as many values in another order; make the model take "
                     "%s%s, or store the %s as %s",
                     what, stored_text, wanted_text, stored_text,
                     has_channels_first(wanted, stored) ? " (export: channels_first=True)" : "", what, wanted_text);
}
