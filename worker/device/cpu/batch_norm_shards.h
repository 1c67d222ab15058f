/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges column statistics between the shards of a batch that are computed at the same time, for
 * batch normalisation with statistics of the whole batch on the CPU (shard_exchange.h). Each shard
 * gives its number of rows and two values of every column; each receives the values of all shards.
 * The call waits for the slowest shard.
 */
#ifndef COXSWAIN_DEVICE_CPU_BATCH_NORM_SHARDS_H
#define COXSWAIN_DEVICE_CPU_BATCH_NORM_SHARDS_H

#include <stdint.h>

#include "worker/device/operations.h"

/* What one shard contributes for one column: its number of rows, and two values that the caller
 * chooses. */
struct batch_norm_shard_values {
    double rows, first, second;
};

/* Sends the values that `of_column` returns for all C columns of `op`, and waits for those of
 * the other shards. `point`: see shard_exchange.h, also for how long the result is valid. Returns the
 * values of all shards, to be read with batch_norm_shard_values. NULL: there is no exchange, or it has
 * failed. */
const double *batch_norm_exchange(const struct batch_norm_peers *peers, unsigned point, int64_t c,
                                  struct batch_norm_shard_values (*of_column)(const void *op, int64_t column),
                                  const void *op);
/* Returns the values of one shard's column. */
struct batch_norm_shard_values batch_norm_shard_values(const double *shards, int64_t c, unsigned shard, int64_t column);

#endif
