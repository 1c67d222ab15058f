/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of lines, for the files that implement them: bulk_line.c (the thread, loads) and bulk_line_opening.c (opening a
 * line from either side). Only they include it.
 */
#ifndef COXSWAIN_COMM_BULK_LINE_PARTS_H
#define COXSWAIN_COMM_BULK_LINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/comm/bulk_line.h"
#include "worker/comm/endpoint.h"
#include "worker/comm/handshake.h"

/* The thread's polling interval while nothing happens. */
#define LINES_LOOK_MS 100

/* WAITING: until the other side dials; DIALLING: this side dials. */
enum line_phase { LINE_WAITING, LINE_DIALLING, LINE_OPEN, LINE_CLOSED };
enum load_kind { LOAD_NONE, LOAD_OUT, LOAD_IN };

struct bulk_line {
    struct bulk_line *next;
    struct bulk_lines *lines;
    uint64_t token;
    atomic_int phase, load; /* the owner sets `load` to begin one; all other changes are the thread's */
    atomic_ullong moved;
    atomic_bool poked;
    atomic_bool dropped, left; /* set by the owner: the load must end; the thread may release the line */

    pthread_mutex_t lock; /* guards what follows */
    struct link link;
    int64_t until_ns;           /* when to give up dialling */
    struct handshake handshake; /* of dialling */

    bool is_new;     /* the thread has not seen the load yet */
    bool waits;      /* `give` has returned BULK_LINE_LATER */
    uint64_t number; /* number of loads before this one, in both directions */
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
    int bell; /* an eventfd that wakes the thread */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards what follows; taken before a line's lock */
    struct bulk_line *first;
    bool stopping;
};

/* Creates a line that is not in the list yet; line_enter adds it. */
struct bulk_line *line_new(struct bulk_lines *lines, uint64_t token);
void line_enter(struct bulk_line *line);

/* For the thread, with the line's lock held. */
void line_set_phase(struct bulk_line *line, enum line_phase phase);
/* Continues to open a dialled line. `ready`: poll(2) reported its socket. */
void line_open_further(struct bulk_line *line, bool ready);
/* Gives the connections that have arrived to the lines that expect them, and refuses the others. */
void lines_take_arrivals(struct bulk_lines *lines);

#endif
