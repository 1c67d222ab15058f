/* SPDX-License-Identifier: Apache-2.0
 *
 * The examples of a parameter servers' worker, read on a thread of their own: while
 * some are computed those behind them are read, as far as it is known which they
 * are. Each of the worker's devices has two buffers, one of which it reads.
 *
 * They are read in the order in which they are wanted: what is needed now first,
 * then what is foreseen, as it was foreseen. What fails ahead of time is read
 * again, and told, when it is needed.
 */
#ifndef COXSWAIN_TRAIN_PS_READER_H
#define COXSWAIN_TRAIN_PS_READER_H

#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/strategy/strategy.h"

/* Some of a pass over the data; count 0: none. */
struct ps_examples {
    int64_t data_epoch, first, count;
};

struct ps_batch {
    const void *inputs, *targets; /* shared memory */
};

struct ps_reader_options { /* borrowed, but for the struct and the sampler */
    const struct dataset *dataset;
    const struct sampler *sampler;
    const struct strategy_device *devices;
    unsigned device_count;
    int64_t at_a_time; /* the most examples */
};

struct ps_reader;

int ps_reader_new(const struct ps_reader_options *options, struct ps_reader **ret_reader, struct error *error);
/* Waits for what is being read, unless ps_reader_rest has in vain. On false a volume that hangs keeps the thread, and with it the reader,
 * its buffers and the data set, which must stay. */
bool ps_reader_free(struct ps_reader *reader);

/* Waits until they are there, for this device; they stay until its next ones are taken, and nothing may still read those before.
 * `following`: what the same caller wants after them. */
int ps_reader_take(struct ps_reader *reader, unsigned device, struct ps_examples examples, struct ps_examples following,
                   struct ps_batch *ret_batch, struct error *error);
/* They will be wanted behind what was foreseen before. From any thread. */
void ps_reader_foresee(struct ps_reader *reader, unsigned device, struct ps_examples examples);
/* From now on and for good nobody waits for examples: ps_reader_take fails with ERROR_CANCELLED. From any thread. */
void ps_reader_cancel(struct ps_reader *reader);
/* Forgets what is foreseen, and waits for what is being read, so long at most: whether nothing is being read any more. */
bool ps_reader_rest(struct ps_reader *reader, int64_t ms);

#endif
