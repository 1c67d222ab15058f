/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of small numbers, written as ranges ("0-3,7"): which indices of a role the
 * status promises. Lives in an arena.
 */
#ifndef COXSWAIN_CONTROLLER_INDEX_SET_H
#define COXSWAIN_CONTROLLER_INDEX_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/job/arena.h"

struct index_set {
    uint64_t *words;
    int64_t size; /* members are below it */
};

/* Empty. */
struct index_set index_set_make(struct arena *arena, int64_t size);
/* Numbers from `size` on are ignored; so is everything from the first character that cannot be understood. */
void index_set_parse(struct index_set *set, const char *text);
/* NULL for an empty set. */
const char *index_set_print(const struct index_set *set, struct arena *arena);

bool index_set_has(const struct index_set *set, int64_t index);
void index_set_add(struct index_set *set, int64_t index);

#endif
