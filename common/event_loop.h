/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop, no threads: descriptors, timers, signals and HTTP transfers
 * (http_client.h) wait together in one curl_multi_poll. Callbacks run on the
 * loop, one at a time; they must not block. A callback may add or remove any
 * source, itself included. Everything here belongs to the thread that runs it,
 * except event_loop_wake.
 */
#ifndef COXSWAIN_COMMON_EVENT_LOOP_H
#define COXSWAIN_COMMON_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct event_loop;
struct event_timer;

enum event_interest { EVENT_READ = 1, EVENT_WRITE = 2 };

/* Ignores SIGPIPE from here on, unless the program has a handler for it; children must be given the default back. */
int event_loop_new(struct event_loop **ret_loop, struct error *error);
/* Cancels what is left: transfers end with ERROR_CANCELLED, timers and watches are dropped. */
void event_loop_free(struct event_loop *loop);

/* Runs until event_loop_stop. */
int event_loop_run(struct event_loop *loop, struct error *error);
/* One turn: waits at most `timeout_ms` (-1: until something happens), then calls what is due. */
int event_loop_turn(struct event_loop *loop, int timeout_ms, struct error *error);
void event_loop_stop(struct event_loop *loop);
/* Called after every wait, before a byte is sent or read: for what must be known first by a process that was frozen.
 * `guard` NULL: none any more. */
typedef void event_guard(void *context);
void event_loop_set_guard(struct event_loop *loop, event_guard *guard, void *context);
/* From any thread or signal handler: ends the current wait. */
void event_loop_wake(struct event_loop *loop);

/* Calls `ready` whenever `descriptor` is ready for one of `interest`, or has hung up. Watching it again replaces the
 * earlier watch. The descriptor stays the caller's: unwatch before closing it. */
typedef void event_ready(void *context, int descriptor, enum event_interest what);
int event_loop_watch(struct event_loop *loop, int descriptor, enum event_interest interest, event_ready *ready,
                     void *context, struct error *error);
void event_loop_unwatch(struct event_loop *loop, int descriptor);

/* One-shot timers. The handle is dead once it has fired or was cancelled. `delay_ms` 0: on the next turn. */
typedef void event_due(void *context);
struct event_timer *event_timer_start(struct event_loop *loop, int64_t delay_ms, event_due *due, void *context);
void event_timer_cancel(struct event_timer *timer);

/* Signals through a signalfd; blocks `signal_number` in the calling thread. */
typedef void event_signal(void *context, int signal_number);
int event_loop_on_signal(struct event_loop *loop, int signal_number, event_signal *caught, void *context,
                         struct error *error);
/* Readable while one of those signals waits for the loop's next turn; for who must wait outside the loop, to poll only. -1:
 * there are none. */
int event_loop_signals(const struct event_loop *loop);

#endif
