/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes the messages that peers of a PeerToPeer crew exchange. Each peer opens a gRPC stream to every other peer, on which
 * it is the caller. A message is a head of fields and, if it carries a part of a vector, that part's floats.
 *
 *     HELLO      from the caller: job, attempt, incarnation, seat. If these are unknown or superseded, the stream is closed
 *     COUNTS     from both: the examples finished by each seat; for the sender's own seat, those that another replica has
 *     UPDATE     from the caller: a part of a change to add. The answer to the last part is TAKEN if the receiver now has all examples that
 *                the caller had finished by then, NOTHING if it lacks some
 *     AVERAGE    from the caller: a part of its parameters. The answer is the receiver's same part, and both replicas move to the mean.
 *                After the last answer the caller sends TAKEN
 *     FETCH      from the caller: asks for the whole state. The answer is STATE parts, or NOTHING if the receiver has no state yet
 *     DONE       from the chief: the result is stored
 *
 * The last part of an UPDATE, an AVERAGE or a STATE also carries, for each seat, how many of its examples the vectors contain, in the
 * order in which the seat finished them. In an UPDATE, the caller's own are those after `from`.
 *
 * On the wire, a message is a magic number, the crew's protocol (worker/comm/protocol.h), the fields in a fixed little-endian order, and
 * the CRC-32C of head and floats together.
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
/* Most floats in one message. */
#define PEER_PART_MAX ((RPC_MESSAGE_MAX - PEER_HEAD_MAX) / sizeof(float))
/* Most vectors of a state: the parameters, then the optimizer's slots. */
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
    uint64_t serial; /* identifies a FETCH or an AVERAGE, never 0; its answers and its TAKEN have the same serial */
    uint32_t vector;
    bool last;              /* the last part of the last vector */
    uint64_t offset, count; /* elements */
    uint32_t seats;
    int64_t counts[CREW_SIZE_MAX]; /* of COUNTS, and of a last part: `seats` of them */
    int64_t from;                  /* of the last part of an UPDATE */
    const float *floats;           /* `count` of them; unaligned after decoding, so copy them before use */
};

/* Encodes head and floats into `bytes`, which has `room` bytes. Returns the length; 0 if it does
 * not fit. */
size_t peer_message_encode(const struct peer_message *message, unsigned char *bytes, size_t room);
/* Decodes a message. Fails with ERROR_CORRUPT if it is incomplete or damaged, and with
 * ERROR_UNSUPPORTED if it has another protocol's number. `floats` points into `bytes`. */
int peer_message_decode(const void *bytes, size_t length, struct peer_message *ret_message, struct error *error);

#endif
