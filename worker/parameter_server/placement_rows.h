/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables, whose rows travel one by one. A table is a server's piece of a token
 * embedding that a pass reads only where its tokens point (parameter_tensor.by_rows),
 * of PLACEMENT_TABLE_BYTES or more in all; smaller ones travel with the rest. A
 * server's tables have their rows numbered through, in the order of its pieces.
 *
 * What travels for a set of rows: first all that belongs to no table, in the order
 * of the packed array, then the rows in theirs. For a set that lists none: the
 * packed array as it is.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_PLACEMENT_ROWS_H
#define COXSWAIN_PARAMETER_SERVER_PLACEMENT_ROWS_H

#include "worker/parameter_server/placement.h"
#include "worker/parameter_server/row_set.h"

/* Whether any server has a table. */
bool placement_has_tables(const struct placement *placement);
/* False for a list that names a row which the server does not have. */
bool placement_knows_rows(const struct placement *placement, unsigned server, const struct row_set *rows);

/* Of what travels. */
int64_t placement_elements_of(const struct placement *placement, unsigned server, const struct row_set *rows);

/* A part of what travels, contiguous wherever it lies. */
struct placement_segment {
    int64_t offset;  /* in an array in the layout's order */
    int64_t local;   /* in the packed one */
    int64_t carried; /* in what travels */
    int64_t elements;
    bool is_row;
};
typedef void placement_visit(void *context, const struct placement_segment *segment);
void placement_walk(const struct placement *placement, unsigned server, const struct row_set *rows,
                    placement_visit *visit, void *context);

/* Where an array's elements lie. */
enum placement_order { ORDER_LAYOUT, ORDER_PACKED, ORDER_CARRIED };
/* Copies what travels from one array into another. */
void placement_carry(const struct placement *placement, unsigned server, const struct row_set *rows, const float *from,
                     enum placement_order from_order, float *to, enum placement_order to_order);

/* The rows of each server's tables whose tokens are marked: `marked` has an entry for each row of the whole tensor. Where listing
 * them would take no less than all of them: all. */
void placement_choose_rows(const struct placement *placement, const struct parameter_tensor *tensor, const bool *marked,
                           struct row_set *sets);

#endif
