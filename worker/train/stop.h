/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles SIGTERM and SIGINT for the whole process. main.c calls stop_block and
 * stop_watch before it starts any other thread; a thread then waits for the signals, so that no code runs inside a signal handler.
 *
 * Until stop_hold is called there is nothing to save, and a signal ends the process at once (exit
 * code 143). After it, the first signal is only a request: the training loop reads it with
 * stop_is_asked, and the callback given to stop_notify is called. A second signal ends the process
 * at once.
 */
#ifndef COXSWAIN_TRAIN_STOP_H
#define COXSWAIN_TRAIN_STOP_H

#include <stdbool.h>

#include "common/error.h"

/* Called once, at the first signal, on the thread that waits for signals; if the signal has come before stop_notify, on the caller's. Must
 * not call stop_notify. */
typedef void stop_asked(void *context);

/* Blocks the signals: those that come are kept for stop_watch. Threads inherit this, so call it
 * before any is started. */
int stop_block(struct error *error);
/* Starts the thread that waits for the blocked signals. */
int stop_watch(struct error *error);
/* Makes the first signal a request, because from now on there is a training state that must be saved. */
void stop_hold(void);
/* Returns whether a signal has asked this process to stop. */
bool stop_is_asked(void);
/* Calls `asked` when the first signal comes, or at once if it has come. NULL removes the callback,
 * after waiting for a call in progress. */
void stop_notify(stop_asked *asked, void *context);

#endif
