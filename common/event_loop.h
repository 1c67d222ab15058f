/* SPDX-License-Identifier: Apache-2.0
 *
 * A single-threaded event loop: waits for descriptors, timers, signals and HTTP transfers
 * (http_client.h) in one curl_multi_poll. Callbacks run on the loop, one at a time, and must not
 * block. A callback may add or remove any source, including its own. All functions must be called
 * from the thread that runs the loop.
 */
#ifndef COXSWAIN_COMMON_EVENT_LOOP_H
#define COXSWAIN_COMMON_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct event_loop;
struct event_timer;

enum event_interest { EVENT_READ = 1, EVENT_WRITE = 2 };

/* Creates a loop. Makes the process ignore SIGPIPE, unless the program has a handler for it;
 * restore the default in child processes. */
int event_loop_new(struct event_loop **ret_loop, struct error *error);
/* Frees the loop. Running transfers end with ERROR_CANCELLED; timers and watches are dropped. */
void event_loop_free(struct event_loop *loop);

/* Runs the loop until a callback calls event_loop_stop; a call of it before the loop runs has no effect. Fails if a turn fails. */
int event_loop_run(struct event_loop *loop, struct error *error);
/* Runs one turn: waits at most `timeout_ms` (-1: until something happens), then calls the callbacks
 * that are due. */
int event_loop_turn(struct event_loop *loop, int timeout_ms, struct error *error);
void event_loop_stop(struct event_loop *loop);
/* Sets a callback that runs after every wait, before anything is sent or received. With it a process
 * that was suspended can, for example, notice that its lease has expired before it sends anything.
 * NULL removes the callback. */
typedef void event_guard(void *context);
void event_loop_set_guard(struct event_loop *loop, event_guard *guard, void *context);

/* Calls `ready` whenever `descriptor` is ready for one of `interest`; `what` says for which. If it has
 * hung up or failed, `what` is the whole of `interest`. A second call
 * for the same descriptor replaces the first. The caller owns the descriptor and must unwatch it
 * before closing it. */
typedef void event_ready(void *context, int descriptor, enum event_interest what);
int event_loop_watch(struct event_loop *loop, int descriptor, enum event_interest interest, event_ready *ready,
                     void *context, struct error *error);
void event_loop_unwatch(struct event_loop *loop, int descriptor);

/* Calls `due` once, after `delay_ms` (0 or less: on the next turn). The loop frees the timer before it
 * calls `due`; do not use it afterwards, nor after event_timer_cancel. */
typedef void event_due(void *context);
struct event_timer *event_timer_start(struct event_loop *loop, int64_t delay_ms, event_due *due, void *context);
void event_timer_cancel(struct event_timer *timer);

/* Calls `caught` on the loop for each `signal_number` that arrives. Blocks the signal in the
 * calling thread and receives it through a signalfd. */
typedef void event_signal(void *context, int signal_number);
int event_loop_on_signal(struct event_loop *loop, int signal_number, event_signal *caught, void *context,
                         struct error *error);
/* Returns the signalfd, which is readable while a signal waits for the loop's next turn; -1 if no
 * signal is handled. For code that must wait outside the loop: poll it, do not read it. */
int event_loop_signals(const struct event_loop *loop);

#endif
