/* SPDX-License-Identifier: Apache-2.0
 *
 * Determines which parameter server holds which parameters. Servers, workers and chief all compute it; it is a pure
 * function of the model's layout and the number of servers, so that nothing need be communicated.
 *
 * Tensors are assigned to the servers in turn. A tensor of PLACEMENT_PARTITION_BYTES or more is cut by rows (of its
 * first dimension) into nearly equal pieces, one for each server. Each server keeps its pieces packed in one flat
 * array, in the order of the layout. Pieces that are adjacent in both arrays make one run.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_PLACEMENT_H
#define COXSWAIN_PARAMETER_SERVER_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/model/parameter_layout.h"

#define PLACEMENT_PARTITION_BYTES (256 << 10)
#define PLACEMENT_TABLE_BYTES (256 << 10)

struct placement_piece {
    const struct parameter_tensor *tensor;
    unsigned server;
    int64_t first_row, rows; /* of the tensor's first dimension; a scalar has one */
    int64_t offset;          /* in the layout's flat array */
    int64_t local;           /* in the server's packed array */
    int64_t elements;
};

/* A range that is contiguous in both arrays. */
struct placement_run {
    int64_t offset, local, elements;
};

/* A piece whose rows travel one by one (placement_rows.h). */
struct placement_table {
    const struct parameter_tensor *tensor;
    int64_t offset, local; /* as the piece's */
    int64_t first_row, rows, row_elements;
    int64_t first; /* index of its first row among the rows of all the server's tables */
};

struct placement {
    unsigned server_count;
    struct placement_piece *pieces; /* in the order of the layout */
    unsigned piece_count;
    struct placement_run **runs; /* by server */
    unsigned *run_counts;
    int64_t *elements;            /* by server: length of its packed array */
    struct placement_run **dense; /* by server: the runs of its pieces that are not tables */
    unsigned *dense_counts;
    struct placement_table **tables; /* by server */
    unsigned *table_counts;
    int64_t layout_statistics;
    int64_t *statistics; /* by server: how many of its first elements are running statistics */
};

/* Computes the placement. Tensors are borrowed from the layout. */
void placement_init(struct placement *placement, const struct parameter_layout *layout, unsigned servers);
void placement_release(struct placement *placement);

/* Returns whether the piece is a whole tensor. */
bool placement_is_whole(const struct placement_piece *piece);

/* Copy between a flat array in the layout's order and a server's packed one. */
void placement_pack(const struct placement *placement, unsigned server, const float *flat, float *packed);
void placement_unpack(const struct placement *placement, unsigned server, const float *packed, float *flat);

#endif
