/* SPDX-License-Identifier: Apache-2.0
 *
 * What a crew has computed and applied, as lines in one file that all its
 * processes append to (COXSWAIN_RECORD): so that it can be proven afterwards which
 * examples each step took, whoever was lost meanwhile (tests/chaos).
 *
 *   share GENERATION NAME STEP EPOCH POSITION EXAMPLE…   before NAME computes: examples by number, which stand at POSITION and
 *                                                        after it in the order of that epoch of the data
 *   applied GENERATION NAME FIRST LAST NANOSECONDS       after steps FIRST to LAST are applied there, by CLOCK_MONOTONIC
 *   ticket GENERATION NAME FATE WORKER TICKET            the chief of a parameter-server crew, as it happens: a worker joins or
 *                                                        leaves, takes a ticket, has done it (late: it held it no more; again: another had), holds it still
 *                                                        when it comes back, has finished
 *                                                        TICKET in all (clock: more than was known); or (void) all are taken back, and
 *                                                        those below TICKET are finished, as are those that are kept; before that
 *                                                        (back) the crew has gone back
 *   lost GENERATION NAME UPDATES NANOSECONDS             the same chief: so many acknowledged updates are lost, in all, as of now
 *   server GENERATION NAME FATE LINEAGE NUMBER WHOSE     a parameter server: what becomes of its values and of those that it keeps
 *                                                        for another (SERVER_FATES), before anybody else hears of it
 *   checkpoint GENERATION NAME STEP DIRECTORY            its chief, before what the servers have just saved there becomes the
 *                                                        checkpoint of that step
 *   peer GENERATION NAME FATE SEAT EXAMPLES              PeerToPeer: the worker of that seat begins with so many finished, has finished
 *                                                        so many; (has) NAME's replica has taken in its first so many; or
 *                                                        (restored) NAME has them from a checkpoint, and whatever was before is void
 *
 * GENERATION is the crew's, "attempt.epoch.counter"; NAME is of the process, "role-index-epoch". A line is one write, whole or not there. A step counts in the highest generation
 * that has applied it. A record that cannot be written is given up with a warning.
 */
#ifndef COXSWAIN_DATA_STEP_RECORD_H
#define COXSWAIN_DATA_STEP_RECORD_H

#include <stdint.h>

#include "common/error.h"
#include "worker/data/sampler.h"

/* One a process; without it, or with NULL, the others do nothing. */
int step_record_open(const char *path, const char *role, int64_t index, uint32_t attempt, uint32_t epoch,
                     struct error *error);
void step_record_close(void);

/* The generation from now on. Before the first: the process's own attempt and epoch. */
void step_record_world(uint32_t attempt, uint32_t epoch, uint32_t counter);

/* The `count` examples at `position` of that epoch go into `step`. From any thread. */
void step_record_share(const struct sampler *sampler, int64_t step, int64_t data_epoch, int64_t position,
                       int64_t count);
void step_record_ticket(const char *fate, unsigned worker, int64_t ticket);
void step_record_server(const char *fate, uint32_t lineage, int64_t number, const char *whose);
void step_record_peer(const char *fate, unsigned seat, int64_t examples);
void step_record_checkpoint(int64_t step, const char *directory);
void step_record_applied(int64_t first, int64_t last);
void step_record_lost(int64_t updates);

#endif
