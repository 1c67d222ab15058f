/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs collective operations (all-reduce, reduce-scatter, all-gather, broadcast, barrier) between the processes that
 * train one job. The distribution strategies (worker/strategy) use it to sum gradients and to exchange state through
 * host memory.
 *
 * A group (struct collective) is a full mesh of links between the ranks of one generation. A generation is the crew
 * (the job's pods) until its membership changes; each generation has a group of its own, so that bytes of an older
 * generation cannot be mistaken for those of a newer one. A link is a TCP connection. If a probe proves that both ends
 * share memory, the bytes go through a ring in shared memory, and the connection only wakes sleeping peers and shows
 * when a peer dies.
 *
 * Every rank must start the same operations in the same order. Operations are asynchronous, and several may be under way: start returns
 * at once; a communication thread, or the thread that waits, moves the bytes; wait returns when the result is complete on this rank and
 * the inputs may be reused.
 *
 * In an all-reduce, each chunk of the vector has an owner, a rank that receives all contributions, combines them with `combine` in one
 * fixed order and sends the result to all ranks. So the bits of the result depend only on the contributions, not on their order of
 * arrival, and as many bytes are sent as by a ring. Small vectors are sent whole to all ranks and combined by each, which has the lowest
 * latency. With four or more ranks, short vectors are exchanged between pairs of ranks if that gives the same order of additions. Other
 * algorithms are options; they run in steps (schedule.h). The reduce-scatter and the all-gather are the two halves of an all-reduce by
 * owners.
 *
 * If a link breaks, a frame is wrong, a deadline passes or collective_abort is called, every operation under way and every later one
 * fails at once with that error, and the group can only be freed. ERROR_UNAVAILABLE: a peer is gone, form a new generation. ERROR_STALE:
 * this generation is superseded. ERROR_TIMEOUT: names the peers that did not answer.
 *
 * One thread starts operations and waits for them; collective_abort may be called from any thread.
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

/* The address of a rank's endpoint, and the rank's name in messages ("worker 1"; "": only its rank is named). */
struct collective_peer {
    char address[ENDPOINT_ADDRESS_MAX]; /* numeric */
    uint16_t port;
    char name[COLLECTIVE_NAME_MAX];
};

#define COLLECTIVE_PEER_TEXT_MAX (ENDPOINT_ADDRESS_MAX + COLLECTIVE_NAME_MAX + 32)
/* Writes a rank's description for messages: "rank 1 (worker 1, 10.0.0.7:2223)". */
void collective_peer_describe(const struct collective_peer *peers, unsigned rank, char text[COLLECTIVE_PEER_TEXT_MAX]);
struct buffer;
/* Appends the descriptions of the ranks for which which[rank] is true: those of the first few, then the number of the others. */
void collective_peers_describe(const struct collective_peer *peers, const bool *which, unsigned size,
                               struct buffer *text);

/* The algorithm of an all-reduce. All except RING add in the order of `combine` and `merges`. */
enum collective_algorithm {
    COLLECTIVE_ALGORITHM_AUTO,   /* one of the next four, by the vector's length and the number of ranks */
    COLLECTIVE_ALGORITHM_DIRECT, /* every rank sends its whole vector to all others */
    COLLECTIVE_ALGORITHM_OWNED,  /* each chunk is combined by its owner */
    COLLECTIVE_ALGORITHM_DOUBLING, /* pairs of ranks exchange whole vectors (DOUBLING) or halves (HALVING); schedule.h. If that would
                                    * change the order of additions, DIRECT or OWNED is used */
    COLLECTIVE_ALGORITHM_HALVING,
    COLLECTIVE_ALGORITHM_RING,          /* requires one contribution per rank; short vectors use DIRECT */
    COLLECTIVE_ALGORITHM_REDUCE_TO_ONE, /* rank 0 receives all contributions, adds them and sends the result back */
    COLLECTIVE_ALGORITHM_HIERARCHICAL,  /* within each node first (collective_set_nodes) */
};

/* An addition in place: inputs[into] += inputs[from]; `from` is not used again. */
struct reduction_merge {
    unsigned into, from;
};

/* How an all-reduce turns contributions into the result. Every rank passes equal values. */
struct collective_reduction {
    unsigned contributions[CREW_SIZE_MAX]; /* number of vectors that each rank contributes; at least 1 */
    /* Computes result[i] from inputs[0..][i], elementwise and in a fixed order. Inputs are rank 0's contributions, then rank 1's, and so
     * on. `result` may be one of the inputs. */
    void (*combine)(const void *context, const float *const *inputs, float *result, size_t elements);
    const void *context; /* must outlive the group */
    /* The same sum as a sequence of additions, one fewer than inputs; the last one leaves the result. Must outlive the group. NULL:
     * algorithms that need it are not available. */
    const struct reduction_merge *merges;
};

struct collective_options {
    struct endpoint *endpoint; /* this rank's; must outlive the group */
    const char *job_uid;
    struct generation generation;
    unsigned rank, size;
    const struct collective_peer *peers; /* by rank, including this one */
    struct collective_reduction reduction;
    enum collective_transport transport; /* AUTO: shared memory if the probe succeeds, else TCP */
    enum collective_algorithm algorithm;
    bool check_frames;   /* add a CRC-32C to all payloads; broadcasts and all-gathers with `sources` always have one */
    int64_t deadline_ms; /* an operation fails after this time without progress; 0: 300 s */
    int64_t stall_ms; /* `on_stall` is called after each such time without progress, by a thread that waits; 0: 30 s */
    /* Must not call the group. */
    void (*on_stall)(void *context,
                     const char *text); /* `text` names rank, step, operation, last completed; may be NULL */
    void *stall_context;
};

/* Creates a group without connecting it, so that it can be aborted while it connects. job_uid and peers are copied. */
int collective_new(const struct collective_options *options, struct collective **ret_group, struct error *error);
/* Connects the mesh. Every rank of the generation must call it within `deadline_ms`. ERROR_STALE if a peer knows a newer
 * generation. */
int collective_connect(struct collective *group, int64_t deadline_ms, struct error *error);
/* Sets which ranks share a node: those with equal numbers. For HIERARCHICAL, which until then sends short vectors as DIRECT does, and longer
 * ones as OWNED does. Every rank must call it with the same numbers while no operation is under way. */
void collective_set_nodes(struct collective *group, const unsigned *nodes);
/* Aborts operations under way and closes all links. */
void collective_free(struct collective *group);

/* Ends every operation with `kind` and `reason` within microseconds. Only the first abort counts. May be called from any thread. */
void collective_abort(struct collective *group, enum error_kind kind, const char *reason);
/* Aborts and also ends the connections, so that the peers' operations fail at once, not when this process ends. May be called from any
 * thread, once the group is connected. */
void collective_break_off(struct collective *group, enum error_kind kind, const char *reason);

/* Fails with the group's error if the group has failed. Does not wait; for callers that wait for something else that depends on peers.
 * May be called from any thread. */
int collective_check(struct collective *group, struct error *error);
/* Also fails if a peer has closed its connection. Operations do not fail when a peer leaves that owes them nothing, so callers that wait
 * for a peer by other means must check. May be called from any thread. */
int collective_check_peers(struct collective *group, struct error *error);

/* A handle of an operation, never 0. Each must be waited for exactly once, also after an abort. */
typedef uint64_t collective_ticket;

/* Starts an all-reduce: sets result[0..elements) to the combination of all ranks' contributions. The buffers belong to the caller and
 * must stay valid until the wait. `result` may be contributions[0]. */
collective_ticket collective_all_reduce_start(struct collective *group, const float *const *contributions,
                                              float *result, size_t elements);
/* Starts an all-reduce without waking the communication thread, which saves a system call if the caller starts another operation or waits
 * right away. No bytes move until the caller does one of these, or calls collective_attend. */
collective_ticket collective_all_reduce_start_quietly(struct collective *group, const float *const *contributions,
                                                      float *result, size_t elements);
/* Wakes the communication thread, so that it moves the bytes of operations under way while the caller does something else. */
void collective_attend(struct collective *group);
/* Waits until the operation is complete on this rank: its result is there and its inputs may be reused. */
int collective_wait(struct collective *group, collective_ticket ticket, struct error *error);
int collective_all_reduce(struct collective *group, const float *const *contributions, float *result, size_t elements,
                          struct error *error);

/* Starts a reduce-scatter: each sum is only in `result` of its owner and of the next rank; the rest of `result` is undefined. Does not
 * wake the communication thread, like collective_all_reduce_start_quietly. */
collective_ticket collective_reduce_scatter_start(struct collective *group, const float *const *contributions,
                                                  float *result, size_t elements,
                                                  const struct collective_shards *shards);
/* Runs an all-gather: sends the part of `vector` that rank o owns from rank sources[o] to all others, with checksums. If `sources` is NULL,
 * sends it from rank o, but not to the next rank, which has it already. */
int collective_all_gather(struct collective *group, float *vector, size_t elements,
                          const struct collective_shards *shards, const unsigned *sources, struct error *error);

/* Sends bytes from `root` to the ranks for which receives[rank] is true (root's own entry does not matter). All ranks call it with the
 * same arguments except the bytes; ranks that neither send nor receive return at once. Each chunk has a CRC-32C; ERROR_CORRUPT if one
 * does not match. */
int collective_broadcast(struct collective *group, unsigned root, const bool *receives, void *bytes, size_t length,
                         struct error *error);

/* Returns when every rank has called it. Stalls are reported, but there is no deadline; it fails if a rank is lost. */
int collective_barrier(struct collective *group, struct error *error);

/* Returns for how many nanoseconds this process was suspended (by SIGSTOP or a frozen container, for example) while it waited for peers,
 * since the last call of this function. A suspension is noticed because poll(2) returns much later than its timeout. The peers wait for this
 * process meanwhile, and only this process can report why. */
int64_t collective_take_frozen_ns(struct collective *group);

/* Sets what the next operations belong to ("step 57"), for the texts of stalls and deadlines. Copies it. */
void collective_set_label(struct collective *group, const char *label);

struct generation collective_generation(const struct collective *group);
/* Returns whether the link to `rank` uses shared memory. */
bool collective_shares_memory(const struct collective *group, unsigned rank);

#endif
