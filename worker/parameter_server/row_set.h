/* SPDX-License-Identifier: Apache-2.0
 *
 * Says which embedding rows a message between worker and parameter server is about: all rows of the server's tables
 * (placement_rows.h), or a list in ascending order. A set owns its list; release it with row_set_release.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_ROW_SET_H
#define COXSWAIN_PARAMETER_SERVER_ROW_SET_H

#include <stdbool.h>
#include <stdint.h>

/* Longest list. If more rows are needed, all are transferred; a longer list from a peer is refused. */
#define ROW_SET_MAX 131072

/* Zeroed memory stands for all rows. */
struct row_set {
    bool listed;
    uint32_t *rows;
    unsigned count, capacity;
};

void row_set_release(struct row_set *set);
/* Makes the set an empty list; keeps its memory. */
void row_set_clear(struct row_set *set);
void row_set_all(struct row_set *set);
/* Adds a row to a list. Returns false if the row is not above all others in it, or the list is
 * full. */
bool row_set_add(struct row_set *set, uint32_t row);
void row_set_copy(struct row_set *to, const struct row_set *from);

#endif
