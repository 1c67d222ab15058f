/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines' inside, for the files that make them: bulk_line.c (the thread, loads) and
 * bulk_line_opening.c (dialling and being dialled). Only they include it.
 */
#ifndef COXSWAIN_COMM_BULK_LINE_PARTS_H
#define COXSWAIN_COMM_BULK_LINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/comm/bulk_line.h"
#include "worker/comm/endpoint.h"
#include "worker/comm/handshake.h"

/* How often the thread looks around though nothing happens. */
#define LINES_LOOK_MS 100

/* WAITING: is expected; DIALLING: is dialled. */
enum line_phase { LINE_WAITING, LINE_DIALLING, LINE_OPEN, LINE_CLOSED };
enum load_kind { LOAD_NONE, LOAD_OUT, LOAD_IN };

struct bulk_line {
    struct bulk_line *next;
    struct bulk_lines *lines;
    uint64_t token;
    atomic_int phase, load; /* changed by the thread; `load` begins with the owner, who may look at any time */
    atomic_ullong moved;
    atomic_bool poked;
    atomic_bool dropped, left; /* by its owner: what is under way is to end; the thread may release it */

    pthread_mutex_t lock; /* of what follows */
    struct link link;
    int64_t until_ns;           /* of dialling */
    struct handshake handshake; /* likewise */

    bool is_new;     /* the load has not been looked at */
    bool waits;      /* for more to send */
    uint64_t number; /* of loads before this one, either way */
    unsigned char head[LOAD_HEAD_BYTES];
    size_t head_done, length, done;
    unsigned char *bytes;
    bulk_line_give *give;
    void *context;
};

struct bulk_lines {
    struct bulk_lines_options options;
    char *job_uid;
    struct endpoint *endpoint;
    int bell; /* an eventfd: there is something to do */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* of what follows; taken before a line's */
    struct bulk_line *first;
    bool stopping;
};

/* Not in the list yet, and then in it. */
struct bulk_line *line_new(struct bulk_lines *lines, uint64_t token);
void line_enter(struct bulk_line *line);

/* The thread's, both with the line's lock held. */
void line_set_phase(struct bulk_line *line, enum line_phase phase);
/* What a line that is dialled can do now; `ready`: something has come. */
void line_open_further(struct bulk_line *line, bool ready);
/* Seats the connections that have arrived. */
void lines_take_arrivals(struct bulk_lines *lines);

#endif
