/* SPDX-License-Identifier: Apache-2.0
 *
 * What chief, workers and parameter servers say to each other, one value for
 * every type of message; fields that a type does not use are 0. On the wire: a
 * magic number, the crew's protocol (worker/comm/protocol.h), the type, the fields in a fixed little-endian order, a CRC-32C.
 *
 * Tensors travel apart: a message that announces them is followed on the same
 * stream by bulk messages, each a head of BULK_HEAD_BYTES and raw bytes of the
 * server's packed array; on a line (worker/comm/bulk_line.h) where the message says so; nowhere where memory is shared. Of
 * tables only the rows travel that the message lists (placement_rows.h).
 */
#ifndef COXSWAIN_PARAMETER_SERVER_MESSAGE_H
#define COXSWAIN_PARAMETER_SERVER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "worker/comm/generation.h"
#include "worker/parameter_server/row_set.h"
#include "worker/parameter_server/ticket_set.h"

#define PS_METHOD_TICKETS "/coxswain.Tickets/Take"         /* a worker at the chief */
#define PS_METHOD_EXCHANGE "/coxswain.Parameters/Exchange" /* a worker at a server */
#define PS_METHOD_CONTROL "/coxswain.Parameters/Control"   /* the chief at a server */

#define PS_MESSAGE_MAX ((size_t)768 << 10)
#define PS_UID_MAX 128
#define PS_TEXT_MAX 256
#define PS_PATH_MAX 1024
#define PS_SERVERS_MAX 64
/* Workers are numbered by their index; the chief pulls values too, under the last number. */
#define PS_WORKERS_MAX 1025
#define PS_CHIEF_INDEX 1024

#define PS_MESSAGES(X)                                                                                                          \
    /* Worker and chief */                                                                                                      \
    X(JOIN) /* worker: job_uid, generation, index, incarnation; holds_state: lineage, clock, ticket (which it computes) */      \
    X(WELCOME) /* chief: generation, lineage, clock, per_step, base_step, base_epoch, base_consumed */                          \
    X(WANT)    /* worker: the next ticket, please; lineage, clock */                                                            \
    X(TICKET)  /* chief: ticket, lineage */                                                                                     \
    X(DONE) /* worker: ticket, lineage, clock, loss, correct, targets, examples, squares, incarnations of the servers */        \
    X(RETURN)  /* worker: ticket, not done */                                                                                   \
    X(RESTART) /* chief: lineage: everything under way is void */                                                               \
    X(OVER)    /* chief: there are no more tickets */                                                                           \
    X(BEAT)    /* both ways: the sender is there */                                                                             \
    X(LEAVE)   /* worker: goes by request */                                                                                    \
    X(REFUSED) /* generation is stale, or another job's: text */                                                                \
    /* Worker and server */                                                                                                     \
    X(OPEN) /* worker: job_uid, generation, index, server, incarnation (nonce of the area), digest, path of the area, newest */ \
    X(OPENED) /* server: incarnation, generation, shared, holds_state, port and token (of a line) */                            \
    X(PULL)   /* worker: rows, lined */                                                                                         \
    X(PUSH)   /* worker: ticket, lineage, clock, rate, scale, rows, pull (all values too), lined; bulk */                       \
    X(ACK)    /* server: ticket, verdict, incarnation */                                                                        \
    X(VALUES) /* server: updates, lined (as was asked); bulk */                                                                 \
    /* Chief and server */                                                                                                      \
    X(CLAIM)    /* chief: job_uid, generation, server, digest, newest */                                                        \
    X(STANDING) /* server: incarnation, generation, holds_state, lineage, clock, updates, empty, tickets */                     \
    X(START) /* chief: lineage, clock, path (of a checkpoint; "": afresh), tickets, updates, empty; STANDING follows */         \
    X(REDUCE)  /* chief: step */                                                                                                \
    X(REDUCED) /* server: step, squares */                                                                                      \
    X(APPLY)   /* chief: step, rate, scale */                                                                                   \
    X(STEPPED) /* server: step */                                                                                               \
    X(ADMIT)   /* chief: tickets flow; take workers in */                                                                       \
    X(SAVE)    /* chief: step, path (a directory), last: then no worker is taken in until ADMIT */                              \
    X(SAVED) /* server: step, path (file name), bytes, crc, tickets, updates, empty; or text (why not), verdict (errno) */      \
    X(WRITE_OFF) /* chief: tickets, empty (not 0: all of them are); STANDING follows */                                         \
    X(FINISH)    /* chief: the run is over */                                                                                   \
    X(PARTING)   /* server: asked to leave, save first; chief: go; holds_state: that is done (else it cannot be) */             \
    /* Which process is a server */                                                                                             \
    X(LOOK) /* anybody: job_uid, server, newest */                                                                              \
    X(SEEN) /* server: generation */

/* A verdict of SAVED that is no errno: the save before is still being written. SAVED of that one follows, for whoever leads then. */
#define PS_SAVE_WAITS UINT32_MAX

enum ps_message_type {
    PS_NONE,
#define X(name) PS_##name,
    PS_MESSAGES(X)
#undef X
        PS_TYPE_COUNT,
};

struct ps_message {
    enum ps_message_type type;
    char job_uid[PS_UID_MAX];
    struct generation generation; /* of the sender */
    struct generation newest;     /* attempt and epoch of the newest server of that number that the sender has met */
    uint32_t index;               /* of a worker, or of a server */
    uint32_t server;              /* who is meant: for a while, a name may lead to where another server is now */
    uint64_t incarnation;         /* random, one for each process */
    uint32_t digest;              /* of the model's layout */
    uint32_t lineage;
    uint32_t verdict;
    uint32_t port;
    uint64_t token;
    bool holds_state, shared, pull, last;
    bool lined;                           /* the bytes of gradients and values go on the line */
    int64_t ticket, step, updates, empty; /* empty: tickets in the table that have no update */
    int64_t clock; /* a worker's (dispenser.h); a server's: the highest at which any has begun what it holds */
    double rate, scale, loss, squares;
    int64_t correct, targets, examples;
    int64_t per_step, base_step, base_epoch, base_consumed;
    int64_t bytes;
    uint32_t crc;
    uint32_t server_count;
    uint64_t incarnations[PS_SERVERS_MAX];
    char path[PS_PATH_MAX];
    char text[PS_TEXT_MAX];
    struct ticket_set tickets; /* the owner releases both: ps_message_release */
    struct row_set rows;       /* that the bulk bytes are of, or shall be of */
};

void ps_message_release(struct ps_message *message);
int ps_message_encode(const struct ps_message *message, struct buffer *out, struct error *error);
/* ERROR_CORRUPT for anything that is not a whole, intact message; ERROR_UNSUPPORTED for one of another protocol. */
int ps_message_decode(const void *bytes, size_t length, struct ps_message *ret_message, struct error *error);

/* Bulk messages. */
#define BULK_HEAD_BYTES 24
#define BULK_BODY_MAX (((size_t)1 << 20) - BULK_HEAD_BYTES)
struct bulk_head {
    uint64_t offset, total; /* of this body in all the bytes announced, and how many those are */
};
void bulk_head_encode(const struct bulk_head *head, unsigned char bytes[BULK_HEAD_BYTES]);
/* False when the bytes begin no bulk message. */
bool bulk_head_decode(const unsigned char *bytes, size_t length, struct bulk_head *ret_head);

#endif
