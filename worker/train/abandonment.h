/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives a process that was asked to leave (SIGTERM) a deadline: if its current training step or
 * wait does not end in time, a thread of this module calls `abandon`, which saves what can be saved
 * and ends the process. Used by leaving.c, the evaluator, and the processes of a parameter-server
 * crew.
 *
 * The training thread reports what it is doing. Between two steps, at a boundary, the state is
 * complete and can be saved; until a step changes it, it is still that of the boundary before the
 * step:
 *
 *     abandonment_step_begins
 *         …                        the state is the last boundary's: the step may be abandoned
 *     abandonment_holds_off        from here on the state changes, which takes hardly any time
 *     abandonment_step_ends
 *
 * While `abandon` runs, the last two calls do not return, so that the state does not change while
 * it is saved. A wait that can be given up without a save is reported in the same way:
 *
 *     abandonment_wait_begins
 *         …                        everything is saved, or other processes hold it
 *     abandonment_wait_ends
 */
#ifndef COXSWAIN_TRAIN_ABANDONMENT_H
#define COXSWAIN_TRAIN_ABANDONMENT_H

#include <stdint.h>

#include "common/error.h"

struct abandonment_options {
    int64_t patience_ms; /* from abandonment_ask until the step is abandoned */
    /* Called once, on the watching thread. Saves the state and ends the process. */
    void (*abandon)(void *context);
    void *context;
};

struct abandonment;

int abandonment_new(const struct abandonment_options *options, struct abandonment **ret_abandonment,
                    struct error *error);
/* Stops the thread; waits for `abandon` if it is running. This function and the others below,
 * except abandonment_wait, accept NULL and do nothing. */
void abandonment_free(struct abandonment *abandonment);

/* Starts the deadline, on the first call only. May be called from any thread. */
void abandonment_ask(struct abandonment *abandonment);

void abandonment_step_begins(struct abandonment *abandonment);
void abandonment_holds_off(struct abandonment *abandonment);
void abandonment_step_ends(struct abandonment *abandonment);

/* Begins a wait. `what` names it in messages; it is not copied. */
void abandonment_wait_begins(struct abandonment *abandonment, const char *what);
void abandonment_wait_ends(struct abandonment *abandonment);
/* Returns the wait that `abandon` is giving up; NULL if it is a step. `abandonment` must not be
 * NULL. */
const char *abandonment_wait(const struct abandonment *abandonment);

#endif
