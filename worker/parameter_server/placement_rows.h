/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the rows of token embeddings that a parameter server and a worker send each other one by
 * one, because a batch uses only the rows of its own tokens. A table is a server's piece of such a
 * tensor (parameter_tensor.by_rows) if the whole tensor has PLACEMENT_TABLE_BYTES or more; all
 * other tensors are always transferred completely. The rows of a server's tables are numbered
 * consecutively, in the order of its pieces.
 *
 * A row set (row_set.h) says which rows a transfer contains. If it is a list, the transfer
 * consists of everything that belongs to no table, in the order of the server's packed array, and
 * then the listed rows. If it stands for all rows, the transfer is the packed array itself.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_PLACEMENT_ROWS_H
#define COXSWAIN_PARAMETER_SERVER_PLACEMENT_ROWS_H

#include "worker/parameter_server/placement.h"
#include "worker/parameter_server/row_set.h"

/* Returns whether any server has a table. */
bool placement_has_tables(const struct placement *placement);
/* Returns false if the set lists a row that the server does not have. */
bool placement_knows_rows(const struct placement *placement, unsigned server, const struct row_set *rows);

/* Returns the number of elements of the transfer. */
int64_t placement_elements_of(const struct placement *placement, unsigned server, const struct row_set *rows);

/* A part of the transfer that is contiguous in all three arrays. */
struct placement_segment {
    int64_t offset;  /* in an array in the layout's order */
    int64_t local;   /* in the packed array */
    int64_t carried; /* in the transfer */
    int64_t elements;
    bool is_row;
};
/* Calls `visit` for each segment of the transfer, in its order. */
typedef void placement_visit(void *context, const struct placement_segment *segment);
void placement_walk(const struct placement *placement, unsigned server, const struct row_set *rows,
                    placement_visit *visit, void *context);

/* The order of an array's elements: the layout's, the packed array's, the transfer's. */
enum placement_order { ORDER_LAYOUT, ORDER_PACKED, ORDER_CARRIED };
/* Copies the elements of the transfer from one array into another. */
void placement_carry(const struct placement *placement, unsigned server, const struct row_set *rows, const float *from,
                     enum placement_order from_order, float *to, enum placement_order to_order);

/* Selects for each server the rows of its tables whose tokens are marked; `marked` has an entry for
 * each row of the whole tensor. Selects all rows if the list would be longer than ROW_SET_MAX or
 * the transfer would not be smaller. */
void placement_choose_rows(const struct placement *placement, const struct parameter_tensor *tensor, const bool *marked,
                           struct row_set *sets);

#endif
