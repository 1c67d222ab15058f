/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements sets of small numbers that a status stores as ranges ("0-3,7"): the indices of a role
 * whose pods are promised or completed, or the numbers of a sweep's trials. Text in a status may
 * have been edited by a person, so numbers outside the set's size and everything after a syntax
 * error are ignored. A set is allocated in an arena and freed with that arena.
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

/* Makes an empty set. */
struct index_set index_set_make(struct arena *arena, int64_t size);
/* Adds the numbers in `text`. Ignores numbers that are not below `size`, and everything from the
 * first syntax error on. */
void index_set_parse(struct index_set *set, const char *text);
/* Returns the set as text; NULL if it is empty. */
const char *index_set_print(const struct index_set *set, struct arena *arena);

bool index_set_has(const struct index_set *set, int64_t index);
void index_set_add(struct index_set *set, int64_t index);
void index_set_remove(struct index_set *set, int64_t index);

#endif
