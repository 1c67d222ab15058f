/* SPDX-License-Identifier: Apache-2.0
 *
 * A chief's inside, for the files that make it: ps_chief.c (the loop),
 * ps_chief_start.c (what servers start from), ps_chief_save.c (checkpoints). Only
 * they include it.
 */
#ifndef COXSWAIN_TRAIN_PS_CHIEF_PARTS_H
#define COXSWAIN_TRAIN_PS_CHIEF_PARTS_H

#include <pthread.h>

#include "common/contract/exit_code.h"
#include "worker/parameter_server/dispatcher.h"
#include "worker/parameter_server/recovery.h"
#include "worker/parameter_server/servers_link.h"
#include "worker/parameter_server/ticket_link.h"
#include "worker/train/trainer.h"

struct ps_worker;

struct ps_chief {
    struct trainer *trainer;
    enum parameter_server_mode mode;
    int64_t per_step;
    struct placement placement;
    struct dispatcher *dispatcher;

    /* To see the values, for evaluations and the export. */
    struct rpc *rpc;
    struct address_book *book;
    struct servers_link *values;
    struct graph *graph; /* of its own where a worker computes beside it */

    struct ps_worker *worker; /* NULL: there is a chief of its own */
    pthread_t thread;
    bool thread_runs;
    struct error worker_error;

    struct ticket_grant base; /* where ticket base_step * per_step begins; its lineage is the crew's */
    bool begun;               /* tickets have flowed */
    int64_t step, told_ns;
    int64_t told_lost; /* in the record */
    bool waits;        /* the status says for whom; the rpc's thread only */
    int64_t lost_ns;   /* when a server was lost, 0: all are there */
    int64_t saved_step, saved_ns;
    bool saw_off; /* servers that are not back: there can be no newer save than the one before they went */
    int64_t evaluated_step;
    enum exit_code code; /* what plain bad input means in what is under way */
};

/* Waits for all servers, and has each start from what is right. ERROR_UNAVAILABLE: one was lost meanwhile. */
int ps_chief_start(struct ps_chief *chief, struct error *error);

/* What a checkpoint says of its servers' tickets, if anything; `source` has its step and position already. Of a crew of another size,
 * or with another batch, nothing, since its tickets are cut otherwise: what is above the step is then computed again. */
int ps_chief_read_tickets(const struct ps_chief *chief, const struct manifest *manifest, struct recovery_source *source,
                          struct error *error);

/* Saves now, and waits. ERROR_UNAVAILABLE: a server was lost. Asynchronous: what servers have applied beyond the step is there as well,
 * and it replaces the newest checkpoint where that is of the same step. `last`, before this process or servers leave: servers
 * answer nobody after it, this chief included, before the next beginning. */
int ps_chief_save(struct ps_chief *chief, bool last, struct error *error);
/* For dispatcher_options.written. */
int64_t ps_chief_written(void *context, const char *directory);
/* Saves when it is due; what fails is a warning. ERROR_STALE, ERROR_CONFLICT: another chief has the directory. */
int ps_chief_save_if_due(struct ps_chief *chief, struct error *error);

#endif
