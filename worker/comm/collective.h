/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives: what the ranks of one generation do together on bulk data.
 *
 * A group is a full mesh of links, made anew for each generation, so that no
 * byte of an older one can be taken for a newer. A link is a TCP connection;
 * where a probe proves that both ends share memory, the bytes go through a ring
 * in it and the connection only wakes sleepers and shows a peer's death.
 *
 * Every rank must start the same operations in the same order: the n-th start
 * is operation n everywhere. Operations are asynchronous: start returns at once,
 * a communication thread (or whoever waits) moves the bytes, wait returns when
 * the result is complete on this rank and the inputs may be reused. Several may
 * be under way.
 *
 * All-reduce: each chunk of the vector has an owning rank, which receives every
 * rank's contributions, combines them with `combine` in one fixed order, and
 * gives the result to all. So the result's bits depend on the contributions
 * only, not on the arrival order; the bytes are those of a ring. Small vectors
 * are exchanged whole and combined by each rank, for the shortest latency. From
 * four ranks on, where it is the same order, pairs of ranks exchange short vectors.
 * Other algorithms are options; they go in steps (schedule.h). The two halves of the
 * way by owners are operations of their own: a reduce-scatter and an all-gather.
 *
 * Failure: when a link breaks, a frame is wrong, a deadline passes or somebody
 * calls collective_abort, every operation under way and to come fails at once
 * with that error, and the group is only good for collective_free.
 * ERROR_UNAVAILABLE: a peer is gone, form a new generation. ERROR_STALE: our
 * generation is superseded. ERROR_TIMEOUT: names who was waited for.
 *
 * Threads: starts and waits belong to one thread; collective_abort may be
 * called from any.
 */
#ifndef COXSWAIN_COMM_COLLECTIVE_H
#define COXSWAIN_COMM_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/endpoint.h"
#include "worker/comm/generation.h"
#include "worker/comm/shards.h"

/* Largest group. */
#define CREW_SIZE_MAX 128

enum collective_transport { COLLECTIVE_TRANSPORT_AUTO, COLLECTIVE_TRANSPORT_TCP, COLLECTIVE_TRANSPORT_SHARED_MEMORY };

struct collective;

#define COLLECTIVE_NAME_MAX 32

/* Where a rank's endpoint can be reached, and what it is called where people read of it ("worker 1"; "": by its rank alone). */
struct collective_peer {
    char address[ENDPOINT_ADDRESS_MAX]; /* numeric */
    uint16_t port;
    char name[COLLECTIVE_NAME_MAX];
};

#define COLLECTIVE_PEER_TEXT_MAX (ENDPOINT_ADDRESS_MAX + COLLECTIVE_NAME_MAX + 32)
/* "rank 1 (worker 1, 10.0.0.7:2223)": whoever is waited for is called that. */
void collective_peer_describe(const struct collective_peer *peers, unsigned rank, char text[COLLECTIVE_PEER_TEXT_MAX]);
struct buffer;
/* The same of several, up to a few; then how many more there are. */
void collective_peers_describe(const struct collective_peer *peers, const bool *which, unsigned size,
                               struct buffer *text);

/* Which way an all-reduce goes. All but RING add in the order of `combine` and `merges`. */
enum collective_algorithm {
    COLLECTIVE_ALGORITHM_AUTO, /* what suits the size: one of the next four */
    COLLECTIVE_ALGORITHM_DIRECT,
    COLLECTIVE_ALGORITHM_OWNED,
    COLLECTIVE_ALGORITHM_DOUBLING, /* DOUBLING and HALVING: where pairs of ranks are the tree (schedule.h); else by length */
    COLLECTIVE_ALGORITHM_HALVING,
    COLLECTIVE_ALGORITHM_RING,          /* one contribution a rank; short vectors go DIRECT */
    COLLECTIVE_ALGORITHM_REDUCE_TO_ONE, /* rank 0 receives, adds and gives back */
    COLLECTIVE_ALGORITHM_HIERARCHICAL,  /* within each node first (collective_set_nodes) */
};

/* Addition in place: inputs[into] += inputs[from]; `from` is not used again. */
struct reduction_merge {
    unsigned into, from;
};

/* How an all-reduce turns contributions into the result. Every rank passes equal values. */
struct collective_reduction {
    unsigned contributions[CREW_SIZE_MAX]; /* vectors that each rank puts in; at least 1 */
    /* result[i] from inputs[0..][i]: rank 0's contributions, then rank 1's, …; elementwise, in a fixed order. `result`
     * may be one of the inputs. */
    void (*combine)(const void *context, const float *const *inputs, float *result, size_t elements);
    const void *context; /* outlives the group */
    /* The same as additions of two in their order, one less than there are inputs; the last leaves the result. NULL: none of the
     * algorithms that need them. Outlives the group. */
    const struct reduction_merge *merges;
};

struct collective_options {
    struct endpoint *endpoint; /* this rank's; outlives the group */
    const char *job_uid;
    struct generation generation;
    unsigned rank, size;
    const struct collective_peer *peers; /* by rank, own one included */
    struct collective_reduction reduction;
    enum collective_transport transport; /* AUTO: shared memory where the probe proves it */
    enum collective_algorithm algorithm;
    bool check_frames;   /* CRC-32C over payloads of an all-reduce; state transfers always have it */
    int64_t deadline_ms; /* an operation without any progress for so long fails; 0: 300 s */
    int64_t stall_ms;    /* `on_stall` is told each time so much has passed without progress; 0: 30 s */
    void (*on_stall)(void *context, const char *text); /* names rank, step, operation, last completed; may be NULL */
    void *stall_context;
};

/* Makes the group without talking to anybody yet, so that it can be aborted while it connects. */
int collective_new(const struct collective_options *options, struct collective **ret_group, struct error *error);
/* Connects the mesh; every rank of the generation must do so within `deadline_ms`. ERROR_STALE when a peer knows a newer
 * generation than ours. */
int collective_connect(struct collective *group, int64_t deadline_ms, struct error *error);
/* Ranks with equal numbers are near each other. For HIERARCHICAL, which takes each rank for a node of its own before; every rank
 * calls it with the same numbers when nothing is under way. */
void collective_set_nodes(struct collective *group, const unsigned *nodes);
/* Aborts what is under way and closes all links. */
void collective_free(struct collective *group);

/* Ends every operation with `kind` and `reason` within microseconds. From any thread; the first abort wins. */
void collective_abort(struct collective *group, enum error_kind kind, const char *reason);
/* The same, and the connections end, so that all peers fail with it at once rather than when this process does. From any thread,
 * once the group is connected. */
void collective_break_off(struct collective *group, enum error_kind kind, const char *reason);

/* Whether every operation fails, and why: without waiting, for who waits for something else that peers have a part in. From any
 * thread. */
int collective_check(struct collective *group, struct error *error);
/* The same, and whether all peers are still there. A peer may leave that has nothing more to send here, and operations go by what they
 * want of it; who waits for it by other means must look. From any thread, too. */
int collective_check_peers(struct collective *group, struct error *error);

/* A handle of an operation; 0 is never one. Each must be waited for exactly once (after an abort too). */
typedef uint64_t collective_ticket;

/* result[0..elements) = combination of all ranks' contributions. Buffers stay the caller's and must stay in place until the
 * wait; `result` may be contributions[0]. */
collective_ticket collective_all_reduce_start(struct collective *group, const float *const *contributions,
                                              float *result, size_t elements);
/* The same for who has more to start, or waits for it, at once: nothing moves by itself until collective_attend. */
collective_ticket collective_all_reduce_start_quietly(struct collective *group, const float *const *contributions,
                                                      float *result, size_t elements);
/* The communication thread sees to what is under way, while the caller does something else. */
void collective_attend(struct collective *group);
int collective_wait(struct collective *group, collective_ticket ticket, struct error *error);
int collective_all_reduce(struct collective *group, const float *const *contributions, float *result, size_t elements,
                          struct error *error);

/* The sums of an all-reduce, each where it is owned alone: in `result` of its owner and of the rank after that one. The rest of
 * `result` is undefined. Quiet, as collective_all_reduce_start_quietly. */
collective_ticket collective_reduce_scatter_start(struct collective *group, const float *const *contributions,
                                                  float *result, size_t elements,
                                                  const struct collective_shards *shards);
/* What rank o owns of `vector`, from rank givers[o] to all others, with checksums. `givers` NULL: from o, and not to the rank after
 * it, which has the same already. */
int collective_all_gather(struct collective *group, float *vector, size_t elements,
                          const struct collective_shards *shards, const unsigned *givers, struct error *error);

/* Bytes from `root` to the ranks for which `receives[rank]` is true (root's own entry does not matter). All ranks call it
 * with the same arguments but the bytes; those that neither give nor take return at once. Each chunk carries its CRC-32C;
 * ERROR_CORRUPT when one does not match. */
int collective_broadcast(struct collective *group, unsigned root, const bool *receives, void *bytes, size_t length,
                         struct error *error);

/* Returns when every rank has called it, however long one of them takes: stalls are named, but the deadline does not count. That
 * a rank has gone still ends it. */
int collective_barrier(struct collective *group, struct error *error);

/* How long this process stood still while it waited, since the last call: a stopped process sleeps far longer than it meant to. Its
 * peers wait for it meanwhile, and nobody else can tell. */
int64_t collective_take_frozen_ns(struct collective *group);

/* What the next operations belong to ("step 57"), for the texts of stalls and deadlines. Copied. */
void collective_set_label(struct collective *group, const char *label);

struct generation collective_generation(const struct collective *group);
/* True when the link to `rank` goes through shared memory. */
bool collective_shares_memory(const struct collective *group, unsigned rank);

#endif
