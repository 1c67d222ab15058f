/* SPDX-License-Identifier: Apache-2.0
 *
 * What peers of a PeerToPeer crew send each other, over gRPC streams that each
 * opens to all others. A message is a head of fields and, for vectors, the floats
 * of one part of one of them:
 *
 *     HELLO      caller: job, attempt, incarnation, seat. Unknown or superseded: the stream is closed
 *     COUNTS     both: examples finished, by seat; of its own those that another replica has taken in
 *     UPDATE     caller: a part of a change that the other shall add. After the last part the other answers with TAKEN when it has
 *                now all that the caller has finished until then, with NOTHING when it lacks some of it
 *     AVERAGE    caller: a part of its parameters; answered at once by the same part of the other's, and both move to the mean.
 *                After the last answer the caller says TAKEN
 *     FETCH      caller: asks for the whole state; answered by STATE parts, or by NOTHING when the other has none yet
 *     DONE       the chief: the result is stored
 *
 * With the last part of an UPDATE, an AVERAGE or a STATE goes what the whole has of each seat's
 * examples, in the order in which that seat finished them; of an UPDATE, the caller's are those
 * after `from`.
 *
 * On the wire: a magic number, the crew's protocol (worker/comm/protocol.h), the fields in a fixed
 * little-endian order, the CRC-32C of head and floats together.
 */
#ifndef COXSWAIN_STRATEGY_PEER_MESSAGE_H
#define COXSWAIN_STRATEGY_PEER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/comm/collective.h"
#include "worker/comm/rpc.h"

#define PEER_METHOD_EXCHANGE "/coxswain.Peers/Exchange"

#define PEER_UID_MAX 128
#define PEER_HEAD_MAX 1024
/* Floats in one message. */
#define PEER_PART_MAX ((RPC_MESSAGE_MAX - PEER_HEAD_MAX) / sizeof(float))
/* Vectors of a state: parameters, then the optimizer's slots. */
#define PEER_VECTORS_MAX 8

enum peer_message_type {
    PEER_NONE,
    PEER_HELLO,
    PEER_COUNTS,
    PEER_UPDATE,
    PEER_TAKEN,
    PEER_AVERAGE,
    PEER_FETCH,
    PEER_STATE,
    PEER_NOTHING,
    PEER_DONE,
    PEER_TYPE_COUNT,
};

struct peer_message {
    enum peer_message_type type;
    char job_uid[PEER_UID_MAX];          /* HELLO */
    uint32_t attempt, incarnation, seat; /* HELLO */
    uint64_t serial; /* of a FETCH or an AVERAGE, never 0; the answer, and the TAKEN for it, have the same */
    uint32_t vector;
    bool last;              /* part of the last vector */
    uint64_t offset, count; /* elements */
    uint32_t seats;
    int64_t counts[CREW_SIZE_MAX]; /* COUNTS, and with a last part: `seats` of them */
    int64_t from;                  /* with the last part of an UPDATE */
    const float *floats;           /* `count` of them; after decoding they may lie unaligned: copy them out */
};

/* Encodes head and floats into `bytes`, which has `room` bytes. Returns the length; 0 if it does
 * not fit. */
size_t peer_message_encode(const struct peer_message *message, unsigned char *bytes, size_t room);
/* Decodes a message. Fails with ERROR_CORRUPT if it is incomplete or damaged, and with
 * ERROR_UNSUPPORTED if it has another protocol's number. `floats` points into `bytes`. */
int peer_message_decode(const void *bytes, size_t length, struct peer_message *ret_message, struct error *error);

#endif
