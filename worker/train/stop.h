/* SPDX-License-Identifier: Apache-2.0
 *
 * SIGTERM and SIGINT. A thread waits for them, so that no code runs inside a
 * signal handler. Before there is anything to save they end the process at once
 * (exit code 143); while training holds them they are a wish that the loop reads,
 * and only the second ends the process.
 */
#ifndef COXSWAIN_TRAIN_STOP_H
#define COXSWAIN_TRAIN_STOP_H

#include <stdbool.h>

#include "common/error.h"

/* Called on the signal's thread, once, at the first signal. */
typedef void stop_asked(void *context);

/* Before any other thread is started, so that all of them leave the signals to this one. */
int stop_watch(struct error *error);
/* From now on the first signal is a wish: there is a state to lose. */
void stop_hold(void);
bool stop_is_asked(void);
/* Calls `asked` when the signal comes, or at once when it has come; NULL takes it back (and waits for a call under way). */
void stop_notify(stop_asked *asked, void *context);

#endif
