/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads training examples ahead, on a thread of its own, for a worker of a ParameterServer job
 * (ps_share.c): while a device computes one range of examples, the thread reads the next into that
 * device's second buffer.
 *
 * The caller announces the ranges that it will want. A range that is wanted now is read first, then
 * announced ones in the order in which they were announced. A read ahead that fails is repeated
 * when the range is wanted, and only then its error is returned.
 */
#ifndef COXSWAIN_TRAIN_PS_READER_H
#define COXSWAIN_TRAIN_PS_READER_H

#include "worker/data/dataset.h"
#include "worker/data/sampler.h"
#include "worker/strategy/strategy.h"

/* A range of examples of one pass over the data. count 0: none. */
struct ps_examples {
    int64_t data_epoch, first, count;
};

struct ps_batch {
    const void *inputs, *targets; /* shared memory */
};

struct ps_reader_options { /* all but the struct itself and the sampler is borrowed */
    const struct dataset *dataset;
    const struct sampler *sampler;
    const struct strategy_device *devices;
    unsigned device_count;
    int64_t at_a_time; /* most examples of one read */
};

struct ps_reader;

int ps_reader_new(const struct ps_reader_options *options, struct ps_reader **ret_reader, struct error *error);
/* Waits for a read in progress, then frees. If ps_reader_rest has already waited in vain, does not
 * wait again. Returns false if a volume hangs: the thread then keeps the reader, its buffers and
 * the data set, which must not be freed. */
bool ps_reader_free(struct ps_reader *reader);

/* Waits until the examples are read and returns them. They stay valid until this device takes its
 * next ones; by then nothing may still be reading them. `following` are the examples that the
 * caller will want next. */
int ps_reader_take(struct ps_reader *reader, unsigned device, struct ps_examples examples, struct ps_examples following,
                   struct ps_batch *ret_batch, struct error *error);
/* Announces examples that will be wanted after those announced before. May be called from any
 * thread. */
void ps_reader_foresee(struct ps_reader *reader, unsigned device, struct ps_examples examples);
/* Makes ps_reader_take fail with ERROR_CANCELLED, now and forever. May be called from any thread. */
void ps_reader_cancel(struct ps_reader *reader);
/* Forgets all announced examples and waits at most `ms` for a read in progress. Returns whether no
 * read is in progress any more. */
bool ps_reader_rest(struct ps_reader *reader, int64_t ms);

#endif
