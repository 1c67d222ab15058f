/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a parameter server: it holds its part of the model's parameters, applies the updates that workers push, and sends
 * the values to workers that pull them. The process of a pod of role `ps` starts one (train/parameter_server.c). The server
 * listens and waits; the chief connects, tells it what to start from, orders saves, and reports the end of the run.
 * Everything happens on the thread of its rpc, except that checkpoint shards are written on a thread of their own.
 *
 * The server refuses a chief whose generation is lower than an earlier chief's, and a worker whose incarnation is lower
 * than an earlier one's with the same number (the operator gives each new pod a higher incarnation). If a peer has met
 * a newer server with this server's number, this one ends: it was suspended for long and has been replaced. While no
 * chief is connected, the server periodically disconnects its workers, so that they look up where its name leads, and
 * accepts none until a chief has begun.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_H

#include "worker/comm/generation.h"
#include "worker/coordination/member.h"
#include "worker/parameter_server/variables.h"

struct ps_server;

/* The events in a server's values. `number` counts updates, tickets or saves; `whose` names a checkpoint, or this server. */
#define SERVER_FATES(X)                                                                                                \
    X(LOADED, "loaded")   /* loaded from the checkpoint `whose` ("-": a fresh start), after `number` updates */        \
    X(APPLIED, "applied") /* ticket `number` was applied; Synchronous: the step after `number` steps */                \
    X(SAVED, "saved")     /* a copy is being written to the directory `whose`, as save `number` */
enum server_fate {
#define X(name, text) SERVER_##name,
    SERVER_FATES(X)
#undef X
};

struct ps_server_options {
    const char *job_uid;
    struct generation generation; /* this server's attempt and incarnation */
    const char *listen_address;
    uint16_t port;      /* 0: any free one */
    uint16_t data_port; /* for bulk connections; 0, or a port that is taken: any free one */
    struct variables_options variables;
    uint32_t digest;  /* parameter_layout_digest */
    bool never_saved; /* the job has no checkpoints, so no chief will order a save */
    int64_t lost_ms;  /* time without a chief before ERROR_TIMEOUT; 0: 600 s */

    /* Fills parameters and slots from a checkpoint's directory, or ("") with what a fresh run
     * starts from. Called on the rpc's thread. */
    int (*load)(void *context, const char *checkpoint, struct variables *variables, struct error *error);
    /* Writes a copy of them into a file of `directory`. May be called on any thread. */
    int (*store)(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                 int64_t *ret_bytes, uint32_t *ret_crc, struct error *error);
    /* Called on the rpc's thread when what the server waits for changes: the chief, or "" for
     * nobody. May be NULL. */
    void (*waits)(void *context, const char *text);
    /* Called for each SERVER_FATES event on the rpc's thread, before any peer learns of it.
     * `whose`: a checkpoint's name, or "ps-0-7", the role, number and incarnation of a server. May be
     * NULL. */
    void (*witness)(void *context, enum server_fate fate, uint32_t lineage, int64_t number, const char *whose);
    void *context;
    int64_t patience_ms; /* before `waits` is called; 0: the default of waiting.h */
    int64_t
        leave_ms; /* how long a leaving server waits for the chief's save; half as long again while it writes; 0: 15000 */
};

/* Allocates the variables, listens and starts the thread. job_uid is copied; what the other pointers lead to must outlive the server. */
int ps_server_start(const struct ps_server_options *options, struct ps_server **ret_server, struct error *error);
uint16_t ps_server_port(const struct ps_server *server);
/* Waits until the chief says that the run is over (returns 0), or for a reason to end the process:
 * ERROR_TIMEOUT (no chief), ERROR_CANCELLED (ps_server_cancel), ERROR_STALE (superseded), or a
 * failure to load or update the state. */
int ps_server_wait(struct ps_server *server, struct error *error);
/* Makes ps_server_wait return. May be called from any thread. */
void ps_server_cancel(struct ps_server *server);
/* Like ps_server_cancel, but first waits until the chief has saved, so that no acknowledged update
 * is lost; once the copy for that save is taken, nothing more is acknowledged. Does not wait for a
 * chief that does not save in time or cannot, and only briefly if no chief is connected and there
 * is nothing to save. A server without a state leaves at once and acknowledges nothing from then
 * on. */
void ps_server_leave(struct ps_server *server);
void ps_server_free(struct ps_server *server);

/* The number of updates that were applied or refused, by their verdict (variables.h), and of pulls that were answered. */
struct ps_server_counts {
    int64_t applied, duplicates, outdated, late, pulls;
};
struct ps_server_counts ps_server_counts(struct ps_server *server);

#endif
