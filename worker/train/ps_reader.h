/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads training examples ahead, on a thread of its own, for a worker of a ParameterServer job
 * (ps_share.c): while a device computes one range of examples, the thread reads the next into that
 * device's second buffer.
 *
 * The caller announces the ranges that it will need. A range that ps_reader_take waits for is read
 * first, then announced ranges in the order of their announcement. If a read ahead fails, it is
 * repeated when ps_reader_take asks for the range, and only then its error is returned.
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
    const void *inputs, *targets; /* in memory that host and device share; owned by the reader */
};

/* The reader copies the struct and the sampler; all else must outlive it. */
struct ps_reader_options {
    const struct dataset *dataset;
    const struct sampler *sampler;
    const struct strategy_device *devices;
    unsigned device_count;
    int64_t at_a_time; /* the most examples that one read may ask for */
};

struct ps_reader;

int ps_reader_new(const struct ps_reader_options *options, struct ps_reader **ret_reader, struct error *error);
/* Waits for a read in progress, at most ten seconds, then frees the reader. Does not wait if ps_reader_drain has timed out
 * before. Returns false if the read does not end, because the volume hangs: the thread then still uses
 * the reader, its buffers and the data set, and none of them may be freed. */
bool ps_reader_free(struct ps_reader *reader);

/* Waits until the examples are read and returns them. They stay valid until this device takes its
 * next ones; by then nothing may still be reading them. `following` are the examples that the
 * caller will want next. */
int ps_reader_take(struct ps_reader *reader, unsigned device, struct ps_examples examples, struct ps_examples following,
                   struct ps_batch *ret_batch, struct error *error);
/* Announces examples that ps_reader_take will ask for after those announced before. May be called from
 * any thread. */
void ps_reader_announce(struct ps_reader *reader, unsigned device, struct ps_examples examples);
/* Makes ps_reader_take fail with ERROR_CANCELLED, now and in later calls. May be called from any thread. */
void ps_reader_cancel(struct ps_reader *reader);
/* Forgets all announced examples and waits at most `ms` for a read in progress. Returns whether no
 * read is in progress any more. */
bool ps_reader_drain(struct ps_reader *reader, int64_t ms);

#endif
