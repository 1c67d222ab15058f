/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares the internals of a group (collective.h: the links between all ranks, and the collective operations over
 * them), for the files that implement it:
 *
 *     collective.c          life cycle, and the start of operations
 *     collective_lane.c     frames to and from one peer; a lane is the link to that peer with its queue of frames
 *     collective_drive.c    the threads that move bytes, and deadlines
 *     transfer.c            messages from one rank to another
 *
 * Nothing else in the worker includes this header. Everything except `failure` is used with the group's lock held.
 */
#ifndef COXSWAIN_COMM_COLLECTIVE_PARTS_H
#define COXSWAIN_COMM_COLLECTIVE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/comm/collective.h"
#include "worker/comm/lane_transfers.h"
#include "worker/comm/link.h"
#include "worker/comm/operation.h"

#define COLLECTIVE_WINDOW 32 /* operations under way at most */
#define COLLECTIVE_REQUESTS_MAX 1024
#define COLLECTIVE_LABEL_MAX 64

/* A link with its queue of outgoing frames and the frame that is being received. */
struct lane {
    struct link link;
    struct outgoing_frame *queue, **queue_end;
    unsigned char header_bytes[FRAME_HEADER_BYTES];
    size_t header_received;
    bool header_ready; /* `header` is decoded; its operation may not have begun here yet */
    struct frame_header header;
    unsigned char *payload; /* NULL until it is known where the payload belongs */
    size_t payload_received;
    struct lane_transfers transfers;
};

/* A collective operation that the caller has started and whose handle is `ticket`. A long one is cut into several struct operation. */
struct request {
    collective_ticket ticket;
    enum { REQUEST_ALL_REDUCE, REQUEST_REDUCE_SCATTER, REQUEST_ALL_GATHER, REQUEST_BROADCAST } kind;
    bool has_no_deadline;
    struct collective_shards shards;
    const unsigned *sources;
    unsigned root;
    const bool *receives;
    const float *contributions[OPERATION_PARTS_MAX];
    float *result;
    unsigned char *bytes;
    size_t total, begun; /* elements or bytes; the number for which operations have begun */
    unsigned operations; /* begun and not done */
};

/* Staging memory (for received contributions) that no operation uses at the moment. */
struct spare_staging {
    float *memory;
    size_t elements;
};

struct collective {
    struct collective_options options;
    struct collective_peer peers[CREW_SIZE_MAX];
    char *job_uid;
    struct operation_setting setting;
    struct lane lanes[CREW_SIZE_MAX];
    int wake; /* eventfd: a new start for a sleeping thread, or an abort */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_cond_t transferred; /* a transfer is done, or the group has failed */
    pthread_t thread;
    bool has_thread, stopping;
    bool driven;   /* a waiting caller moves the bytes, and the thread does not */
    bool sleeping; /* the thread is in poll(2) */

    struct operation operations[COLLECTIVE_WINDOW];
    struct spare_staging spares[COLLECTIVE_WINDOW]; /* last in, first out: what was used last is still in the cache */
    unsigned spare_count;
    uint64_t next_sequence, oldest_sequence; /* oldest: the lowest that is not done */
    struct request *requests;                /* a ring, indexed by ticket */
    collective_ticket next_ticket;
    collective_ticket cutting; /* the first that is not completely cut into operations */
    unsigned unfinished;       /* requests and transfers that are not done */
    int64_t progress_ns;       /* the last time anything moved */
    int64_t frozen_ns;         /* collective_take_frozen_ns */
    char label[COLLECTIVE_LABEL_MAX];

    atomic_bool aborted;
    pthread_mutex_t abort_lock; /* of `failure` */
    struct error failure;
};

static inline struct request *collective_request(struct collective *group, collective_ticket ticket)
{
    return &group->requests[ticket % COLLECTIVE_REQUESTS_MAX];
}

static inline bool request_done(const struct request *request)
{
    return request->begun == request->total && request->operations == 0;
}

static inline struct operation *collective_operation(struct collective *group, uint64_t sequence)
{
    return &group->operations[sequence % COLLECTIVE_WINDOW];
}

/* collective.c */
void collective_fail(struct collective *group, const struct error *cause);
/* Fills `error` with the group's failure and returns -1. */
int collective_failure(struct collective *group, struct error *error);

/* collective_lane.c. Queues an operation's frame (operation_send); the context is the group. */
void collective_enqueue(void *context, unsigned rank, struct outgoing_frame *frame);
/* Sends and receives as much as is possible without waiting. */
int collective_lane_progress(struct collective *group, unsigned rank, bool *moved, struct error *error);
/* Returns whether incoming bytes of this lane can be used now. A frame of an operation that has not begun here is not read yet. */
bool collective_lane_wants(const struct collective *group, const struct lane *lane);

/* collective_drive.c. The communication thread. */
void *collective_run(void *context);
/* Wakes the communication thread, so that it continues with what is under way. */
void collective_wake(struct collective *group);
/* Give an operation staging memory for incoming contributions, and take it back. The memory used last is reused first, since it is in the
 * cache. An operation that stages late has it from its first contribution until all are combined. */
void collective_lend_staging(struct collective *group, struct operation *operation);
void collective_take_staging_back(struct collective *group, struct operation *operation);
/* Moves what can be moved without waiting. Returns whether anything moved. */
bool collective_progress(struct collective *group);
/* Moves bytes until the request is done or the group has failed. */
void collective_drive(struct collective *group, const struct request *request);

#endif
