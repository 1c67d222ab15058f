/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the examples of a parameter-server worker on a thread of its own: while some are computed,
 * it reads those that follow, as far as they are known. Each of the worker's devices has two
 * buffers, one of which is being filled.
 *
 * Examples that are needed now are read first, then expected ones in the order in which they were
 * announced. If reading ahead fails, the read is repeated and its error returned when the examples
 * are needed.
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
