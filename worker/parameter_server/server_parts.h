/* SPDX-License-Identifier: Apache-2.0
 *
 * A server's inside, for the files that make it: server.c (life cycle),
 * server_exchange.c (workers), server_control.c (the chief), server_store.c (its
 * shard of a checkpoint), server_parting.c (leaving on request),
 * server_succession.c (being replaced). Only they include it.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_PARTS_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_PARTS_H

#include <pthread.h>

#include "worker/comm/bulk_line.h"
#include "worker/comm/rpc.h"
#include "worker/comm/shared_area.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/variables_copy.h"

/* A worker's stream. */
struct exchange {
    struct exchange *next;
    struct ps_server *server;
    struct rpc_stream *stream;
    unsigned worker;
    uint64_t incarnation;
    bool open, answered; /* OPEN has come; OPENED has gone */
    bool shared;
    struct shared_area area;
    struct ps_message push; /* the update whose bytes are coming; its sets are not its own */
    struct row_set rows;    /* of that update */
    bool pushing;
    struct bulk_inbox inbox;
    struct bulk_line *line;       /* NULL: none was offered, or it ended unused */
    struct variables_copy values; /* on their way on the line */
};

/* The chief's. */
struct control {
    struct ps_server *server;
    struct rpc_stream *stream;
    bool claimed;
};

/* Where in the data the tickets of a plan begin (dispatcher_plan). */
struct data_base {
    int64_t step, epoch, consumed;
};

struct store_job {
    struct variables_copy copy;
    char directory[PS_PATH_MAX];
    int64_t step;
    struct ps_message result;
    bool wanted, done, busy;
};

struct ps_server {
    struct ps_server_options options;
    char *job_uid;
    struct rpc *rpc;
    struct rpc_server *door;
    struct bulk_lines *lines; /* NULL: the values are too few */
    uint64_t incarnation;
    struct variables variables;

    /* The rpc's thread only. */
    struct exchange *exchanges;
    struct control *control;
    struct generation chief; /* the highest that was here */
    uint32_t worker_epochs[PS_WORKERS_MAX];
    float *outgoing[PS_WORKERS_MAX]; /* values under way; gRPC may look at them after a stream has ended */
    int64_t unled_since_ms, sent_away_ms;
    struct data_base base; /* kept for a successor of the chief */
    double squares;        /* of the gradient last reduced */
    int64_t asked_ms;      /* when the wish to leave was seen; 0: there is none */
    bool admits;           /* tickets flow, says the chief that is there */
    int64_t
        saved_updates; /* in the last save that a chief heard of, or where it began; -1: nobody has saved what it holds */
    bool frozen;       /* on the way out: nothing more is acknowledged */
    bool dismissed;    /* the chief has answered the wish */
    struct ps_server_counts counts;
    char waiting[PS_TEXT_MAX]; /* as last told */

    pthread_t storing;
    bool storing_runs;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct store_job store;
    bool over, cancelled, stopping;
    bool leaving; /* asked to */
    struct error fatal;
};

static inline struct data_base data_base_of(const struct ps_message *message)
{
    return (struct data_base){message->base_step, message->base_epoch, message->base_consumed};
}

/* Tells the witness; `path`: its last part is whose. NULL: this server's. */
void ps_server_record(struct ps_server *server, enum server_fate fate, const struct variables *variables,
                      int64_t number, const char *path);
/* Whether a wait since then, for somebody who is there or not, is worth a word. */
bool ps_server_is_long(const struct ps_server *server, int64_t since_ms, bool is_there);
/* Ends ps_server_wait. */
void ps_server_fail(struct ps_server *server, const struct error *error);

/* For rpc_method.opened. */
void server_exchange_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                            void **ret_context);
void server_control_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context);

/* Sees to an orderly leave. */
void server_parting_tick(struct ps_server *server);
/* The state is being saved on the way out: nothing more is acknowledged, workers wait for the successor. */
void server_parting_freeze(struct ps_server *server);
/* The chief has answered the wish to leave: all servers are saved, or cannot be. */
void server_parting_done(struct ps_server *server, bool is_saved);
/* There may be another chief, which has not heard of the wish. */
void server_parting_tell(struct ps_server *server);

/* Closes the stream where another server is meant: what its caller has met is no successor of ours. The caller looks the name up
 * again. */
bool server_is_meant(const struct ps_server *server, struct rpc_stream *stream, const struct ps_message *message);
/* Ends the server, and says why, when `newest` has its place. */
bool server_is_superseded(struct ps_server *server, struct generation newest);
/* Likewise when somebody of a newer attempt calls: all processes of this one are past. */
bool server_is_of_a_past_attempt(struct ps_server *server, struct generation caller);
void server_succession_tick(struct ps_server *server);

/* What lines have brought. */
void server_exchange_tick(struct ps_server *server);
/* Tickets flow (again): whoever has waited for it may begin. */
void server_exchange_admit(struct ps_server *server);
/* Sends all workers away, and takes none in before the chief says so. */
void server_exchange_close(struct ps_server *server);
void server_control_tick(struct ps_server *server);

int server_store_start(struct ps_server *server, struct error *error);
void server_store_stop(struct ps_server *server);
/* Has the state as it is now written, while updates go on. False: it cannot, and the chief has been told why. */
bool server_store_begin(struct ps_server *server, const struct ps_message *order);
void server_store_tick(struct ps_server *server);

#endif
