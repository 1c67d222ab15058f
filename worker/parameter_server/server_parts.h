/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a parameter server (server.h), for the files that together run one: server.c (life cycle),
 * server_exchange.c (workers), server_control.c (the chief), server_store.c (its shard of a checkpoint),
 * server_leaving.c (leaving on request), server_succession.c (being replaced). Only they include this header.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_PARTS_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_PARTS_H

#include <pthread.h>

#include "worker/comm/bulk_connection.h"
#include "worker/comm/rpc.h"
#include "worker/comm/shared_area.h"
#include "worker/parameter_server/bulk.h"
#include "worker/parameter_server/message.h"
#include "worker/parameter_server/server.h"
#include "worker/parameter_server/variables_copy.h"

/* A stream from a worker. */
struct exchange {
    struct exchange *next;
    struct ps_server *server;
    struct rpc_stream *stream;
    unsigned worker;
    uint64_t nonce;
    bool open, answered; /* OPEN was received; OPENED was sent */
    bool shared;
    struct shared_area area;
    struct ps_message push; /* the update whose bytes are arriving; its sets are not owned */
    struct row_set rows;    /* rows of that update */
    bool pushing;
    struct bulk_inbox inbox;
    struct bulk_connection *connection; /* NULL: none was offered, or it ended unused */
    struct variables_copy values;       /* being sent on the bulk connection */
};

/* A stream from the chief. */
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
    struct rpc_server *listener;
    struct bulk_connections *connections; /* NULL: the values are too small */
    uint64_t nonce;
    struct variables variables;

    /* Used on the rpc's thread only. */
    struct exchange *exchanges;
    struct control *control;
    struct generation chief; /* the highest generation of a chief that has connected */
    uint32_t worker_incarnations[PS_WORKERS_MAX];
    float *outgoing[PS_WORKERS_MAX]; /* values being sent; gRPC may still read them after a stream has ended */
    int64_t unled_since_ms;          /* when the chief's connection was lost */
    int64_t sent_away_ms;  /* when all workers were last disconnected, so that they look up the server's name again */
    struct data_base base; /* reported to the chief's successor */
    double squares;        /* of the gradient last reduced */
    int64_t asked_ms;      /* when the request to leave was seen; 0: none */
    bool admits;           /* the connected chief hands out tickets */
    int64_t
        saved_updates; /* updates in the values at the last save that was reported to a chief, or at the start; -1: never saved */
    bool frozen;    /* leaving: nothing more is acknowledged */
    bool dismissed; /* the chief has answered the request to leave */
    struct ps_server_counts counts;
    char waiting[PS_TEXT_MAX]; /* as last reported */

    pthread_t storing;
    bool storing_runs;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct store_job store;
    bool over, cancelled, stopping;
    bool leaving; /* asked to leave */
    struct error fatal;
};

static inline struct data_base data_base_of(const struct ps_message *message)
{
    return (struct data_base){message->base_step, message->base_epoch, message->base_consumed};
}

/* Calls the witness. `whose` is the last component of `path`; NULL: this server. */
void ps_server_record(struct ps_server *server, enum server_fate fate, const struct variables *variables,
                      int64_t number, const char *path);
/* Returns whether a wait since then, for a member that is connected or not, is long enough to be
 * reported. */
bool ps_server_is_long(const struct ps_server *server, int64_t since_ms, bool is_there);
/* Makes ps_server_wait fail with `error`, unless it has already failed. */
void ps_server_fail(struct ps_server *server, const struct error *error);

/* Accept the stream of a worker, and of the chief; rpc_method.opened of PS_METHOD_EXCHANGE and PS_METHOD_CONTROL. */
void server_exchange_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                            void **ret_context);
void server_control_opened(void *context, struct rpc_stream *stream, struct rpc_stream_events *ret_events,
                           void **ret_context);

/* Handles a request to leave. */
void server_leaving_tick(struct ps_server *server);
/* Stops acknowledging if the server is leaving, because its last save has begun; workers wait for
 * the successor. */
void server_leaving_freeze(struct ps_server *server);
/* Handles the chief's answer to the request to leave: all servers are saved (`is_saved`), or they cannot be saved. */
void server_leaving_done(struct ps_server *server, bool is_saved);
/* Informs the present chief that this server was asked to leave, since it may be a new one. */
void server_leaving_tell(struct ps_server *server);

/* Returns whether a message is meant for this server. If not, closes the stream: the newer server
 * that the caller has met is not our successor. The caller looks the name up again. */
bool server_is_meant(const struct ps_server *server, struct rpc_stream *stream, const struct ps_message *message);
/* If `newest` is a newer server in this one's place, ends the server with an error that says so,
 * and returns true. */
bool server_is_superseded(struct ps_server *server, struct generation newest);
/* If the caller belongs to a newer attempt of the job, which supersedes all processes of this attempt, ends the server with an error that
 * says so, and returns true. */
bool server_is_of_a_past_attempt(struct ps_server *server, struct generation caller);
void server_succession_tick(struct ps_server *server);

/* Processes what has arrived on bulk connections. */
void server_exchange_tick(struct ps_server *server);
/* Tells workers that have waited for the chief to begin that they may begin. */
void server_exchange_admit(struct ps_server *server);
/* Disconnects all workers, and accepts none until the chief allows it. */
void server_exchange_close(struct ps_server *server);
void server_control_tick(struct ps_server *server);

int server_store_start(struct ps_server *server, struct error *error);
void server_store_stop(struct ps_server *server);
/* Starts to write a copy of the present state while updates continue. Returns false if that is
 * impossible; the chief was then told why. */
bool server_store_begin(struct ps_server *server, const struct ps_message *order);
void server_store_tick(struct ps_server *server);

#endif
