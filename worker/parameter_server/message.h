/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines, encodes and decodes the messages between the chief, the workers and the parameter servers of a job. The list
 * PS_MESSAGES says who sends each type and which fields it uses. One struct holds all types; fields that a type does
 * not use are 0. The wire format is a magic number, the protocol's number (worker/comm/protocol.h), the type, the
 * fields in a fixed little-endian order, and a CRC-32C.
 *
 * Tensors are sent separately. A message that announces them is followed on the same stream by bulk messages, each of
 * which has a head of BULK_HEAD_BYTES and raw bytes of the server's packed array (placement.h). If the message says so,
 * the bytes go on a bulk connection (worker/comm/bulk_connection.h) instead; with shared memory they are not sent at
 * all. Of large embedding tables, only the rows listed in the message are sent (placement_rows.h).
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

#define PS_METHOD_TICKETS "/coxswain.Tickets/Take"         /* worker to chief */
#define PS_METHOD_EXCHANGE "/coxswain.Parameters/Exchange" /* worker to server */
#define PS_METHOD_CONTROL "/coxswain.Parameters/Control"   /* chief to server */

#define PS_MESSAGE_MAX ((size_t)768 << 10)
#define PS_UID_MAX 128
#define PS_TEXT_MAX 256
#define PS_PATH_MAX 1024
#define PS_SERVERS_MAX 64
/* Workers are numbered by their index. The chief pulls values too, under the last number. */
#define PS_WORKERS_MAX 1025
#define PS_CHIEF_INDEX 1024

#define PS_MESSAGES(X)                                                                                                   \
    /* Worker and chief */                                                                                               \
    X(JOIN)    /* worker: job_uid, generation, index, nonce; holds_state: lineage, clock, ticket (in progress) */        \
    X(WELCOME) /* chief: generation, lineage, clock, per_step, base_step, base_epoch, base_consumed */                   \
    X(WANT)    /* worker: requests the next ticket; lineage, clock */                                                    \
    X(TICKET)  /* chief: ticket, lineage */                                                                              \
    X(DONE)    /* worker: ticket, lineage, clock, loss, correct, targets, examples, squares, servers' nonces */          \
    X(RETURN)  /* worker: ticket, not done */                                                                            \
    X(RESTART) /* chief: lineage; everything in progress is void */                                                      \
    X(OVER)    /* chief: there are no more tickets */                                                                    \
    X(BEAT)    /* both: keepalive */                                                                                     \
    X(LEAVE)   /* worker: it is being terminated */                                                                      \
    X(REFUSED) /* chief, server: text (stale generation, another job) */                                                 \
    /* Worker and server */                                                                                              \
    X(OPEN)   /* worker: job_uid, generation, index, server, digest, newest, nonce and path (of the area) */             \
    X(OPENED) /* server: nonce, generation, shared, holds_state, port and token (of a bulk connection) */                \
    X(PULL)   /* worker: rows, on_connection */                                                                          \
    X(PUSH)   /* worker: ticket, lineage, clock, rate, scale, rows, pull (all values too), on_connection; bulk */        \
    X(ACK)    /* server: ticket, verdict, nonce */                                                                       \
    X(VALUES) /* server: updates, on_connection (as requested); bulk */                                                  \
    /* Chief and server */                                                                                               \
    X(CLAIM)        /* chief: job_uid, generation, server, digest, newest */                                             \
    X(SERVER_STATE) /* server: nonce, generation, holds_state, lineage, clock, updates, empty, tickets */                \
    X(START) /* chief: lineage, clock, path (a checkpoint; "": afresh), tickets, updates, empty; SERVER_STATE follows */ \
    X(REDUCE)  /* chief: step */                                                                                         \
    X(REDUCED) /* server: step, squares */                                                                               \
    X(APPLY)   /* chief: step, rate, scale */                                                                            \
    X(STEPPED) /* server: step */                                                                                        \
    X(ADMIT)   /* chief: tickets are handed out; accept workers */                                                       \
    X(SAVE)    /* chief: step, path (a directory), last (accept no worker until ADMIT) */                                \
    X(SAVED)   /* server: step, path (file), bytes, crc, tickets, updates, empty; or text (error), verdict (errno) */    \
    X(DISCARD_TICKETS) /* chief: tickets, empty (not 0: their shares have no examples); SERVER_STATE follows */          \
    X(FINISH)          /* chief: the run is over */                                                                      \
    X(LEAVING) /* server: asked to leave, save first; chief: go (holds_state: saved; else that is impossible) */         \
    /* Which process is a server */                                                                                      \
    X(LOOK) /* any peer: job_uid, server, newest */                                                                      \
    X(SEEN) /* server: generation */

/* A verdict of SAVED that is not an errno: the save is refused because an earlier one is still being written. When that is
 * done, its own SAVED is sent to the chief of that time. */
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
    struct generation newest; /* attempt and incarnation of the newest server of that number that the sender has met */
    uint32_t index;           /* of a worker, or of a server */
    uint32_t server;          /* the server that is meant: a name may lead to another server for a while */
    uint64_t nonce;           /* random, one for each process */
    uint32_t digest;          /* of the model's layout */
    uint32_t
        lineage; /* a number that the chief raises with each rollback to a checkpoint; updates of another are refused */
    uint32_t verdict; /* of an ACK: how the update was received (variables.h); of a SAVED: an errno */
    uint32_t port;
    uint64_t token;
    bool holds_state, shared, pull, last;
    bool on_connection;                   /* gradients and values are sent on the bulk connection */
    int64_t ticket, step, updates, empty; /* empty: tickets in the table without an update */
    int64_t
        clock; /* a worker's (ticket_scheduler.h); a server's: the highest at which a worker began what the server holds */
    double rate, scale, loss, squares;
    int64_t correct, targets, examples;
    int64_t per_step, base_step, base_epoch, base_consumed;
    int64_t bytes;
    uint32_t crc;
    uint32_t server_count;
    uint64_t nonces[PS_SERVERS_MAX];
    char path[PS_PATH_MAX];
    char text[PS_TEXT_MAX];
    struct ticket_set tickets; /* both are owned: ps_message_release */
    struct row_set rows;       /* the rows whose bytes are sent, or requested */
};

void ps_message_release(struct ps_message *message);
/* Appends the encoded message to `out`. Fails if `tickets` or `rows` are over their ceilings, or `out` is full. */
int ps_message_encode(const struct ps_message *message, struct buffer *out, struct error *error);
/* Decodes a message; the caller releases it. ERROR_CORRUPT: not a whole, intact message.
 * ERROR_UNSUPPORTED: of another protocol. */
int ps_message_decode(const void *bytes, size_t length, struct ps_message *ret_message, struct error *error);

#define BULK_HEAD_BYTES 24
#define BULK_BODY_MAX (((size_t)1 << 20) - BULK_HEAD_BYTES)
struct bulk_head {
    uint64_t offset, total; /* of this body in all announced bytes, and their number */
};
void bulk_head_encode(const struct bulk_head *head, unsigned char bytes[BULK_HEAD_BYTES]);
/* Decodes the head of a bulk message. Returns false if the bytes do not begin one. */
bool bulk_head_decode(const unsigned char *bytes, size_t length, struct bulk_head *ret_head);

#endif
