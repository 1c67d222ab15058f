/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines, encodes and decodes the messages between the members of a crew and the coordinator in the chief
 * (coordinator.h). The list COORDINATION_MESSAGES says who sends each type and which fields it uses.
 *
 * One struct serves all types; fields that a type does not use are 0. On the wire, a message is a magic number, the
 * protocol's number (comm/protocol.h), the type, the fields in a fixed little-endian order, and a CRC-32C.
 */
#ifndef COXSWAIN_COORDINATION_MESSAGE_H
#define COXSWAIN_COORDINATION_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/comm/generation.h"
#include "worker/coordination/arithmetic.h"

#define COORDINATION_MESSAGE_MAX 16384
#define COORDINATION_UID_MAX 128
#define COORDINATION_TEXT_MAX 256

/* name, sender, fields */
#define COORDINATION_MESSAGES(X)                                                                                                           \
    X(JOIN) /* member: job_uid, generation (its attempt and incarnation), rank, size, peer, arithmetic (its best) */                       \
    X(BEAT) /* both ways: job_uid, generation (of the chief; that the member knows); member: step */                                       \
    X(STANDING) /* member: holds_state, step, generation (the last it was in), planned, seats, incarnations, arithmetic (of that world) */ \
    X(WORLD) /* coordinator: generation, size, peers, members, seats, incarnations, logical_shards, source…, step, arithmetic */         \
    X(REFORM)   /* coordinator: generation (the one that ended), text (why) */                                                             \
    X(WAITING)  /* coordinator: text (whom the crew waits for; "" when whole) */                                                           \
    X(REFUSED)  /* coordinator: refusal, text, arithmetic (the crew's, where it was refused for that) */                                   \
    X(LEAVE)    /* member: it ends in an orderly way (member_leave) */                                                                     \
    X(SUMMON)   /* a new chief asks a member to join: job_uid, generation, peer (the address of its coordinator) */                        \
    X(SUMMONED) /* the member's answer: refusal (0: it will join), text */

enum coordination_message_type {
    COORDINATION_NONE,
#define X(name) COORDINATION_##name,
    COORDINATION_MESSAGES(X)
#undef X
        COORDINATION_TYPE_COUNT,
};

enum coordination_refusal { REFUSE_NOT, REFUSE_STALE, REFUSE_OTHER_JOB, REFUSE_BAD_SEAT, REFUSE_ARITHMETIC };

struct coordination_message {
    enum coordination_message_type type;
    enum coordination_refusal refusal;
    char job_uid[COORDINATION_UID_MAX];
    struct generation generation;
    uint64_t nonce; /* of a JOIN: random, one for each process */
    uint32_t rank, size;
    bool holds_state;
    bool planned;
    int64_t step;
    uint32_t logical_shards;
    char arithmetic[ARITHMETIC_MAX]; /* "": none is agreed on */
    uint32_t source, source_rank;
    struct collective_peer peer;
    char text[COORDINATION_TEXT_MAX];
    struct collective_peer peers[CREW_SIZE_MAX]; /* `size` of them in a WORLD */
    bool receives[CREW_SIZE_MAX];
    uint32_t members[CREW_SIZE_MAX];      /* by rank: the seat */
    uint32_t seats;                       /* of the whole crew, taken or not */
    uint32_t incarnations[CREW_SIZE_MAX]; /* by seat: the highest known; `seats` of them in a WORLD or STANDING */
};

/* Appends the encoded message to `out`. */
int coordination_message_encode(const struct coordination_message *message, struct buffer *out, struct error *error);
/* Decodes a message. Fails with ERROR_CORRUPT if it is incomplete or damaged, and with
 * ERROR_UNSUPPORTED, naming both numbers, if it has another protocol's number. */
int coordination_message_decode(const void *bytes, size_t length, struct coordination_message *ret_message,
                                struct error *error);

#endif
