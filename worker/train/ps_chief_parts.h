/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares what the files that implement the chief of a ParameterServer job share: ps_chief.c (life
 * cycle and events), ps_chief_start.c (finds the state that the servers start from) and
 * ps_chief_save.c (saves checkpoints). No other file includes it.
 *
 * All functions are for the chief's main thread, except ps_chief_written, which the dispatcher
 * calls (dispatcher.h).
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

    /* for reading the values: evaluations and the export */
    struct rpc *rpc;
    struct address_book *book;
    struct servers_link *values;
    struct graph *graph; /* the chief's own if a worker computes in the same process */

    struct ps_worker *worker; /* NULL: this process is only the chief */
    pthread_t thread;
    bool thread_runs;
    struct error worker_error;

    struct ticket_grant base;  /* where ticket base_step * per_step begins; base.lineage is the crew's */
    bool begun;                /* this chief has given tickets to workers */
    int64_t step, reported_ns; /* reported_ns: the time of the last step that was reported */
    int64_t reported_lost;     /* lost updates, as last reported */
    bool waits;                /* the status says for whom the crew waits; used on the rpc's thread only */
    int64_t lost_ns;           /* when a server was lost; 0: none is missing */
    int64_t saved_step, saved_ns;
    /* Servers have left after a save and are not back, so that no newer save is possible. */
    bool saved_for_leaving;
    int64_t evaluated_step;
    enum exit_code code; /* of the process if what the chief is doing now fails with ERROR_INVALID */
};

/* Waits for all servers and starts each from the right state. ERROR_UNAVAILABLE: a server was lost
 * meanwhile. */
int ps_chief_start(struct ps_chief *chief, struct error *error);

/* Reads the servers' tickets from a checkpoint's manifest into `source`, whose step and position
 * are already set. Reads none if the manifest has none, or if the checkpoint's crew had another
 * number of servers or of tickets per step, or another batch size: its tickets then stand for other
 * examples, and updates beyond the step are computed again. */
int ps_chief_read_tickets(const struct ps_chief *chief, const struct manifest *manifest, struct recovery_source *source,
                          struct error *error);

/* Saves now and waits for it. ERROR_UNAVAILABLE: a server was lost. In asynchronous modes the
 * checkpoint also contains what servers have applied beyond the step, and replaces the newest
 * checkpoint if that has the same step. `last`: this process or the servers leave after the save;
 * after it, servers answer nobody, this chief included, until they are started again. */
int ps_chief_save(struct ps_chief *chief, bool last, struct error *error);
/* Returns a number that changes whenever a disk has made progress with the save. For
 * dispatcher_options.written. */
int64_t ps_chief_written(void *context, const char *directory);
/* Saves if a save is due. A failed save is a warning, except for ERROR_STALE and ERROR_CONFLICT
 * (another chief owns the directory) and ERROR_CANCELLED. */
int ps_chief_save_if_due(struct ps_chief *chief, struct error *error);

#endif
