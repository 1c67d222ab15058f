/* SPDX-License-Identifier: Apache-2.0
 *
 * A step that lasts longer than a process that is asked to leave has patience for
 * is abandoned: until a step changes the state, that is the state of the boundary
 * before it, which can still be saved. A thread waits for that moment; the
 * training thread tells it where it stands:
 *
 *     abandonment_step_begins
 *         …                        the state is the last boundary's: may be abandoned
 *     abandonment_holds_off        from now on it changes, which takes no time worth a thought
 *     abandonment_step_ends
 *
 * While a step is being abandoned the last two do not return, so that nothing
 * changes under whoever saves. Likewise what has nothing to do with a step, and
 * can be given up without a save:
 *
 *     abandonment_wait_begins
 *         …                        what there is to save is saved, or others hold it
 *     abandonment_wait_ends
 */
#ifndef COXSWAIN_TRAIN_ABANDONMENT_H
#define COXSWAIN_TRAIN_ABANDONMENT_H

#include <stdint.h>

#include "common/error.h"

struct abandonment_options {
    int64_t patience_ms; /* from the wish to leave on */
    /* On the thread, once; saves, and ends the process. */
    void (*abandon)(void *context);
    void *context;
};

struct abandonment;

int abandonment_new(const struct abandonment_options *options, struct abandonment **ret_abandonment,
                    struct error *error);
/* NULL is fine for all that follow. */
void abandonment_free(struct abandonment *abandonment);

/* The process is asked to leave; the first time counts. From any thread. */
void abandonment_ask(struct abandonment *abandonment);

void abandonment_step_begins(struct abandonment *abandonment);
void abandonment_holds_off(struct abandonment *abandonment);
void abandonment_step_ends(struct abandonment *abandonment);

/* `what`, for people, is not copied. */
void abandonment_wait_begins(struct abandonment *abandonment, const char *what);
void abandonment_wait_ends(struct abandonment *abandonment);
/* For `abandon`: the wait that it gives up; NULL: it is a step. */
const char *abandonment_wait(const struct abandonment *abandonment);

#endif
