/* SPDX-License-Identifier: Apache-2.0
 *
 * A parameter server: it holds its variables, takes updates from workers, hands
 * out values, and does as the chief says. It opens its doors and waits: the chief
 * comes to it, tells it what to start from, and in the end that the run is over.
 * Everything happens on the thread of its rpc; writing a checkpoint's shard has a
 * thread of its own.
 *
 * A chief of a lower generation than one that was here is refused, as is a worker
 * with a lower epoch than one of the same number. A server that hears of a newer one
 * of its own number, from whoever has met that, ends: it may have stood still for
 * long, and been replaced. Without a chief it sends workers away now and then, so
 * that they look up where its name leads, and takes none in before one has begun.
 */
#ifndef COXSWAIN_PARAMETER_SERVER_SERVER_H
#define COXSWAIN_PARAMETER_SERVER_SERVER_H

#include "worker/comm/generation.h"
#include "worker/coordination/member.h"
#include "worker/parameter_server/variables.h"

struct ps_server;

/* What becomes of a server's values: `number` says which, `whose` where they come from or go to, or else which server this is. */
#define SERVER_FATES(X)                                                                                                \
    X(LOADED, "loaded") /* they are those of the checkpoint `whose` ("-": of a fresh start), after `number` updates */ \
    X(APPLIED, "applied") /* ticket `number` is in them now; Synchronous: the step after `number` steps */             \
    X(SAVED, "saved")     /* a copy of them goes into the directory `whose`, save `number` */
enum server_fate {
#define X(name, text) SERVER_##name,
    SERVER_FATES(X)
#undef X
};

struct ps_server_options {
    const char *job_uid;
    struct generation generation; /* its own attempt and epoch */
    const char *listen_address;
    uint16_t port;      /* 0: any free one */
    uint16_t data_port; /* for lines; 0, or one that is taken: any free one */
    struct variables_options variables;
    uint32_t digest;  /* parameter_layout_digest */
    bool never_saved; /* the job keeps no checkpoints: no chief will have it save */
    int64_t lost_ms;  /* without a chief for so long: ERROR_TIMEOUT; 0: 600 s */

    /* Fills parameters and slots from a checkpoint's directory, or ("") with what a fresh run starts from. On the rpc's thread. */
    int (*load)(void *context, const char *checkpoint, struct variables *variables, struct error *error);
    /* Writes a copy of them into a file of `directory`; any thread. */
    int (*store)(void *context, const char *directory, const struct variables *copy, char ret_name[64],
                 int64_t *ret_bytes, uint32_t *ret_crc, struct error *error);
    /* Whom this server has been waiting for: the chief; "": nobody any more. On the rpc's thread, when it changes. May be NULL. */
    void (*waits)(void *context, const char *text);
    /* Told of each before anybody else hears of it, on the rpc's thread. `whose`: a checkpoint's name, or "ps-0-7", the role, number
     * and epoch of a server. May be NULL. */
    void (*witness)(void *context, enum server_fate fate, uint32_t lineage, int64_t number, const char *whose);
    void *context;
    int64_t patience_ms; /* before `waits` names anybody; 0: as waiting.h says */
    int64_t
        leave_ms; /* that one that is asked to leave waits for the chief's save, half of it more for its end; 0: 15000 */
};

int ps_server_start(const struct ps_server_options *options, struct ps_server **ret_server, struct error *error);
uint16_t ps_server_port(const struct ps_server *server);
/* Until the chief says that the run is over (0), or for a reason that ends the process: ERROR_TIMEOUT (no chief),
 * ERROR_CANCELLED (ps_server_cancel), ERROR_STALE (superseded), or what went wrong with the state. */
int ps_server_wait(struct ps_server *server, struct error *error);
/* From any thread. */
void ps_server_cancel(struct ps_server *server);
/* As cancel, but waits until the chief has saved, so that nothing is lost that was acknowledged; from the copy for that on nothing
 * more is acknowledged. A chief that does not save in time, or cannot, is not waited for, and one that is away where there is nothing
 * for it to save not for long. One that has no state yet goes at once, and
 * acknowledges nothing, whatever it is told until it is gone. */
void ps_server_leave(struct ps_server *server);
void ps_server_free(struct ps_server *server);

struct ps_server_counts {
    int64_t applied, duplicates, outdated, late, pulls;
};
struct ps_server_counts ps_server_counts(struct ps_server *server);

#endif
