/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows of a server's tables (placement_rows.h) a message is about: all of
 * them, or those that are listed, ascending.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_ROW_SET_H
#define COXSWAIN_PARAMETER_SERVER_ROW_SET_H

#include <stdbool.h>
#include <stdint.h>

/* More than these are never listed: then all travel. A list from outside that is longer is refused. */
#define ROW_SET_MAX 131072

/* Zeroed memory stands for all rows. */
struct row_set {
    bool listed;
    uint32_t *rows;
    unsigned count, capacity;
};

void row_set_release(struct row_set *set);
/* An empty list; memory is kept. */
void row_set_clear(struct row_set *set);
void row_set_all(struct row_set *set);
/* To a list: a row above all that are in it. False when it is not, or the list is full. */
bool row_set_add(struct row_set *set, uint32_t row);
void row_set_copy(struct row_set *to, const struct row_set *from);

#endif
