/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shards of a batch tell each other in a batch normalisation with global statistics: their rows, and two values of
 * every column.
 */
#ifndef COXSWAIN_DEVICE_CPU_BATCH_NORM_SHARDS_H
#define COXSWAIN_DEVICE_CPU_BATCH_NORM_SHARDS_H

#include <stdint.h>

#include "worker/device/operations.h"

/* Of a column of one shard. */
struct batch_norm_told {
    double rows, first, second;
};

/* Tells what `of_column` says of all C columns of `op`, and waits for the others. NULL: this shard stands for itself. */
const double *batch_norm_ask_shards(const struct batch_norm_peers *peers, unsigned point, int64_t c,
                                    struct batch_norm_told (*of_column)(const void *op, int64_t column),
                                    const void *op);
/* From their answer. */
struct batch_norm_told batch_norm_told(const double *answer, int64_t c, unsigned shard, int64_t column);

#endif
